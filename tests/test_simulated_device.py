"""The device that does not exist: its outputs, and its order of answers."""

import numpy as np
import pytest

from games.xiangqi.packed import pack_fens
from nnue_jax.evaluator import Evaluator
from nnue_jax.simulated_device import SimulatedDevice
from tests.random_games import random_fens
from tests.support.networks import bootstrap_network, random_network


@pytest.fixture(scope="module")
def packed() -> np.ndarray:
    return pack_fens(random_fens(600, seed=11))


def test_exact_for_the_bootstrap_network(packed):
    found = SimulatedDevice(bootstrap_network(), latency_us=0).outputs(packed)
    expected = Evaluator.load(bootstrap_network(), "numba").outputs(packed)
    assert np.array_equal(np.stack(found), np.stack(expected))


@pytest.mark.parametrize("extreme", [False, True])
def test_the_piece_square_part_of_any_network(extreme, packed):
    network = random_network(64, extreme)
    psqt, positional = SimulatedDevice(network, latency_us=0).outputs(packed)
    assert np.array_equal(psqt, Evaluator.load(network, "numba").outputs(packed)[0])
    assert not positional.any()


def test_batches_may_overlap_and_end_in_any_order(packed):
    device = SimulatedDevice(bootstrap_network(), latency_us=100)
    expected = device.outputs(packed)[0]
    begun = [device.begin(packed[start : start + 100]) for start in range(0, 600, 100)]
    parts = [device.finish(one)[0] for one in reversed(begun)]
    assert np.array_equal(np.concatenate(parts[::-1]), expected)


@pytest.mark.parametrize(("latency_us", "positions_per_s"), [(-1, 1e6), (10, 0)])
def test_impossible_devices(latency_us, positions_per_s):
    with pytest.raises(ValueError, match="is impossible"):
        SimulatedDevice(bootstrap_network(), latency_us, positions_per_s)
