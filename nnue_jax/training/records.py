"""Training positions on disk: what is known of a position, and the files that hold many of them.

RECORD, 42 bytes, little-endian
    packed    PACKED   the position
    score     i2       of a search, in internal units, from the side to move's view
    ply       u2       plies since the game began
    result    i1       of the game, from the side to move's view: 1 won, 0 drawn, -1 lost
    depth     u1       plies of that search; 0 if not known

A folder of training data has shards, files that are written whole and never changed, and `manifest.json`, which tells
how they were made. A shard is one zstd frame with a checksum, and holds

    8 bytes           MAGIC
    u4                length of the header
    the header        JSON, UTF-8: {"version": 1, "games": g, "positions": n, "numbers": {...}}
    [g] u2            number of records of each game
    [n] RECORD        game after game, in the order of play

`numbers` are counts that its maker wants to keep, such as those of searches. A game may have no record at all.
"""

import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import zstandard

from games.xiangqi.packed import PACKED

RECORD = np.dtype([("packed", PACKED), ("score", "<i2"), ("ply", "<u2"), ("result", "i1"), ("depth", "u1")])

MAGIC = b"JAXSHARD"
VERSION = 1
COMPRESSION_LEVEL = 6
SHARD_PATTERN = "shard-*.zst"
MANIFEST_NAME = "manifest.json"

_PREFIX = struct.Struct(f"<{len(MAGIC)}sI")
_MAX_HEADER_BYTES = 1 << 16
_LENGTH = np.dtype("<u2")


class RecordsError(ValueError):
    """Training data that cannot be read or do not fit together; the message is a sentence."""


@dataclass(frozen=True)
class Header:
    """What a shard says of itself. numbers: counts by name."""

    games: int
    positions: int
    numbers: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Shard:
    """records: [n] RECORD. game_lengths: [g] int64, number of records of each game."""

    records: np.ndarray
    game_lengths: np.ndarray
    header: Header


def shard_path(folder: str | os.PathLike, number: int) -> Path:
    """Where the shard of this number belongs."""
    return Path(folder) / f"shard-{number:06}.zst"


def shard_paths(folder: str | os.PathLike) -> list[Path]:
    """The shards of a folder, by number; RecordsError if there is no such folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RecordsError(f"'{folder}' is no folder; expected one with training data.")
    return sorted(folder.glob(SHARD_PATTERN))


def game_lengths_of(records: np.ndarray) -> np.ndarray:
    """[g] int64, number of records of each game, when all that is known is that plies rise within a game."""
    if len(records) == 0:
        return np.zeros(0, np.int64)
    plies = records["ply"].astype(np.int64)
    starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(plies) <= 0), [len(records)]])
    return np.diff(starts)


def write_whole(path: str | os.PathLike, data: bytes) -> None:
    """Write a file such that after a crash at any moment it is either there with all of its data or not at all."""
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def write_shard(
    path: str | os.PathLike,
    records: np.ndarray,
    game_lengths: Sequence[int] | None = None,
    numbers: dict[str, int] | None = None,
) -> None:
    """Write [n] RECORD of whole games; without their lengths, a game ends where the ply does not rise."""
    lengths = np.asarray(game_lengths_of(records) if game_lengths is None else game_lengths, np.int64)
    if lengths.sum() != len(records):
        raise RecordsError(f"The games have {lengths.sum()} records in all, but there are {len(records)}.")
    if len(lengths) and lengths.max() > np.iinfo(_LENGTH).max:
        raise RecordsError(f"A game has {lengths.max()} records; expected {np.iinfo(_LENGTH).max} at most.")
    header = {"version": VERSION, "games": len(lengths), "positions": len(records), "numbers": numbers or {}}
    head = json.dumps(header).encode()
    data = b"".join(
        [
            _PREFIX.pack(MAGIC, len(head)),
            head,
            lengths.astype(_LENGTH).tobytes(),
            np.ascontiguousarray(records, RECORD).tobytes(),
        ]
    )
    write_whole(path, zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True).compress(data))


def read_shard(path: str | os.PathLike) -> np.ndarray:
    """[n] RECORD; RecordsError if the file is not a whole shard."""
    return read_games(path).records


def read_games(path: str | os.PathLike) -> Shard:
    """A shard with the borders of its games; RecordsError if the file is not a whole shard."""
    data = memoryview(_decompressed(path))
    header, start = _parse_header(data, path)
    lengths_end = start + header.games * _LENGTH.itemsize
    expected = lengths_end + header.positions * RECORD.itemsize
    if len(data) != expected:
        raise RecordsError(f"'{path}' holds {len(data)} bytes of data; expected {expected}.")
    game_lengths = np.frombuffer(data[start:lengths_end], _LENGTH).astype(np.int64)
    if game_lengths.sum() != header.positions:
        raise RecordsError(
            f"'{path}' has games of {game_lengths.sum()} records in all, but {header.positions} records."
        )
    return Shard(np.frombuffer(data[lengths_end:], RECORD).copy(), game_lengths, header)


def read_header(path: str | os.PathLike) -> Header:
    """What a shard says of itself, without reading it to the end; RecordsError if it is none."""
    try:
        with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            start = stream.read(_PREFIX.size + _MAX_HEADER_BYTES)
    except (OSError, zstandard.ZstdError) as error:
        raise RecordsError(f"'{path}' cannot be read as a shard of training data: {error}.") from error
    return _parse_header(memoryview(start), path)[0]


def _decompressed(path: str | os.PathLike) -> bytes:
    """All of a file's content, whose checksum is right."""
    try:
        compressed = Path(path).read_bytes()
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        data = decompressor.decompress(compressed)
    except (OSError, zstandard.ZstdError) as error:
        raise RecordsError(f"'{path}' cannot be read as a shard of training data: {error}.") from error
    if not decompressor.eof:
        raise RecordsError(f"'{path}' ends after {len(compressed)} bytes, in the middle of its data; it was cut short.")
    if decompressor.unused_data:
        raise RecordsError(f"'{path}' goes on for {len(decompressor.unused_data)} bytes after its data.")
    return data


def _parse_header(data: memoryview, path: str | os.PathLike) -> tuple[Header, int]:
    """The header, and where it ends."""
    if len(data) < _PREFIX.size or bytes(data[: len(MAGIC)]) != MAGIC:
        raise RecordsError(f"'{path}' is no shard of training data: it does not begin with {MAGIC.decode()}.")
    end = _PREFIX.size + _PREFIX.unpack_from(data)[1]
    try:
        fields = json.loads(bytes(data[_PREFIX.size : end]))
        version = fields["version"]
        header = Header(int(fields["games"]), int(fields["positions"]), dict(fields["numbers"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RecordsError(f"'{path}' has a damaged header ({error}).") from error
    if version != VERSION:
        raise RecordsError(f"'{path}' is a shard of version {version}; expected {VERSION}.")
    return header, end
