"""Networks in memory and the `.nnue` container: zstd around a stream of little-endian fields.

    version, network hash          u32, u32
    description                    u32 length, bytes
    transformer hash               u32
    transformer bias               LEB128 block of i16 [W]
    threat weight, threat PSQT     i8 [T, W], LEB128 block of i32 [T, S]     only with threats
    piece-square weight, PSQT      i8 [Q, W], LEB128 block of i32 [Q, S]
    S times a layer stack:
        stack hash                 u32
        fc0 bias, weight           i32 [H], i8 [H, W]       weight rows are outputs
        fc1 bias, weight           i32 [H], i8 [H, 2H]
        fc2 bias, weight           i32 [1], i8 [1, 4H]

A LEB128 block is a magic, the length of the payload as u32, and signed LEB128 values back to back. A file
may also hold the stream uncompressed.
"""

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard

from nnue_jax.architecture import (
    FILE_VERSION,
    HIDDEN,
    LAYER_STACKS,
    PIECE_SQUARE_FEATURES,
    THREAT_FEATURES,
    Architecture,
    architecture_of,
)

LEB128_MAGIC = b"COMPRESSED_LEB128"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
COMPRESSION_LEVEL = 19


class NetworkError(ValueError):
    """A network that cannot be read; the message is a sentence that says why."""


@dataclass(frozen=True)
class LayerStack:
    """The fully connected layers of one bucket."""

    fc0_bias: np.ndarray  # [H] int32
    fc0_weight: np.ndarray  # [H, W] int8
    fc1_bias: np.ndarray  # [H] int32
    fc1_weight: np.ndarray  # [H, 2H] int8
    fc2_bias: np.ndarray  # [1] int32
    fc2_weight: np.ndarray  # [1, 4H] int8


@dataclass(frozen=True)
class Network:
    """All parameters as the file stores them; threat arrays have no rows in a network without threats."""

    architecture: Architecture
    description: bytes
    transformer_bias: np.ndarray  # [W] int16
    threat_weight: np.ndarray  # [T, W] int8
    threat_psqt: np.ndarray  # [T, S] int32
    piece_square_weight: np.ndarray  # [Q, W] int8
    piece_square_psqt: np.ndarray  # [Q, S] int32
    stacks: tuple[LayerStack, ...]  # S of them


