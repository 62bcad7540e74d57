"""The journal of a run over a file of positions: what was found before an interruption, for the run that goes on.

    header    magic and version, identity of the run [32], checksum
    record    magic, block number, checksum of its input, number of its first position and of its positions, number of
              bytes, checksum of all this and of the bytes; then the bytes that say what was found

A block's positions may be noted in several records, one run of them after the other. A record is written at once and
believed only if its checksum is right. What a run that was killed has left half written is cut off by the next.
"""

import os
import struct
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path

FAMILY = b"jaxfish "
MAGIC = FAMILY + b"journal 1\n"
IDENTITY_BYTES = 32
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = len(MAGIC) + IDENTITY_BYTES + _CHECKSUM.size

RECORD_MAGIC = 0x4B4C424A
_RECORD = struct.Struct("<IQIIIQI")


class JournalError(ValueError):
    """A file that stands where the journal should be; the message is a sentence."""


@dataclass(frozen=True)
class _Place:
    """Where in the file lies what was found about some positions of a block."""

    offset: int
    size: int
    input_checksum: int
    first: int
    positions: int

    @property
    def end(self) -> int:
        return self.first + self.positions


class Journal:
    """An open journal; records may be added and looked up by several threads.

    is_foreign: whether the file that was there belonged to another run or version, and was discarded.
    """

    def __init__(self, path: Path, identity: bytes):
        """Open or create the file at `path` for runs with this identity, IDENTITY_BYTES long.

        JournalError if the file is there and is no journal.
        """
        self.path = path
        self.is_foreign = False
        self._lock = threading.Lock()
        self._places: dict[int, list[_Place]] = {}
        self._file = open(path, "r+b" if path.exists() else "w+b", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._header = _header(identity)
        self._end = self._read()
        self._file.truncate(self._end)

    def __len__(self) -> int:
        """Number of positions."""
        return sum(places[-1].end for places in self._places.values())

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

    def _read_record(self, start: int, file_size: int) -> int | None:
        """Note the record at `start`; returns where it ends, None if there is no sound one."""
        head = self._take(start, _RECORD.size)
        if len(head) < _RECORD.size:
            return None
        magic, block, input_checksum, first, positions, size, checksum = _RECORD.unpack(head)
        place = _Place(start + _RECORD.size, size, input_checksum, first, positions)
        if magic != RECORD_MAGIC or place.offset + size > file_size:
            return None
        data = self._take(place.offset, size)
        if len(data) < size or checksum != _checksum(head, data):
            return None
        self._note(block, place)
        return place.offset + size

    def _note(self, block: int, place: _Place) -> None:
        """What begins a block replaces what was known of it; else it must go on where the last record ended."""
        places = self._places.get(block, [])
        if place.first == 0:
            self._places[block] = [place]
        elif places and (places[-1].end, places[-1].input_checksum) == (place.first, place.input_checksum):
            places.append(place)

    def add(self, block: int, input_checksum: int, first: int, positions: int, data: bytes) -> None:
        """Append what was found about so many positions of a block, from number `first` of it on."""
        head = _RECORD.pack(RECORD_MAGIC, block, input_checksum, first, positions, len(data), 0)
        head = head[: -_CHECKSUM.size] + _CHECKSUM.pack(_checksum(head, data))
        with self._lock:
            self._put(self._end, head + data)
            self._note(block, _Place(self._end + _RECORD.size, len(data), input_checksum, first, positions))
            self._end += _RECORD.size + len(data)

    def find(self, block: int, input_checksum: int) -> list[tuple[int, bytes]]:
        """(number of positions, what was found about them) of each record of a block whose input is still the same.

        In order, from the first position of the block on; empty if there is nothing.
        """
        with self._lock:
            places = self._places.get(block, [])
            return [
                (place.positions, self._take(place.offset, place.size))
                for place in places
                if place.input_checksum == input_checksum
            ]

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


def _checksum(head: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(head[: -_CHECKSUM.size]))
