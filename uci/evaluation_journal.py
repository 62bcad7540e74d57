"""The journal of an evaluation: what has been evaluated already, kept for a run that goes on after an interruption.

    header            magic and version, identity of the network [32], checksum
    record per block  magic, block number, checksum of its input, number of positions, checksum of the record; then
                      psqt and positional, int32

A record is written at once and believed only if its checksum is right. What a run that was killed has left
half written is cut off by the next.
"""

import os
import struct
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FAMILY = b"jaxfish evaluations "
MAGIC = FAMILY + b"1\n"
IDENTITY_BYTES = 32
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = len(MAGIC) + IDENTITY_BYTES + _CHECKSUM.size

RECORD_MAGIC = 0x4B4C424A
_RECORD = struct.Struct("<IQIQI")  # magic, block, checksum of its input, positions, checksum of all this and the values
_VALUE_BYTES = 4


class JournalError(ValueError):
    """A file that stands where the journal should be; the message is a sentence."""


@dataclass(frozen=True)
class _Place:
    """Where the values of a block stand in the file."""

    offset: int
    input_checksum: int
    positions: int


class Journal:
    """An open journal; blocks may be added and looked up by several threads.

    is_foreign: whether the file that was there belonged to another network or version, and was discarded.
    """

    def __init__(self, path: Path, identity: bytes):
        """Open or create the file at `path` for the network with this identity, IDENTITY_BYTES long.

        JournalError if the file is there and is no journal.
        """
        self.path = path
        self.is_foreign = False
        self._lock = threading.Lock()
        self._places: dict[int, _Place] = {}
        self._file = open(path, "r+b" if path.exists() else "w+b", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._header = _header(identity)
        self._end = self._read()
        self._file.truncate(self._end)

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self._places)

    def _read(self) -> int:
        """Note the places of all sound records; returns where the last ends."""
        size = os.fstat(self._file.fileno()).st_size
        found = self._take(0, HEADER_BYTES)
        if found != self._header:
            if found[: len(FAMILY)] != FAMILY[: len(found)]:
                self.close()
                raise JournalError(f"'{self.path}' is in the way: it is no journal of jaxfish. Move it elsewhere.")
            self.is_foreign = size >= HEADER_BYTES
            self._file.truncate(0)
            self._put(0, self._header)
            return HEADER_BYTES
        end = HEADER_BYTES
        while (place_end := self._read_record(end, size)) is not None:
            end = place_end
        return end

    def _read_record(self, start: int, size: int) -> int | None:
        """Note the record at `start`; returns where it ends, None if there is no sound one."""
        head = self._take(start, _RECORD.size)
        if len(head) < _RECORD.size:
            return None
        magic, block, input_checksum, positions, checksum = _RECORD.unpack(head)
        offset = start + _RECORD.size
        values_size = 2 * _VALUE_BYTES * positions
        if magic != RECORD_MAGIC or offset + values_size > size:
            return None
        values = self._take(offset, values_size)
        if len(values) < values_size or checksum != _checksum(head, values):
            return None
        self._places[block] = _Place(offset, input_checksum, positions)
        return offset + values_size

    def add(self, block: int, input_checksum: int, psqt: np.ndarray, positional: np.ndarray) -> None:
        """Append a block's values, int32 [n]; a later record of the same block replaces an earlier one."""
        values = psqt.astype("<i4").tobytes() + positional.astype("<i4").tobytes()
        head = _RECORD.pack(RECORD_MAGIC, block, input_checksum, len(psqt), 0)
        head = head[: -_CHECKSUM.size] + _CHECKSUM.pack(_checksum(head, values))
        with self._lock:
            self._put(self._end, head + values)
            self._places[block] = _Place(self._end + _RECORD.size, input_checksum, len(psqt))
            self._end += _RECORD.size + len(values)

    def find(self, block: int, input_checksum: int, positions: int) -> tuple[np.ndarray, np.ndarray] | None:
        """(psqt, positional) of a block whose input is still the same; None if there is none."""
        place = self._places.get(block)
        if place is None or (place.input_checksum, place.positions) != (input_checksum, positions):
            return None
        with self._lock:
            values = self._take(place.offset, 2 * _VALUE_BYTES * positions)
        psqt, positional = np.frombuffer(values, "<i4").reshape(2, positions).astype(np.int32)
        return psqt, positional

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        self.path.unlink()

    def _take(self, offset: int, size: int) -> bytes:
        """What the file has of `size` bytes at `offset`."""
        self._file.seek(offset)
        parts = []
        while size > 0 and (part := self._file.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _put(self, offset: int, data: bytes) -> None:
        self._file.seek(offset)
        written = 0
        while written < len(data):  # one write, unless the system takes only a part
            written += self._file.write(memoryview(data)[written:])


def _header(identity: bytes) -> bytes:
    if len(identity) != IDENTITY_BYTES:
        raise ValueError(f"The identity has {len(identity)} bytes; expected {IDENTITY_BYTES}.")
    start = MAGIC + identity
    return start + _CHECKSUM.pack(zlib.crc32(start))


def _checksum(head: bytes, values: bytes) -> int:
    return zlib.crc32(values, zlib.crc32(head[: -_CHECKSUM.size]))