def read_network(path: str | os.PathLike) -> Network:
    """Read a `.nnue` file; NetworkError with a sentence if it is not one."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise NetworkError(f"The network file '{path}' cannot be read: {error.strerror}.") from error
    try:
        return parse_network(_decompressed(data))
    except NetworkError as error:
        raise NetworkError(f"'{path}' is not a usable network: {error}") from error


def _decompressed(data: bytes) -> bytes:
    if not data:
        raise NetworkError("the file is empty.")
    if not data.startswith(ZSTD_MAGIC):
        return data
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return reader.read()
    except zstandard.ZstdError as error:
        raise NetworkError(f"the zstd stream is damaged ({error}).") from error


def parse_network(data: bytes) -> Network:
    """Read a decompressed stream, checking every hash and that nothing follows."""
    fields = _Fields(data)
    fields.expect_u32(FILE_VERSION, "file version")
    network_hash = fields.u32("network hash")
    description = fields.take(fields.u32("description length"), "description")
    transformer_hash = fields.u32("feature transformer hash")
    architecture = architecture_of(transformer_hash)
    if architecture is None:
        raise NetworkError(f"the feature transformer hash {transformer_hash:#010x} belongs to no known architecture.")
    if network_hash != architecture.network_hash:
        raise NetworkError(
            f"the network hash is {network_hash:#010x}; expected {architecture.network_hash:#010x} for {architecture}."
        )
    width = architecture.width
    threats = THREAT_FEATURES if architecture.threats else 0
    bias = fields.leb128((width,), "<i2", "transformer bias")
    threat_weight = fields.array((threats, width), "i1", "threat weight")
    threat_psqt = np.zeros((0, LAYER_STACKS), "<i4")
    if threats:
        threat_psqt = fields.leb128((threats, LAYER_STACKS), "<i4", "threat PSQT")
    weight = fields.array((PIECE_SQUARE_FEATURES, width), "i1", "piece-square weight")
    psqt = fields.leb128((PIECE_SQUARE_FEATURES, LAYER_STACKS), "<i4", "piece-square PSQT")
    stacks = tuple(_parse_stack(fields, architecture, number) for number in range(LAYER_STACKS))
    fields.expect_end()
    return Network(architecture, description, bias, threat_weight, threat_psqt, weight, psqt, stacks)


def _parse_stack(fields: "_Fields", architecture: Architecture, number: int) -> LayerStack:
    name = f"layer stack {number}"
    fields.expect_u32(architecture.stack_hash, f"hash of {name}")
    return LayerStack(
        fc0_bias=fields.array((HIDDEN,), "<i4", name),
        fc0_weight=fields.array((HIDDEN, architecture.width), "i1", name),
        fc1_bias=fields.array((HIDDEN,), "<i4", name),
        fc1_weight=fields.array((HIDDEN, 2 * HIDDEN), "i1", name),
        fc2_bias=fields.array((1,), "<i4", name),
        fc2_weight=fields.array((1, 4 * HIDDEN), "i1", name),
    )


class _Fields:
    """Takes one field after the other from a stream; every refusal names the field."""

    def __init__(self, data: bytes):
        self.data = memoryview(data)
        self.offset = 0

    def take(self, count: int, name: str) -> bytes:
        left = len(self.data) - self.offset
        if count > left:
            raise NetworkError(f"the {name} ends early: it needs {count} bytes and {left} are left.")
        self.offset += count
        return bytes(self.data[self.offset - count : self.offset])

    def u32(self, name: str) -> int:
        return struct.unpack("<I", self.take(4, name))[0]

    def expect_u32(self, expected: int, name: str) -> None:
        found = self.u32(name)
        if found != expected:
            raise NetworkError(f"the {name} is {found:#010x}; expected {expected:#010x}.")

    def expect_end(self) -> None:
        extra = len(self.data) - self.offset
        if extra:
            raise NetworkError(f"{extra} bytes follow the last layer; expected none.")

    def array(self, shape: tuple[int, ...], dtype: str, name: str) -> np.ndarray:
        data = self.take(math.prod(shape) * np.dtype(dtype).itemsize, name)
        return np.frombuffer(data, dtype).reshape(shape)

    def leb128(self, shape: tuple[int, ...], dtype: str, name: str) -> np.ndarray:
        if self.take(len(LEB128_MAGIC), name) != LEB128_MAGIC:
            raise NetworkError(f"the {name} is not a LEB128 block.")
        values = decode_leb128(self.take(self.u32(name), name))
        if values.size != math.prod(shape):
            raise NetworkError(f"the {name} has {values.size} values; expected {math.prod(shape)}.")
        limits = np.iinfo(dtype)
        if values.min() < limits.min or values.max() > limits.max:
            raise NetworkError(f"the {name} holds a value that does not fit {limits.dtype}.")
        return values.astype(dtype).reshape(shape)


def decode_leb128(payload: bytes) -> np.ndarray:
    """[n] int64: all signed LEB128 values in `payload`; NetworkError if the last one is cut off or one is too long."""
    data = np.frombuffer(payload, np.uint8)
    if data.size == 0:
        return np.zeros(0, np.int64)
    if data[-1] >= 0x80:
        raise NetworkError("a LEB128 block ends inside a value.")
    last = np.flatnonzero(data < 0x80)
    first = np.concatenate([[0], last[:-1] + 1])
    length = last - first + 1
    if length.max() > 5:
        raise NetworkError("a LEB128 value has more than five bytes.")
    place = np.arange(data.size) - np.repeat(first, length)
    values = np.add.reduceat((data & 0x7F).astype(np.int64) << (7 * place), first)
    negative = (data[last] & 0x40) != 0
    return values - np.where(negative, np.int64(1) << (7 * length), 0)


def encode_leb128(values: np.ndarray) -> bytes:
    """Signed LEB128 of an integer array in C order, each value as short as possible."""
    column = values.astype(np.int64).reshape(-1, 1)
    group = np.arange(5)  # five groups of seven bits hold any int32
    limit = 1 << (7 * group[:4] + 6)
    length = 1 + ((column < -limit) | (column >= limit)).sum(axis=1, keepdims=True)
    groups = (column >> (7 * group)) & 0x7F
    groups[group < length - 1] |= 0x80
    return groups[group < length].astype(np.uint8).tobytes()


def _leb128_block(values: np.ndarray) -> bytes:
    payload = encode_leb128(values)
    return LEB128_MAGIC + struct.pack("<I", len(payload)) + payload


def serialize_network(network: Network) -> bytes:
    """The decompressed stream; inverse of `parse_network`."""
    architecture = network.architecture
    parts = [
        struct.pack("<III", FILE_VERSION, architecture.network_hash, len(network.description)),
        network.description,
        struct.pack("<I", architecture.transformer_hash),
        _leb128_block(network.transformer_bias),
    ]
    if architecture.threats:
        parts += [network.threat_weight.astype("i1").tobytes(), _leb128_block(network.threat_psqt)]
    parts += [network.piece_square_weight.astype("i1").tobytes(), _leb128_block(network.piece_square_psqt)]
    for stack in network.stacks:
        parts.append(struct.pack("<I", architecture.stack_hash))
        for bias, weight in (
            (stack.fc0_bias, stack.fc0_weight),
            (stack.fc1_bias, stack.fc1_weight),
            (stack.fc2_bias, stack.fc2_weight),
        ):
            parts += [bias.astype("<i4").tobytes(), weight.astype("i1").tobytes()]
    return b"".join(parts)


def write_network(network: Network, path: str | os.PathLike) -> None:
    """Write a zstd-compressed `.nnue` file; it appears under its name only when it is complete."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(zstandard.ZstdCompressor(level=COMPRESSION_LEVEL).compress(serialize_network(network)))
    unfinished.replace(path)
