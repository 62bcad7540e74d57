"""Network files: what is written is read back, and whatever else is read is refused with a sentence."""

import dataclasses
import struct
from functools import cache

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nnue_jax.architecture import LAYER_STACKS, MAX_WIDTH, Architecture, architecture_of
from nnue_jax.network_file import (
    LEB128_MAGIC,
    Network,
    NetworkError,
    decode_leb128,
    encode_leb128,
    parse_network,
    read_network,
    serialize_network,
    write_network,
)
from tests.reference import leb128
from tests.support.networks import random_network

WIDTHS = (32, 128, 256)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
# Where the length of an encoded value changes, and the ends of both types that files hold.
BOUNDARIES = [
    value
    for bits in (6, 13, 15, 20, 27, 31)
    for edge in (-(1 << bits), 1 << bits)
    for value in (edge - 1, edge, edge + 1)
    if -(1 << 31) <= value < 1 << 31
]


def assert_equal(first: Network, second: Network) -> None:
    for field in dataclasses.fields(Network):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if field.name != "stacks":
            assert np.array_equal(one, other), field.name
    for one, other in zip(first.stacks, second.stacks, strict=True):
        for name, array in vars(one).items():
            assert np.array_equal(array, getattr(other, name)), name


def compressed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(data)


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


@pytest.mark.parametrize("width", WIDTHS)
def test_round_trip(width):
    network = random_network(width)
    assert_equal(parse_network(serialize_network(network)), network)


def test_round_trip_of_extreme_values():
    network = random_network(32, extreme=True)
    assert np.abs(network.transformer_bias.astype(int)).max() > 30_000
    assert_equal(parse_network(serialize_network(network)), network)


def test_written_file_is_read_back(tmp_path):
    network = random_network(32)
    path = tmp_path / "net.nnue"
    write_network(network, path)
    assert_equal(read_network(path), network)
    assert [file.name for file in tmp_path.iterdir()] == ["net.nnue"]


def test_writing_replaces_a_file(tmp_path):
    path = tmp_path / "net.nnue"
    path.write_bytes(b"old")
    write_network(random_network(32), path)
    assert read_network(path).description == b"random, width 32"


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
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "missing.nnue")


def test_refuses_a_directory(tmp_path):
    assert "cannot be read: Is a directory" in refusal(tmp_path)


def test_refuses_an_empty_file(tmp_path):
    assert "the file is empty" in refusal_of(tmp_path, b"")
    assert "file version ends early" in refusal_of(tmp_path, compressed(b""))


@pytest.mark.parametrize("data", [b"This is not a network.", b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(1000)])
def test_refuses_what_is_no_network(tmp_path, data):
    found = struct.unpack("<I", data[:4])[0]
    for file in (data, compressed(data)):
        assert f"the file version is {found:#010x}; expected 0x6a448afa" in refusal_of(tmp_path, file)


def with_word(stream: bytes, offset: int, change: int) -> bytes:
    word = struct.unpack_from("<I", stream, offset)[0] ^ change
    return stream[:offset] + struct.pack("<I", word) + stream[offset + 4 :]


def test_refuses_wrong_hashes(tmp_path, stream):
    transformer_hash = 12 + len(random_network(32).description)
    first_stack = stream.index(struct.pack("<I", Architecture(32).stack_hash))
    stack_bytes = (len(stream) - first_stack) // LAYER_STACKS
    assert "file version" in refusal_of(tmp_path, with_word(stream, 0, 1))
    assert "network hash is" in refusal_of(tmp_path, with_word(stream, 4, 1))
    assert "belongs to no known architecture" in refusal_of(tmp_path, with_word(stream, transformer_hash, 1))
    # Another width, then a network with threats.
    assert "network hash is" in refusal_of(tmp_path, with_word(stream, transformer_hash, 2 * (32 ^ 64)))
    other = Architecture(32).transformer_hash ^ Architecture(32, threats=True).transformer_hash
    assert "network hash is" in refusal_of(tmp_path, with_word(stream, transformer_hash, other))
    for number in (0, 7, LAYER_STACKS - 1):
        damaged = with_word(stream, first_stack + number * stack_bytes, 1 << 31)
        assert f"hash of layer stack {number} is" in refusal_of(tmp_path, damaged)


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
    sentence = refusal_of(tmp_path, stream[:left])
    assert f"the {field} ends early" in sentence


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


def test_refuses_truncated_and_damaged_compression(tmp_path, stream):
    whole = compressed(stream)
    for left in (4, 5, 12, 1000, len(whole) // 2, len(whole) - 1):
        sentence = refusal_of(tmp_path, whole[:left])
        assert "ends early" in sentence or "zstd stream is damaged" in sentence
    damaged = whole[:4] + bytes(255 - byte for byte in whole[4:40]) + whole[40:]
    assert "the zstd stream is damaged" in refusal_of(tmp_path, damaged)


def test_refuses_trailing_bytes(tmp_path, stream):
    for data in (stream + b"\0", compressed(stream + b"\0"), compressed(stream) + compressed(b"\0")):
        assert "1 byte" in refusal_of(tmp_path, data)
    assert "the zstd stream is damaged" in refusal_of(tmp_path, compressed(stream) + b"garbage")


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
        "transformer bias is not a LEB128 block": replaced_bias(stream, good, magic=b"COMPRESSED_LEB127"),
        "has 31 values; expected 32": replaced_bias(stream, good[1:]),
        "has 33 values; expected 32": replaced_bias(stream, good + b"\0"),
        "has 0 values; expected 32": replaced_bias(stream, b""),
        "ends inside a value": replaced_bias(stream, good[1:] + b"\x80"),
        "more than five bytes": replaced_bias(stream, good[1:] + b"\x80" * 5 + b"\0"),
        "does not fit int16": replaced_bias(stream, leb128.encode([5] * 31 + [32768])),
        "ends early": replaced_bias(stream, good, length=0xFFFFFFFF),
    }
    for reason, data in cases.items():
        assert reason in refusal_of(tmp_path, data)
    refused = [refusal_of(tmp_path, data) for data in cases.values()]
    assert len(set(refused)) == len(refused)


def test_accepts_the_ends_of_a_type(stream):
    ends = [-32768, 32767] * 16
    assert parse_network(replaced_bias(stream, leb128.encode(ends))).transformer_bias.tolist() == ends


@given(st.lists(st.one_of(INT32, st.sampled_from(BOUNDARIES)), max_size=40))
def test_leb128_equals_its_twin(values):
    encoded = encode_leb128(np.array(values, np.int32))
    assert encoded == leb128.encode(values)
    assert decode_leb128(encoded).tolist() == leb128.decode(encoded) == values


@pytest.mark.parametrize("value", BOUNDARIES)
def test_leb128_boundaries(value):
    encoded = encode_leb128(np.array([value], np.int32))
    assert encoded == leb128.encode([value])
    assert decode_leb128(encoded).tolist() == [value]


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(payload):
    """Also values that take more bytes than they need."""
    try:
        values = decode_leb128(payload).tolist()
    except NetworkError:
        assert payload[-1] >= 0x80 or leb128.longest(payload) > 5
        return
    assert values == leb128.decode(payload)
