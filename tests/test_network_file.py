"""Network files: what is written is read back, and whatever else is read is refused with a sentence."""

import dataclasses
import io
import os
import re
import struct
import tracemalloc
from functools import cache

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nnue_jax.architecture import LAYER_STACKS, MAX_WIDTH, Architecture, architecture_of
from nnue_jax.network_file import (
    QUICK_LEVEL,
    Network,
    NetworkError,
    parse_network,
    read_network,
    serialize_network,
    write_network,
)
from nnue_jax.network_stream import LEB128_MAGIC
from tests.reference import leb128
from tests.support.networks import random_network

WIDTHS = (32, 128, 256)


def assert_equal(first: Network, second: Network) -> None:
    for field in dataclasses.fields(Network):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if field.name != "stacks":
            assert np.array_equal(one, other), field.name
    for one, other in zip(first.stacks, second.stacks, strict=True):
        for name, array in vars(one).items():
            assert np.array_equal(array, getattr(other, name)), name


def compressed(data: bytes, checksum: bool = False) -> bytes:
    return zstandard.ZstdCompressor(level=1, write_checksum=checksum).compress(data)


@cache
def serialized(width: int) -> bytes:
    return serialize_network(random_network(width))


@pytest.fixture
def stream() -> bytes:
    """The uncompressed stream of the smallest network."""
    return serialized(32)


def refusal(path) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(NetworkError) as error:
        read_network(path)
    sentence = str(error.value)
    assert str(path) in sentence
    assert sentence.endswith(".")
    return sentence


def refusal_of(tmp_path, data: bytes) -> str:
    path = tmp_path / "refused.nnue"
    path.write_bytes(data)
    return refusal(path)


def refusals_of(tmp_path, data: bytes) -> list[str]:
    """What is said of the same data uncompressed and compressed."""
    return [refusal_of(tmp_path, data), refusal_of(tmp_path, compressed(data))]


@pytest.mark.parametrize("width", WIDTHS)
def test_round_trip(width):
    network = random_network(width)
    assert_equal(parse_network(serialize_network(network)), network)


def test_round_trip_of_extreme_values():
    network = random_network(32, extreme=True)
    assert np.abs(network.transformer_bias.astype(int)).max() > 30_000
    assert_equal(parse_network(serialize_network(network)), network)


@pytest.mark.parametrize("level", [QUICK_LEVEL, 19])
def test_written_file_is_read_back(tmp_path, level):
    network = random_network(32)
    path = tmp_path / "net.nnue"
    write_network(network, path, level)
    assert_equal(read_network(path), network)
    assert [file.name for file in tmp_path.iterdir()] == ["net.nnue"]
    assert zstandard.get_frame_parameters(path.read_bytes()[:18]).content_size == len(serialize_network(network))


