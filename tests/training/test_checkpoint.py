"""Checkpoints, and training that goes on from them."""

import numpy as np
import pytest

from experiments.make_bootstrap_network import bootstrap_psqt
from nnue_jax.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from nnue_jax.training.features import make_batch
from nnue_jax.training.model import Aim
from nnue_jax.training.optimiser import AdamSettings
from nnue_jax.training.parameters import random_parameters
from nnue_jax.training.trainer import CpuTrainer, DeviceTrainer
from tests.training.data import some_records

WIDTH, COUNT = 64, 128


def new_trainer(kind, seed: int = 1):
    return kind(random_parameters(WIDTH, seed, bootstrap_psqt()), Aim(900.0, 0.7), AdamSettings())


def test_a_checkpoint_comes_back(tmp_path):
    path = tmp_path / "checkpoint.npz"
    state = {"a.b": np.arange(6, dtype=np.float32).reshape(2, 3), "steps": np.array(7)}
    save_checkpoint(path, state, {"epoch": 2, "text": "λ"})
    found, note = load_checkpoint(path)
    assert note == {"epoch": 2, "text": "λ"}
    assert found.keys() == state.keys()
    assert all(np.array_equal(found[name], state[name]) for name in state)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.npz"]


def test_a_failed_save_leaves_the_one_before(tmp_path):
    path = tmp_path / "checkpoint.npz"
    save_checkpoint(path, {"steps": np.array(1)}, {})
    with pytest.raises(TypeError):
        save_checkpoint(path, {"steps": np.array(2)}, {"no JSON": object()})
    assert load_checkpoint(path)[0]["steps"] == 1


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_a_damaged_checkpoint_is_refused(cut, tmp_path):
    path = tmp_path / "checkpoint.npz"
    save_checkpoint(path, {"steps": np.arange(100)}, {})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CheckpointError, match=r"checkpoint\.npz' is no usable checkpoint"):
        load_checkpoint(path)


@pytest.mark.parametrize("kind", [CpuTrainer, DeviceTrainer])
def test_training_goes_on_as_if_it_had_not_stopped(kind, tmp_path):
    """Bit for bit."""
    records = some_records(3 * COUNT)
    batches = [make_batch(records[start : start + COUNT], COUNT) for start in range(0, len(records), COUNT)]
    whole = new_trainer(kind)
    for batch in batches:
        whole.step(batch, 1e-3)
    first = new_trainer(kind)
    first.step(batches[0], 1e-3)
    save_checkpoint(tmp_path / "checkpoint.npz", first.state(), {})
    second = new_trainer(kind, seed=2)
    second.load_state(load_checkpoint(tmp_path / "checkpoint.npz")[0])
    for batch in batches[1:]:
        second.step(batch, 1e-3)
    expected = whole.state()
    for name, values in second.state().items():
        assert np.array_equal(values, expected[name]), name
