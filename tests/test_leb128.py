"""Signed LEB128 against its slow twin, however a payload is cut into pieces."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnue_jax.leb128 import MAX_BYTES, PIECE_BYTES, Leb128Error, decode, encode
from tests.reference import leb128

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
# Where the length of an encoded value changes, and the ends of both types that files hold.
BOUNDARIES = [
    value
    for bits in (6, 13, 15, 20, 27, 31)
    for edge in (-(1 << bits), 1 << bits)
    for value in (edge - 1, edge, edge + 1)
    if -(1 << 31) <= value < 1 << 31
]


def decoded(payload: bytes, cuts: list[int] = ()) -> list[int]:
    """The values of a payload cut at these places."""
    edges = [0, *sorted(min(cut, len(payload)) for cut in cuts), len(payload)]
    pieces = (payload[start:end] for start, end in pairwise(edges))
    return [value for values in decode(pieces) for value in values.tolist()]


@given(st.lists(st.one_of(INT32, st.sampled_from(BOUNDARIES)), max_size=40), st.lists(st.integers(0, 200), max_size=6))
def test_it_equals_its_twin(values, cuts):
    encoded = encode(np.array(values, np.int32))
    assert encoded == leb128.encode(values)
    assert decoded(encoded, cuts) == leb128.decode(encoded) == values


@pytest.mark.parametrize("value", BOUNDARIES)
def test_boundaries(value):
    encoded = encode(np.array([value], np.int32))
    assert encoded == leb128.encode([value])
    for cut in range(len(encoded)):
        assert decoded(encoded, [cut]) == [value]


def test_arrays_longer_than_a_piece():
    values = np.arange(-PIECE_BYTES, PIECE_BYTES + 7).reshape(-1, 1) * 1000
    encoded = encode(values)
    assert encoded == leb128.encode(values.reshape(-1).tolist())
    assert decoded(encoded, list(range(0, len(encoded), 1000))) == values.reshape(-1).tolist()


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_any_bytes_are_decoded_or_refused(payload, cuts):
    """Also values that take more bytes than they need."""
    try:
        values = decoded(payload, cuts)
    except Leb128Error:
        assert payload[-1] >= 0x80 or leb128.longest(payload) > MAX_BYTES
        return
    assert values == leb128.decode(payload)


def test_a_value_without_end_is_refused_at_once():
    read = []
    with pytest.raises(Leb128Error, match="more than 5 bytes"):
        list(decode(read.append(1) or b"\x80" for _ in range(100)))
    assert len(read) == MAX_BYTES


def test_broken_payloads():
    for cuts in ([], [1], [3], [1, 2, 3, 4, 5]):
        with pytest.raises(Leb128Error, match="ends inside a value"):
            decoded(b"\1\x80", cuts)
        with pytest.raises(Leb128Error, match="more than 5 bytes"):
            decoded(b"\1\x80\x80\x80\x80\x80\0", cuts)