def test_writing_replaces_a_file_behind_a_link(tmp_path):
    path, link = tmp_path / "net.nnue", tmp_path / "link.nnue"
    path.write_bytes(b"old")
    link.symlink_to(path)
    write_network(random_network(32), link, QUICK_LEVEL)
    assert read_network(path).description == b"random, width 32"
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/net.nnue", "No such file or directory"),
        ("file/net.nnue", "Not a directory"),
        ("", "that is no regular file"),
        ("pipe", "that is no regular file"),
        (300 * "x", "File name too long"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(tmp_path, name, reason):
    (tmp_path / "file").write_bytes(b"precious")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NetworkError, match=f"^The network cannot be written to '.*{name}': {reason}.$"):
        write_network(random_network(32), tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "pipe"}
    assert (tmp_path / "file").read_bytes() == b"precious"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    class FullDisk(io.FileIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    path = tmp_path / "net.nnue"
    path.write_bytes(b"old")
    monkeypatch.setattr("nnue_jax.network_file.open", FullDisk, raising=False)
    with pytest.raises(NetworkError, match="No space left on device"):
        write_network(random_network(32), path)
    assert [file.name for file in tmp_path.iterdir()] == ["net.nnue"]
    assert path.read_bytes() == b"old"


def test_arrays_that_were_read_cannot_be_changed(stream):
    network = parse_network(stream)
    for array in (network.transformer_bias, network.piece_square_weight, network.stacks[3].fc1_bias):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("is_compressed", [False, True])
def test_reading_takes_no_more_than_twice_the_size(tmp_path, is_compressed):
    data = serialize_network(random_network(128, threats=True))
    path = tmp_path / "net.nnue"
    path.write_bytes(compressed(data) if is_compressed else data)
    tracemalloc.start()
    try:
        network = read_network(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert network.architecture.threats
    assert network.piece_square_weight.nbytes + network.threat_weight.nbytes < peak <= 2 * len(data)


def test_plain_and_split_streams_are_read(tmp_path, stream):
    """Uncompressed, in one zstd frame, and in several, with a skippable one between."""
    skippable = struct.pack("<II", 0x184D2A50, 5) + b"hello"
    middle = len(stream) // 2
    path = tmp_path / "net.nnue"
    for data in (
        stream,
        compressed(stream),
        compressed(stream[:middle]) + compressed(stream[middle:]),
        compressed(stream[:7]) + skippable + compressed(stream[7:middle]) + compressed(stream[middle:]),
    ):
        path.write_bytes(data)
        assert_equal(read_network(path), random_network(32))


@pytest.mark.parametrize("threats", [False, True])
def test_hashes_name_the_architecture(threats):
    hashes = {}
    for width in range(32, MAX_WIDTH + 1, 32):
        architecture = Architecture(width, threats)
        assert architecture_of(architecture.transformer_hash) == architecture
        hashes[architecture.network_hash] = width
    assert len(hashes) == MAX_WIDTH // 32
    assert architecture_of(Architecture(48, threats).transformer_hash) is None
    assert architecture_of(Architecture(MAX_WIDTH + 32, threats).transformer_hash) is None


def test_refuses_a_missing_file(tmp_path):
    assert "cannot be read: No such file or directory." in refusal(tmp_path / "missing.nnue")


def test_refuses_what_is_no_file(tmp_path):
    assert "cannot be read: it is a directory; expected a file." in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be read: it is no regular file; expected a file." in refusal(tmp_path / "pipe")


def test_refuses_an_empty_file(tmp_path):
    assert "the file is empty; expected a network." in refusal_of(tmp_path, b"")
    assert "the file version ends early: it needs 4 bytes and 0 are left." in refusal_of(tmp_path, compressed(b""))


@pytest.mark.parametrize("data", [b"This is not a network.", b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(1000)])
def test_refuses_what_is_no_network(tmp_path, data):
    plain, packed = refusals_of(tmp_path, data)
    found = data[:4].hex(" ")
    assert f"no network at all, as it begins with {found}; expected 28 b5 2f fd for zstd, or fa 8a 44 6a." in plain
    assert f"no network at all, as its zstd stream holds data that begin with {found}; expected fa 8a 44 6a." in packed


def with_word(stream: bytes, offset: int, change: int) -> bytes:
    word = struct.unpack_from("<I", stream, offset)[0] ^ change
    return stream[:offset] + struct.pack("<I", word) + stream[offset + 4 :]


def test_refuses_wrong_hashes(tmp_path, stream):
    transformer_hash = 12 + len(random_network(32).description)
    first_stack = stream.index(struct.pack("<I", Architecture(32).stack_hash))
    stack_bytes = (len(stream) - first_stack) // LAYER_STACKS
    other = Architecture(32).transformer_hash ^ Architecture(32, threats=True).transformer_hash
    network_hash = f"{Architecture(32).network_hash:#010x}"
    cases = [
        (0, 1, ["the file version is 0x6a448afb; expected 0x6a448afa."]),
        (4, 1, ["the network hash is ", f"; expected {network_hash} for (16536, 32, 32, 32, 1)."]),
        (transformer_hash, 1, ["belongs to no known architecture; expected that of a width of 32, 64, ..., 4096"]),
        (transformer_hash, 2 * (32 ^ 64), [f"hash is {network_hash}; expected ", "(16536, 64, 32, 32, 1)."]),
        (transformer_hash, other, [f"hash is {network_hash}; expected ", "(62083, 32, 32, 32, 1)."]),
        *(
            (first_stack + number * stack_bytes, 1 << 31, [f"the hash of layer stack {number} is 0x", "; expected 0x"])
            for number in (0, 7, LAYER_STACKS - 1)
        ),
    ]
    for offset, change, words in cases:
        for sentence in refusals_of(tmp_path, with_word(stream, offset, change)):
            assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    ("left", "field"),
    [
        (3, "file version"),
        (6, "network hash"),
        (11, "description length"),
        (20, "description"),
        (30, "feature transformer hash"),
        (35, "transformer bias"),
        (55, "transformer bias"),
        (80, "transformer bias"),
        (5000, "piece-square weight"),
        (600_000, "piece-square PSQT"),
        (-1, "layer stack 15"),
        (-20_000, "layer stack 10"),
    ],
)
def test_refuses_truncated_streams(tmp_path, stream, left, field):
    for sentence in refusals_of(tmp_path, stream[:left]):
        assert re.search(rf"the {field} ends early: it needs \d+ bytes and \d+ are left\.$", sentence)


def test_a_cut_off_field_is_counted(tmp_path, stream):
    for sentence in refusals_of(tmp_path, stream[:-10]):
        assert sentence.endswith("the layer stack 15 ends early: it needs 128 bytes and 118 are left.")


@given(st.integers(0, 2_000_000))
def test_refuses_every_beginning(left):
    data = serialized(32)
    with pytest.raises(NetworkError):
        parse_network(data[: left % len(data)])


@given(st.integers(0, 200), st.binary(min_size=1, max_size=8))
def test_overwritten_headers_are_read_or_refused(offset, patch):
    data = serialized(32)
    try:
        network = parse_network(data[:offset] + patch + data[offset + len(patch) :])
    except NetworkError:
        return
    assert network.architecture == Architecture(32)


@pytest.mark.parametrize("checksum", [False, True])
def test_refuses_truncated_compression(tmp_path, stream, checksum):
    """Even where only an end mark is missing, after all of the data."""
    writer = zstandard.ZstdCompressor(level=1, write_checksum=checksum).compressobj()
    marked = writer.compress(stream) + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + writer.flush()
    for whole in (compressed(stream, checksum), marked, compressed(stream) + compressed(b"")):
        for left in (4, 5, 12, 1000, len(whole) // 2, len(whole) - 4, len(whole) - 1):
            sentence = refusal_of(tmp_path, whole[:left])
            assert f"the zstd stream is cut off: the file has {left} bytes; expected more" in sentence


def test_refuses_damaged_compression(tmp_path, stream):
    whole = compressed(stream, checksum=True)
    for start, end in ((4, 40), (20, 40), (10_000, 10_100)):
        damaged = whole[:start] + bytes(255 - byte for byte in whole[start:end]) + whole[end:]
        assert "the zstd stream is damaged" in refusal_of(tmp_path, damaged)
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    assert "the zstd stream is damaged (zstd decompress error: Restored data doesn't match checksum)." in refusal_of(
        tmp_path, damaged
    )


def test_refuses_trailing_bytes(tmp_path, stream):
    for extra in (1, 100_000):
        after = bytes(extra)
        for data in (stream + after, compressed(stream + after), compressed(stream) + compressed(after)):
            assert f"the number of bytes after the last layer is {extra}; expected 0." in refusal_of(tmp_path, data)
    for after in (b"\0", b"garbage", stream):
        for data in (compressed(stream), compressed(stream, checksum=True)):
            sentence = refusal_of(tmp_path, data + after)
            assert f"the number of bytes after the last zstd frame is {len(after)}; expected 0." in sentence


def replaced_bias(stream: bytes, payload: bytes, magic: bytes = LEB128_MAGIC, length: int | None = None) -> bytes:
    """The stream with another LEB128 block for the transformer bias."""
    start = stream.index(LEB128_MAGIC)
    length_at = start + len(LEB128_MAGIC)
    end = length_at + 4 + struct.unpack_from("<I", stream, length_at)[0]
    block = magic + struct.pack("<I", len(payload) if length is None else length) + payload
    return stream[:start] + block + stream[end:]


def test_refuses_broken_blocks(tmp_path, stream):
    good = leb128.encode([5] * 32)
    read = parse_network(replaced_bias(stream, good))
    assert read.transformer_bias.tolist() == [5] * 32
    cases = {
        "is not a LEB128 block; expected it to begin with C": replaced_bias(stream, good, magic=b"COMPRESSED_LEB127"),
        "has 31 values; expected 32": replaced_bias(stream, good[1:]),
        "has 33 values; expected 32": replaced_bias(stream, good + b"\0"),
        "has 0 values; expected 32": replaced_bias(stream, b""),
        "transformer bias ends inside a value; expected signed LEB128": replaced_bias(stream, good[1:] + b"\x80"),
        "transformer bias has a value of more than 5 bytes": replaced_bias(stream, good[1:] + b"\x80" * 5 + b"\0"),
        "does not fit int16": replaced_bias(stream, leb128.encode([5] * 31 + [32768])),
        "takes 4294967295 bytes; expected at most 5 for each of 32 values": replaced_bias(
            stream, good, length=0xFFFFFFFF
        ),
    }
    for reason, data in cases.items():
        assert all(reason in sentence for sentence in refusals_of(tmp_path, data))
    refused = [refusal_of(tmp_path, data) for data in cases.values()]
    assert len(set(refused)) == len(refused)


def test_accepts_the_ends_of_a_type(stream):
    ends = [-32768, 32767] * 16
    assert parse_network(replaced_bias(stream, leb128.encode(ends))).transformer_bias.tolist() == ends
