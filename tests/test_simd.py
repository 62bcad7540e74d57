"""Vector operations of kernels against NumPy."""

import numpy as np
import pytest

from games.integers import lowest_bit
from games.jit import kernel
from games.memory import address_of
from nnue_jax.simd import (
    copy_32_bytes,
    differing_bytes,
    greatest_lane,
    keep_first_lanes,
    lane_of,
    load_i32x16,
)

LANES = 16
LEAST = -(2**31)


@kernel
def greatest_kernel(address, count, fill):
    return greatest_lane(keep_first_lanes(load_i32x16(address, 0), count, fill))


@kernel
def lane_kernel(address, place):
    values = load_i32x16(address, 0)
    return lane_of(values, greatest_lane(load_i32x16(address, place)))


@kernel
def lowest_bit_kernel(word):
    return lowest_bit(word)


@kernel
def differing_bytes_kernel(left, right):
    return differing_bytes(left, right)


@kernel
def copy_kernel(target, source):
    copy_32_bytes(target, source)


@pytest.fixture
def generator():
    return np.random.default_rng(5)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 1000])
def test_greatest_of_the_first_lanes(generator, count):
    for _ in range(50):
        values = generator.integers(LEAST, 2**31, LANES, dtype=np.int32)
        assert greatest_kernel(address_of(values), count, LEAST) == values[:count].max()


def test_lanes_beyond_the_count_are_filled():
    values = np.full(LANES, -7, np.int32)
    assert greatest_kernel(address_of(values), 3, 5) == 5
    assert greatest_kernel(address_of(values), LANES, 5) == -7


def test_lane_of_a_value(generator):
    values = np.concatenate([generator.permutation(LANES), np.full(LANES, 99)]).astype(np.int32)
    assert lane_kernel(address_of(values), 0) == list(values).index(LANES - 1)
    assert lane_kernel(address_of(values), LANES) == LANES, "none of the lanes holds it"
    values[:] = 3
    assert lane_kernel(address_of(values), 0) == 0, "the first of several"


@pytest.mark.parametrize("bit", [0, 1, 31, 62])
def test_lowest_bit(bit):
    assert lowest_bit_kernel(1 << bit) == bit
    assert lowest_bit_kernel(1 << 62 | 1 << bit) == bit


def test_differing_and_copied_bytes(generator):
    for density in (0.0, 0.1, 0.9):
        left = generator.integers(0, 256, 32, dtype=np.uint8)
        right = np.where(generator.random(32) < density, left + 1, left).astype(np.uint8)
        expected = sum(1 << k for k in range(32) if left[k] != right[k])
        assert differing_bytes_kernel(address_of(left), address_of(right)) == expected
        copy_kernel(address_of(left), address_of(right))
        assert (left == right).all()
