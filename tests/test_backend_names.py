"""Names of backends: what they lead to, what `auto` chooses, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from games.xiangqi.packed import pack_fens
from nnue_jax import backends
from nnue_jax.backends import BackendError
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import Network
from nnue_jax.reference import SKIP_PLUS
from nnue_jax.simulated_device import SimulatedDevice
from tests.support.games import random_walk
from tests.support.networks import bootstrap_network, random_network
from uci.backend_names import make_evaluator


def with_stacks(**changes) -> Network:
    """The bootstrap network with other arrays in its layer stacks."""
    network = bootstrap_network()
    stacks = [
        replace(stack, **{name: change(getattr(stack, name)) for name, change in changes.items()})
        for stack in network.stacks
    ]
    return replace(network, stacks=tuple(stacks))


def skipping(array: np.ndarray) -> np.ndarray:
    """With another output of fc0 that skips the layers."""
    changed = array.copy()
    changed[SKIP_PLUS] += 50
    return changed


# Networks whose positional part is heard in one way only.
NEARLY_SILENT = (
    with_stacks(fc2_bias=lambda bias: bias + 3000),
    with_stacks(fc2_weight=lambda weight: weight + 1),
    with_stacks(fc0_bias=lambda bias: skipping(bias * 0) * 100),
    with_stacks(fc0_weight=skipping),
)


@pytest.fixture(scope="module")
def packed() -> np.ndarray:
    return pack_fens(game.fen() for game in random_walk(seed=61, count=40))


def test_auto_without_an_accelerator(monkeypatch):
    monkeypatch.setattr(backends, "may_have_accelerator", lambda: False)
    maker, sentence = make_evaluator("auto")
    assert maker is None
    assert sentence == "Backend auto: numba, since JAX has no accelerator here."


def test_auto_with_an_accelerator(monkeypatch):
    there = backends.devices("cpu")
    monkeypatch.setattr(backends, "may_have_accelerator", lambda: True)
    monkeypatch.setattr(backends, "devices", lambda kind=None: there)
    maker, sentence = make_evaluator("auto")
    assert sentence == "Backend auto: jax:gpu, since JAX has this accelerator."
    assert maker(random_network(32)).name.startswith("jax")


def test_numba_needs_no_batches():
    assert make_evaluator("numba")[0] is None


@pytest.mark.parametrize("name", ["reference", "jax:cpu", "jax:cpu:0", "simulated", "simulated:0:1000"])
def test_all_give_the_networks_outputs(name, packed):
    for one in (bootstrap_network(), random_network(32), *NEARLY_SILENT):
        maker, sentence = make_evaluator(name)
        assert name in sentence
        expected = Evaluator.load(one, "numba").outputs(packed)
        assert [part.tolist() for part in maker(one).outputs(packed)] == [part.tolist() for part in expected]


def test_simulated_device_has_the_numbers_it_was_given():
    evaluator = make_evaluator("simulated:50:2.5")[0](bootstrap_network())
    assert isinstance(evaluator, SimulatedDevice)
    assert evaluator.device == "simulated: 50 µs, 2.5 million positions/s"


@pytest.mark.parametrize(
    "name", ["simulated:", "simulated:1", "simulated:1:2:3", "simulated:-1:1", "simulated:1:0", "simulated:nan:1"]
)
def test_impossible_devices(name):
    with pytest.raises(BackendError, match=f"^The backend '{name}' is unknown; expected simulated or "):
        make_evaluator(name)


@pytest.mark.parametrize("name", ["", "abacus", "NUMBA", "jax:gpu:x"])
def test_unknown_names(name):
    with pytest.raises(BackendError, match=f"^The backend '{name}' is unknown; expected one of auto"):
        make_evaluator(name)[0](random_network(32))
