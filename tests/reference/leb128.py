"""Signed LEB128 one value at a time."""

from collections.abc import Iterable


def encode(values: Iterable[int]) -> bytes:
    encoded = bytearray()
    for value in values:
        while not -64 <= value < 64:
            encoded.append(value & 0x7F | 0x80)
            value >>= 7
        encoded.append(value & 0x7F)
    return bytes(encoded)


def decode(payload: bytes) -> list[int]:
    values = []
    value = shift = 0
    for byte in payload:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value - (1 << shift) if byte & 0x40 else value)
            value = shift = 0
    return values


def longest(payload: bytes) -> int:
    """Number of bytes of the longest value."""
    length = most = 0
    for byte in payload:
        length += 1
        most = max(most, length)
        if byte < 0x80:
            length = 0
    return most
