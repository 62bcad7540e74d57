"""The network as a differentiable function: against the reference, by its derivatives, and on both kinds of devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.make_bootstrap_network import bootstrap_psqt
from games.xiangqi.packed import position_of
from nnue_jax import reference
from nnue_jax.evaluator import Evaluator
from nnue_jax.training import model, trainer
from nnue_jax.training.features import Batch, make_batch
from nnue_jax.training.model import Aim, Targets
from nnue_jax.training.optimiser import AdamSettings, Schedule
from nnue_jax.training.parameters import TABLE_NAMES, flattened, parameters_of, random_parameters
from nnue_jax.training.trainer import CpuTrainer, DeviceTrainer, make_trainer
from tests.support.networks import random_network
from tests.training.data import some_records

WIDTH, COUNT = 64, 128
AIM = Aim(scale=900.0, score_share=0.7)
SETTINGS = AdamSettings(weight_decay=0.1)
TRAINERS = {"cpu": CpuTrainer, "device": DeviceTrainer}


@pytest.fixture(scope="module")
def records() -> np.ndarray:
    return some_records(COUNT)


@pytest.fixture(scope="module")
def batch(records) -> Batch:
    return make_batch(records, COUNT)


def some_parameters() -> dict:
    """Random ones of which no part is zero."""
    rng = np.random.default_rng(8)
    parameters = random_parameters(WIDTH, 8, bootstrap_psqt())
    for name, spread in (("bucket", 0.05), ("psqt_bucket", 0.01)):
        parameters[name] += rng.normal(0, spread, parameters[name].shape).astype(np.float32)
    for group in ("common", "stack"):
        for name, values in parameters[group].items():
            parameters[group][name] = values + rng.normal(0, 0.1, values.shape).astype(np.float32)
    return parameters


@pytest.mark.parametrize("kind", TRAINERS)
def test_outputs_are_the_references(kind, batch, records):
    """Integer by integer, with the parameters of a network."""
    network = random_network(WIDTH)
    psqt, positional = TRAINERS[kind](parameters_of(network), AIM, SETTINGS).outputs(batch)
    for slot in np.flatnonzero(batch.weight):
        expected = reference.evaluate(network, position_of(records[batch.sample[slot]]["packed"])[0])
        assert (psqt[slot], positional[slot]) == (expected.psqt, expected.positional)
    assert len(np.unique(positional[batch.weight > 0])) > COUNT / 2


def test_value_is_what_the_search_sees(batch, records):
    network = random_network(WIDTH)
    psqt, positional = CpuTrainer(parameters_of(network), AIM, SETTINGS).outputs(batch)
    packed = records["packed"].copy()
    packed["in_check"] = 0  # otherwise there is no value
    values = Evaluator.load(network, "numba").evaluate(packed).value
    found = np.asarray(model.search_value(psqt, positional, batch.gain))
    used = batch.weight > 0
    # Three divisions that truncate, and what the later ones make of them.
    assert np.abs(found[used] - values[batch.sample[used]]).max() < 4


def test_losses():
    """Against NumPy; a slot without weight counts nothing."""
    rng = np.random.default_rng(2)
    value, score = rng.normal(0, 900, (2, 9))
    result = rng.integers(0, 3, 9) / 2
    weight = (np.arange(9) < 7).astype(float)
    found = model.losses(AIM, jnp.asarray(value), Targets(weight, score, result, np.ones(9)))
    expected, promised = (1 / (1 + np.exp(-np.array(values) / 900)) for values in (value, score))
    for error, goal in zip(found, (0.7 * promised + 0.3 * result, promised, result), strict=True):
        assert error == pytest.approx((((expected - goal) ** 2) * weight).sum(), rel=1e-5)


def test_the_sum_of_outputs_may_be_compared():
    targets = Targets(*np.ones((4, 1), np.float32))
    psqt, positional = np.full((2, 1), 1000.0, np.float32)
    assert model.value_of(AIM._replace(is_searched=False), psqt, positional, targets)[0] == 2000
    halved = targets._replace(gain=targets.gain / 2)
    assert model.value_of(AIM, psqt, positional, halved)[0] == 1000
    assert model.value_of(AIM, psqt, -0.0 * positional, halved)[0] < 500


ACTIVATIONS = {
    "squared, first": (lambda x: model._squared(x, 21), lambda x: x * x / 2**21, 127),
    "clipped, first": (lambda x: model._clipped(x, 7), lambda x: x / 2**7, 127),
    "squared, second": (lambda x: model._squared(x, 19), lambda x: x * x / 2**19, 127),
    "clipped, second": (lambda x: model._clipped(x, 6), lambda x: x / 2**6, 127),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_go_straight_through_rounding(name):
    """They are those of the smooth function, and zero where it is cut off."""
    activation, smooth, cap = ACTIVATIONS[name]
    for point in np.linspace(-40000, 40000, 41, dtype=np.float32):
        value, slope = jax.value_and_grad(activation)(point)
        is_cut = smooth(point) >= cap + 1 or (smooth(point) < 0)
        assert value == min(max(np.floor(smooth(point)), 0), cap)
        assert float(slope) == pytest.approx(0 if is_cut else float(jax.grad(smooth)(point)), rel=1e-5)


def test_gradients_of_products():
    sums = np.array([[[-5, 0, 100, 255, 300, 20], [100, 50, -1, 20, 255, 256]]], np.float32)
    slopes = jax.grad(lambda sums: model.products(sums)[0, [0, 1, 2]].sum())(sums)[0, 0]
    clipped = np.clip(sums[0, 0], 0, 255)
    expected = np.concatenate([clipped[3:], clipped[:3]]) / 512
    assert slopes.tolist() == pytest.approx((expected * [0, 1, 1, 1, 0, 1]).tolist())
    assert model.products(sums)[0].tolist() == [0, 0, 3, 3, 24, 0]


def test_both_trainers_learn_the_same(batch, records):
    """A few steps: the table's gradients are those of JAX, and so are all that is made of them."""
    trainers = [kind(some_parameters(), AIM, SETTINGS) for kind in TRAINERS.values()]
    batches = [batch, make_batch(records[::2], COUNT), batch]
    for one in batches:
        first, second = (float(each.step(one, 1e-3)) for each in trainers)
        assert first == pytest.approx(second, rel=1e-4)
    first, second = (flattened(each.parameters()) for each in trainers)
    start = flattened(some_parameters())
    for name, values in first.items():
        moved = np.abs(second[name] - start[name])
        assert moved.max() > 1e-4, name
        # A gradient near zero may have either sign, and Adam makes full steps of it.
        differs = np.abs(values - second[name]) > 1e-4
        assert differs.mean() < 0.01, name


