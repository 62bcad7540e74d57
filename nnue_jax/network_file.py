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

import io
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard

from nnue_jax import leb128
from nnue_jax.architecture import (
    FILE_VERSION,
    HIDDEN,
    LAYER_STACKS,
    MAX_WIDTH,
    PIECE_SQUARE_FEATURES,
    THREAT_FEATURES,
    WIDTH_STEP,
    Architecture,
    architecture_of,
)
from nnue_jax.network_stream import LEB128_MAGIC, ZSTD_MAGIC, Fields, NetworkError, ZstdStream
from nnue_jax.win_rate import WinRateError, WinRateModel, model_of

# Compressing a network of width 1024 takes most of a minute, and well below a second; the files differ by little.
SMALL_LEVEL, QUICK_LEVEL = 19, 3
_WINDOW_LOG = 20  # a reader keeps this many binary digits' worth of bytes to look back at; weights do not repeat
_HEAD_BYTES = 1 << 16  # within which any NNUE file has its first LEB128 block


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

    @property
    def win_rate_model(self) -> WinRateModel:
        """From values to centipawns and expected results."""
        return model_of(self.description)

    @property
    def size_bytes(self) -> int:
        """Of all parameters, in memory."""
        parts = [*vars(self).values(), *(array for stack in self.stacks for array in vars(stack).values())]
        return sum(array.nbytes for array in parts if isinstance(array, np.ndarray))


def read_network(path: str | os.PathLike) -> Network:
    """Read a `.nnue` file straight into the arrays; NetworkError with a sentence if it is not one."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise NetworkError(f"The network file '{path}' cannot be read: it is {kind}; expected a file.")
        with open(path, "rb") as file:
            return _read(file, path)
    except OSError as error:
        raise NetworkError(f"The network file '{path}' cannot be read: {error.strerror}.") from error


def _read(file: io.BufferedReader, path: str | os.PathLike) -> Network:
    try:
        start = file.read(len(ZSTD_MAGIC))
        if not start:
            raise NetworkError("the file is empty; expected a network.")
        file.seek(0)
        return _parse(ZstdStream(file) if start == ZSTD_MAGIC else file)
    except NetworkError as error:
        raise NetworkError(f"'{path}' is not a usable network: {error}") from error


def parse_network(data: bytes) -> Network:
    """Read a decompressed stream, checking every hash and that nothing follows."""
    return _parse(io.BytesIO(data))


def _parse(stream) -> Network:
    fields = Fields(stream)
    version = fields.u32("file version")
    if version != FILE_VERSION:
        raise _foreign(version, fields, isinstance(stream, ZstdStream))
    network_hash = fields.u32("network hash")
    description = fields.take(fields.u32("description length"), "description")
    architecture = _architecture(network_hash, fields.u32("feature transformer hash"))
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
    try:
        model_of(description)
    except WinRateError as error:
        raise NetworkError(str(error)) from error
    return Network(architecture, description, bias, threat_weight, threat_psqt, weight, psqt, stacks)


def _foreign(version: int, fields: Fields, is_compressed: bool) -> NetworkError:
    """What a stream is that begins with another version."""
    if LEB128_MAGIC in fields.peek(_HEAD_BYTES):
        return NetworkError(f"the file version is {version:#010x}; expected {FILE_VERSION:#010x}.")
    found, expected = (struct.pack("<I", word).hex(" ") for word in (version, FILE_VERSION))
    if is_compressed:
        return NetworkError(
            f"it is no network at all, as its zstd stream holds data that begin with {found}; expected {expected}."
        )
    return NetworkError(
        f"it is no network at all, as it begins with {found}; expected {ZSTD_MAGIC.hex(' ')} for zstd, or {expected}."
    )


def _architecture(network_hash: int, transformer_hash: int) -> Architecture:
    architecture = architecture_of(transformer_hash)
    if architecture is None:
        raise NetworkError(
            f"the feature transformer hash {transformer_hash:#010x} belongs to no known architecture; expected that of "
            f"a width of {WIDTH_STEP}, {2 * WIDTH_STEP}, ..., {MAX_WIDTH}, with threats or without."
        )
    if network_hash != architecture.network_hash:
        raise NetworkError(
            f"the network hash is {network_hash:#010x}; expected {architecture.network_hash:#010x} for {architecture}."
        )
    return architecture


def _parse_stack(fields: Fields, architecture: Architecture, number: int) -> LayerStack:
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


def _leb128_block(values: np.ndarray) -> bytes:
    payload = leb128.encode(values)
    return LEB128_MAGIC + struct.pack("<I", len(payload)) + payload


def serialize_network(network: Network) -> bytes:
    """The decompressed stream; inverse of `parse_network`.

    It equals the stream that was read, unless that spelled LEB128 values with more bytes than they need.
    """
    return b"".join(_stream_parts(network))


def _stream_parts(network: Network) -> Iterator[bytes | memoryview]:
    architecture = network.architecture
    yield struct.pack("<III", FILE_VERSION, architecture.network_hash, len(network.description))
    yield network.description
    yield struct.pack("<I", architecture.transformer_hash)
    yield _leb128_block(network.transformer_bias)
    if architecture.threats:
        yield _raw(network.threat_weight, "i1")
        yield _leb128_block(network.threat_psqt)
    yield _raw(network.piece_square_weight, "i1")
    yield _leb128_block(network.piece_square_psqt)
    for stack in network.stacks:
        yield struct.pack("<I", architecture.stack_hash)
        for bias, weight in (
            (stack.fc0_bias, stack.fc0_weight),
            (stack.fc1_bias, stack.fc1_weight),
            (stack.fc2_bias, stack.fc2_weight),
        ):
            yield _raw(bias, "<i4")
            yield _raw(weight, "i1")


def _raw(array: np.ndarray, dtype: str) -> memoryview:
    """The bytes of an array in C order; of the array itself where they are there already."""
    return memoryview(np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8))


def write_network(network: Network, path: str | os.PathLike, level: int = SMALL_LEVEL) -> None:
    """Write a zstd-compressed `.nnue` file; it appears under its name only when it is complete.

    NetworkError if it cannot be written; a file that was there is then left as it is.
    """
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            raise NetworkError(f"The network cannot be written to '{path}': that is no regular file.")
        _write(list(_stream_parts(network)), target, level)
    except OSError as error:
        raise NetworkError(f"The network cannot be written to '{path}': {error.strerror}.") from error


def _write(parts: list[bytes | memoryview], target: Path, level: int) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=_WINDOW_LOG, write_checksum=True)
    # Not `stream_writer`: it corrupts memory when the file raises an error, as on a full disk (zstandard 0.25).
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=sum(map(len, parts)))
    unfinished = target.with_name(target.name + ".part")
    unfinished.touch()
    try:
        with open(unfinished, "wb") as file:
            for part in parts:
                file.write(compressor.compress(part))
            file.write(compressor.flush())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
