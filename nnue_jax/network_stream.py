"""The bytes of a network file in order: from disk, through zstd, into the arrays that keep them.

Nothing is held twice. Whatever the file lacks or has too much is refused with a sentence that names the field.
"""

import math
import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import zstandard

from nnue_jax import leb128

LEB128_MAGIC = b"COMPRESSED_LEB128"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"  # after a byte 0x50 to 0x5f
_MAX_FRAME_HEADER_BYTES = 18
_PIECE_BYTES = 1 << 13


class NetworkError(ValueError):
    """A network that cannot be read or written; the message is a sentence that says why."""


class ZstdStream:
    """What a file of zstd frames decompresses to. NetworkError where it is damaged, cut off, or something follows."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._size = file.seek(0, 2)
        self._end = _end_of_frames(file, self._size)
        file.seek(0)
        # The decompressor calls our `read`: it would lose what it has decoded when it meets bytes that are no frame.
        self._decompressed = zstandard.ZstdDecompressor().stream_reader(self, read_across_frames=True)

    def read(self, size: int) -> bytes:
        """Compressed bytes."""
        return self._file.read(min(size, self._end - self._file.tell()))

    def readinto(self, buffer) -> int:
        """Fill a buffer from its beginning with decompressed bytes; returns their number, 0 at the end."""
        try:
            count = self._decompressed.readinto(buffer)
        except zstandard.ZstdError as error:
            raise NetworkError(f"the zstd stream is damaged ({error}).") from error
        if count == 0:
            self._check_end()
        return count

    def _check_end(self) -> None:
        # The decompressor takes a stream without its last bytes, or its checksum, for a short one.
        if self._end > self._size:
            raise NetworkError(
                f"the zstd stream is cut off: the file has {self._size} bytes; expected more to end the last frame."
            )
        if self._end < self._size:
            raise NetworkError(
                f"the number of bytes after the last zstd frame is {self._size - self._end}; expected 0."
            )


def _end_of_frames(file: BinaryIO, size: int) -> int:
    """Where the zstd frames with which a file begins end; beyond `size` if the file is cut off.

    Only the headers of frames and blocks are read.
    """
    end = 0
    while end < size:
        file.seek(end)
        header = file.read(_MAX_FRAME_HEADER_BYTES)
        if header[1:4] == _SKIPPABLE_MAGIC and header[0] >> 4 == 5:
            end += 8 + int.from_bytes(header[4:8], "little") if len(header) >= 8 else size + 1
        elif header.startswith(ZSTD_MAGIC):
            try:
                end += zstandard.frame_header_size(header)
                has_checksum = zstandard.get_frame_parameters(header).has_checksum
            except zstandard.ZstdError:
                return size + 1  # the header is cut off or damaged; the decompressor tells which
            end = _end_of_blocks(file, end, size) + 4 * has_checksum
        else:
            return end
    return end


def _end_of_blocks(file: BinaryIO, end: int, size: int) -> int:
    """Where the blocks of a frame that begin at `end` end; beyond `size` if the file is cut off."""
    is_last = False
    while not is_last:
        file.seek(end)
        header = file.read(3)
        if len(header) < 3:
            return size + 1
        fields = int.from_bytes(header, "little")
        is_last, is_run = fields & 1, (fields >> 1) & 3 == 1
        end += 3 + (1 if is_run else fields >> 3)
    return end


class Fields:
    """Takes one field after the other from a stream, which is anything with `readinto`."""

    def __init__(self, stream):
        self._stream = stream

    def _fill(self, view: np.ndarray) -> int:
        """Number of bytes read into a uint8 array; less than its size only where the stream ends."""
        filled = 0
        while filled < view.size and (count := self._stream.readinto(view[filled:])):
            filled += count
        return filled

    def _pieces(self, count: int, name: str) -> Iterator[bytes]:
        """The next `count` bytes. A wrong `count` takes no memory."""
        piece = np.empty(min(count, _PIECE_BYTES), np.uint8)
        for start in range(0, count, _PIECE_BYTES):
            wanted = piece[: count - start]
            filled = self._fill(wanted)
            if filled < wanted.size:
                raise _ends_early(name, count, start + filled)
            yield wanted.tobytes()

    def take(self, count: int, name: str) -> bytes:
        return b"".join(self._pieces(count, name))

    def peek(self, limit: int) -> bytes:
        """What follows, up to `limit` bytes, to tell what a refused stream may be."""
        rest = np.empty(limit, np.uint8)
        return rest[: self._fill(rest)].tobytes()

    def u32(self, name: str) -> int:
        return struct.unpack("<I", self.take(4, name))[0]

    def expect_u32(self, expected: int, name: str) -> None:
        found = self.u32(name)
        if found != expected:
            raise NetworkError(f"the {name} is {found:#010x}; expected {expected:#010x}.")

    def expect_end(self) -> None:
        piece = np.empty(_PIECE_BYTES, np.uint8)
        extra = 0
        while count := self._fill(piece):
            extra += count
        if extra:
            raise NetworkError(f"the number of bytes after the last layer is {extra}; expected 0.")

    def array(self, shape: tuple[int, ...], dtype: str, name: str) -> np.ndarray:
        """An array that is stored as it is; read only."""
        array = np.empty(shape, dtype)
        filled = self._fill(array.reshape(-1).view(np.uint8))
        if filled < array.nbytes:
            raise _ends_early(name, array.nbytes, filled)
        array.flags.writeable = False
        return array

    def leb128(self, shape: tuple[int, ...], dtype: str, name: str) -> np.ndarray:
        """An array that is stored as a LEB128 block: magic, u32 length of the payload, payload; read only."""
        if self.take(len(LEB128_MAGIC), name) != LEB128_MAGIC:
            raise NetworkError(f"the {name} is not a LEB128 block; expected it to begin with {LEB128_MAGIC.decode()}.")
        array = np.empty(math.prod(shape), dtype)
        length = self.u32(name)
        if length > array.size * leb128.MAX_BYTES:
            raise NetworkError(
                f"the {name} takes {length} bytes; expected at most {leb128.MAX_BYTES} for each of {array.size} values."
            )
        limits = np.iinfo(dtype)
        found = 0
        try:
            for values in leb128.decode(self._pieces(length, name)):
                if values.min() < limits.min or values.max() > limits.max:
                    raise NetworkError(f"the {name} holds a value that does not fit {limits.dtype}.")
                room = array[found : found + values.size]
                room[:] = values[: room.size]
                found += values.size
        except leb128.Leb128Error as error:
            raise NetworkError(f"the {name} {error}; expected signed LEB128.") from error
        if found != array.size:
            raise NetworkError(f"the {name} has {found} values; expected {array.size}.")
        array.flags.writeable = False
        return array.reshape(shape)


def _ends_early(name: str, needed: int, left: int) -> NetworkError:
    return NetworkError(f"the {name} ends early: it needs {needed} bytes and {left} are left.")
