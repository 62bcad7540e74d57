"""Backends by name: each evaluates alike, and what is not there is refused with a sentence."""

import subprocess
import sys

import numpy as np
import pytest

from games.xiangqi.packed import pack_fens
from nnue_jax import backends
from nnue_jax.backends import BACKENDS, BackendError, available_backends, create
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import write_network
from tests.support.games import random_walk
from tests.support.networks import random_network


@pytest.fixture(scope="module")
def small_network():
    return random_network(32)


@pytest.fixture(scope="module")
def packed() -> np.ndarray:
    return pack_fens(game.fen() for game in random_walk(seed=91, count=40))


@pytest.fixture
def with_gpu(monkeypatch):
    """A machine on which JAX finds two GPUs, which are CPUs in truth."""
    there = backends.devices("cpu")[:1] * 2

    def devices(kind=None):
        if kind == "tpu":
            raise RuntimeError("no TPU today")
        return there

    monkeypatch.setattr(backends, "may_have_accelerator", lambda: True)
    monkeypatch.setattr(backends, "devices", devices)


@pytest.fixture
def without_accelerator(monkeypatch):
    monkeypatch.setattr(backends, "may_have_accelerator", lambda: False)


def test_all_backends_agree(small_network, packed):
    expected = create(small_network, "reference").outputs(packed)
    for name in available_backends():
        found = create(small_network, name).outputs(packed)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == np.int32
            assert one.tolist() == other.tolist(), name


def test_load_reads_files(small_network, packed, tmp_path):
    write_network(small_network, tmp_path / "small.nnue")
    evaluator = Evaluator.load(tmp_path / "small.nnue", "reference")
    assert len(evaluator.evaluate(packed)) == len(packed)


def test_names(small_network, without_accelerator):
    for backend, name in (("reference", "reference"), ("numba", "numba"), ("auto", "numba"), ("jax:cpu:0", "jax:cpu")):
        assert create(small_network, backend).name == name


def test_options_reach_the_evaluator(small_network):
    assert create(small_network, "jax:cpu", batch_sizes=(3, 5)).maximum_batch == 5
    with pytest.raises(TypeError, match="batch_sizes"):
        create(small_network, "reference", batch_sizes=(3, 5))


def test_available_without_accelerator(without_accelerator):
    assert available_backends() == ["auto", "reference", "numba", "jax", "jax:cpu"]


def test_available_with_an_accelerator(with_gpu):
    assert available_backends() == [name for name in BACKENDS if name != "jax:tpu"]


def test_auto_takes_the_accelerator(small_network, with_gpu):
    assert create(small_network, "auto").name.startswith("jax")


@pytest.mark.parametrize(
    "backend", ["", "cuda", "JAX", "jax:", "jax:cuda", "jax:cpu:", "jax:cpu:x", "jax:cpu:-1", "jax:cpu:0:0", "numba:0"]
)
def test_unknown_backends(small_network, backend, without_accelerator):
    with pytest.raises(BackendError) as error:
        create(small_network, backend)
    assert str(error.value) == (
        f"The backend '{backend}' is unknown; expected one of auto, reference, numba, jax, jax:cpu."
    )


def test_backends_that_are_not_there(small_network, with_gpu):
    with pytest.raises(
        BackendError, match=r"'jax:tpu' is not there: .*no TPU today.*expected one of auto, .*jax:gpu\."
    ):
        create(small_network, "jax:tpu")
    with pytest.raises(BackendError, match=r"'jax:gpu:2' is not there: .* numbered 0 to 1; expected one of auto"):
        create(small_network, "jax:gpu:2")


def test_jax_is_imported_only_when_needed():
    script = """
import sys
from nnue_jax import backends
backends.may_have_accelerator.__globals__["find_spec"] = lambda name: None
from tests.support.networks import random_network
backends.create(random_network(32), "auto")
backends.available_backends()
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