def test_gradients_of_the_table_are_jaxs(batch):
    parameters = some_parameters()
    cpu = CpuTrainer(parameters, AIM, SETTINGS)
    cpu.gather(batch)
    cpu.learn_layers(batch, 1e-3)
    cpu.scatter(batch)

    def loss_of(table):
        outputs = trainer._outputs({**parameters, **table}, trainer._travelling(batch))
        targets = trainer._targets(batch)
        return model.mean_loss(AIM, model.value_of(AIM, *outputs, targets), targets)

    expected = jax.grad(loss_of)({name: parameters[name] for name in TABLE_NAMES})
    weight = cpu.table.weight_gradient.reshape(expected["bucket"].shape) * 255
    psqt = cpu.table.psqt_gradient.reshape(expected["psqt_bucket"].shape) * 9600
    found = {"bucket": weight, "shared": weight.sum(0), "psqt_bucket": psqt, "psqt_shared": psqt.sum(1)}
    for name, values in found.items():
        largest = np.abs(expected[name]).max()
        assert largest > 0
        np.testing.assert_allclose(values, expected[name], rtol=1e-3, atol=1e-5 * largest, err_msg=name)


def test_a_state_goes_from_one_trainer_to_the_other(batch):
    cpu, device = (kind(some_parameters(), AIM, SETTINGS) for kind in TRAINERS.values())
    cpu.step(batch, 1e-3)
    state = {name: np.array(values) for name, values in cpu.state().items()}
    device.load_state(state)
    back = CpuTrainer(random_parameters(WIDTH, 1, bootstrap_psqt()), AIM, SETTINGS)
    back.load_state(device.state())
    assert back.steps == device.steps == 1
    for name, values in back.state().items():
        assert np.array_equal(values, state[name]), name


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_few_positions_are_learnt_by_heart(kind, batch):
    one = TRAINERS[kind](random_parameters(WIDTH, 1, bootstrap_psqt()), AIM, SETTINGS)
    before = one.losses(batch)[0] / COUNT
    for _ in range(60):
        loss = float(one.step(batch, 3e-3))
    assert loss < 0.3 * before


def test_a_cpu_gets_the_trainer_with_numba():
    assert jax.default_backend() == "cpu"
    assert isinstance(make_trainer(some_parameters(), AIM, SETTINGS), CpuTrainer)


def test_an_accelerator_gets_the_trainer_in_jax(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert isinstance(make_trainer(some_parameters(), AIM, SETTINGS), DeviceTrainer)


def test_learning_rate():
    schedule = Schedule(rate=1e-3, warmup_steps=10, steps=100, final_share=0.1)
    rates = [schedule.rate_at(step) for step in range(101)]
    assert rates[0] == pytest.approx(1e-4)
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[50] == pytest.approx(0.55e-3)
    assert rates[100] == pytest.approx(1e-4)
