"""From parameters to networks and back."""

import numpy as np
import pytest

from experiments.make_bootstrap_network import bootstrap_network, bootstrap_psqt
from games.xiangqi.packed import position_of
from nnue_jax import reference
from nnue_jax.network_file import Network, parse_network, serialize_network
from nnue_jax.training.features import make_batch
from nnue_jax.training.model import Aim
from nnue_jax.training.optimiser import AdamSettings
from nnue_jax.training.parameters import parameters_of, random_parameters
from nnue_jax.training.quantise import QuantisationError, check_quantised, quantised
from nnue_jax.training.trainer import CpuTrainer
from tests.support.networks import random_network
from tests.training.data import some_records

WIDTH, COUNT = 64, 128
AIM = Aim(900.0, 0.7)


@pytest.fixture(scope="module")
def records() -> np.ndarray:
    return some_records(COUNT)


@pytest.fixture(scope="module")
def trained(records) -> CpuTrainer:
    trainer = CpuTrainer(random_parameters(WIDTH, 1, bootstrap_psqt()), AIM, AdamSettings())
    batch = make_batch(records, COUNT)
    for _ in range(10):
        trainer.step(batch, 1e-2)
    return trainer


def assert_same(one: Network, other: Network) -> None:
    assert serialize_network(one) == serialize_network(other)


@pytest.mark.parametrize("network", [random_network(32), random_network(128), bootstrap_network(64, seed=2)])
def test_parameters_of_a_network_quantise_to_it(network):
    assert_same(quantised(parameters_of(network), network.description.decode()), network)


def test_threats_are_not_trained():
    with pytest.raises(ValueError, match="threat features"):
        parameters_of(random_network(32, threats=True))


def test_the_first_value_is_that_of_the_piece_squares(records):
    network = quantised(random_parameters(WIDTH, 1, bootstrap_psqt()), "")
    plain = bootstrap_network(32, seed=1)
    for record in records:
        position = position_of(record["packed"])[0]
        found, expected = reference.evaluate(network, position), reference.evaluate(plain, position)
        assert (found.psqt, found.positional) == (expected.psqt, 0)


def test_the_quantised_network_says_what_was_trained(trained, records):
    network = parse_network(serialize_network(quantised(trained.parameters(), "trained")))
    assert check_quantised(network, trained, records) == (0, 0)
    positional = [reference.evaluate(network, position_of(record["packed"])[0]).positional for record in records]
    assert len(set(positional)) > COUNT / 2, "nothing was learnt"


@pytest.mark.parametrize("part", ["transformer_bias", "piece_square_weight", "piece_square_psqt"])
def test_a_network_that_says_something_else_is_refused(part, trained, records):
    network = quantised(trained.parameters(), "")
    array = getattr(network, part)
    array[...] = np.clip(array.astype(np.int64) * 2, np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
    with pytest.raises(QuantisationError, match=f"On {COUNT} positions .* expected at most 1"):
        check_quantised(network, trained, records)


def test_all_is_within_the_integers(records):
    """However fast it learns."""
    trainer = CpuTrainer(random_parameters(WIDTH, 1, bootstrap_psqt()), AIM, AdamSettings())
    batch = make_batch(records, COUNT)
    for _ in range(5):
        trainer.step(batch, 1.0)
    network = quantised(trainer.parameters(), "")
    assert np.abs(network.piece_square_weight).max() == 127
    assert max(np.abs(stack.fc0_weight).max() for stack in network.stacks) == 127
    check_quantised(network, trainer, records)
