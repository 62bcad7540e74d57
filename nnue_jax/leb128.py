"""Signed LEB128, a few kilobytes at a time, so that blocks of megabytes need no temporary arrays of their size.

A value is a run of bytes with seven bits each, lowest first; bit 7 says that another byte follows, and bit 6 of the
last byte is the sign.
"""

from collections.abc import Iterable, Iterator

import numpy as np

PIECE_BYTES = 1 << 13
MAX_BYTES = 5  # of a value that fits int32


class Leb128Error(ValueError):
    """A payload that is not signed LEB128; the message is what a sentence about it says."""


def decode(pieces: Iterable[bytes]) -> Iterator[np.ndarray]:
    """int64 arrays that together hold all values of a payload, which comes in pieces cut anywhere.

    Leb128Error if the last value is cut off or one is too long.
    """
    carry = b""
    for piece in pieces:
        data = np.frombuffer(carry + piece, np.uint8)
        ends = np.flatnonzero(data < 0x80)
        complete = int(ends[-1]) + 1 if ends.size else 0
        carry = data[complete:].tobytes()
        if len(carry) >= MAX_BYTES:
            raise Leb128Error(f"has a value of more than {MAX_BYTES} bytes")
        if ends.size:
            yield _decode_complete(data[:complete], ends)
    if carry:
        raise Leb128Error("ends inside a value")


def _decode_complete(data: np.ndarray, last: np.ndarray) -> np.ndarray:
    """[n] int64 from bytes that are n whole values, of which the last bytes are at `last`."""
    first = np.concatenate([[0], last[:-1] + 1])
    length = last - first + 1
    if length.max() > MAX_BYTES:
        raise Leb128Error(f"has a value of more than {MAX_BYTES} bytes")
    place = np.arange(data.size) - np.repeat(first, length)
    values = np.add.reduceat((data & 0x7F).astype(np.int64) << (7 * place), first)
    negative = (data[last] & 0x40) != 0
    return values - np.where(negative, np.int64(1) << (7 * length), 0)


def encode(values: np.ndarray) -> bytes:
    """An integer array in C order, each value as short as possible."""
    flat = values.reshape(-1)
    return b"".join(_encode_piece(flat[i : i + PIECE_BYTES]) for i in range(0, flat.size, PIECE_BYTES))


def _encode_piece(values: np.ndarray) -> bytes:
    column = values.astype(np.int64).reshape(-1, 1)
    group = np.arange(MAX_BYTES)
    limit = 1 << (7 * group[:-1] + 6)
    length = 1 + ((column < -limit) | (column >= limit)).sum(axis=1, keepdims=True)
    groups = (column >> (7 * group)) & 0x7F
    groups[group < length - 1] |= 0x80
    return groups[group < length].astype(np.uint8).tobytes()
