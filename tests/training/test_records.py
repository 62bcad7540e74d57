"""Shards of training records: what is written is read, and nothing else is taken for a shard."""

import numpy as np
import pytest
import zstandard

from nnue_jax.training import records as module
from nnue_jax.training.records import (
    MAGIC,
    RECORD,
    Header,
    RecordsError,
    game_lengths_of,
    read_games,
    read_header,
    read_shard,
    shard_path,
    shard_paths,
    write_shard,
)
from tests.training.shards import random_records

NUMBERS = {"searches": 123, "nodes": 1 << 40}


@pytest.fixture
def path(tmp_path):
    """A shard of 100 records in four games, one of them without records."""
    path = shard_path(tmp_path, 7)
    write_shard(path, random_records(100), [30, 0, 69, 1], NUMBERS)
    return path


def test_layout():
    assert RECORD.itemsize == 42
    assert {name: RECORD.fields[name][1] for name in RECORD.names} == {
        "packed": 0,
        "score": 36,
        "ply": 38,
        "result": 40,
        "depth": 41,
    }


def test_round_trip(path):
    shard = read_games(path)
    assert (shard.records == random_records(100)).all()
    assert shard.game_lengths.tolist() == [30, 0, 69, 1]
    assert shard.header == read_header(path) == Header(4, 100, NUMBERS)
    assert (read_shard(path) == shard.records).all()
    shard.records["score"] = 5  # what is read may be changed


def test_no_game(tmp_path):
    path = shard_path(tmp_path, 0)
    write_shard(path, np.zeros(0, RECORD))
    assert len(read_shard(path)) == 0
    assert read_header(path) == Header(0, 0)


def test_same_bytes(path, tmp_path):
    again = tmp_path / "again.zst"
    write_shard(again, random_records(100), [30, 0, 69, 1], NUMBERS)
    assert again.read_bytes() == path.read_bytes()


def test_games_by_plies(tmp_path):
    records = np.zeros(7, RECORD)
    records["ply"] = [8, 10, 11, 11, 9, 20, 8]
    assert game_lengths_of(records).tolist() == [3, 1, 2, 1]
    assert game_lengths_of(records[:0]).tolist() == []
    path = shard_path(tmp_path, 0)
    write_shard(path, records)
    assert read_games(path).game_lengths.tolist() == [3, 1, 2, 1]


@pytest.mark.parametrize("lengths", [[99], [101], [1 << 16, 100 - (1 << 16)], []])
def test_lengths_that_do_not_fit(tmp_path, lengths):
    with pytest.raises(RecordsError, match="records"):
        write_shard(shard_path(tmp_path, 0), random_records(100), lengths)
    assert shard_paths(tmp_path) == []


@pytest.mark.parametrize("share", [0, 0.001, 0.01, 0.5, 0.99, 0.999])
def test_truncated_shard(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(RecordsError, match=rf"^'{path}' .*(cut short|cannot be read).*\.$"):
        read_shard(path)


def test_shard_without_its_last_byte(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RecordsError, match="cut short"):
        read_shard(path)


def test_shard_with_a_wrong_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(RecordsError, match="cannot be read as a shard"):
        read_shard(path)


def test_shard_that_goes_on(path):
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(RecordsError, match="goes on for 4 bytes"):
        read_shard(path)


def framed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def framed_header(header: str) -> bytes:
    return framed(MAGIC + len(header).to_bytes(4, "little") + header.encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut short"),
        (b"no zstd at all", "cannot be read as a shard"),
        (framed(b"something else"), "does not begin with"),
        (framed(b""), "does not begin with"),
        (framed_header("{]"), "damaged header"),
        (framed_header("[]"), "damaged header"),
        (framed_header('{"version": 2, "games": 0, "positions": 0, "numbers": {}}'), "is a shard of version 2"),
        (framed_header('{"version": 1, "games": 1, "positions": 1, "numbers": {}}'), "expected 113"),
    ],
)
def test_files_that_are_no_shards(tmp_path, data, message):
    path = shard_path(tmp_path, 0)
    path.write_bytes(data)
    with pytest.raises(RecordsError, match=message):
        read_shard(path)


def test_missing_file(tmp_path):
    for read in (read_shard, read_header):
        with pytest.raises(RecordsError, match="cannot be read"):
            read(tmp_path / "none.zst")


def test_a_failing_disk_leaves_what_was_there(path, monkeypatch):
    before = path.read_bytes()

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_shard(path, random_records(10))
    assert path.read_bytes() == before


def test_paths_are_sorted_and_shards_only(tmp_path):
    for name in ("shard-000010.zst", "shard-000009.zst", "shard-000011.zst.99.part", "manifest.json"):
        (tmp_path / name).touch()
    assert shard_paths(tmp_path) == [shard_path(tmp_path, 9), shard_path(tmp_path, 10)]
    with pytest.raises(RecordsError, match="is no folder"):
        shard_paths(tmp_path / "none")
