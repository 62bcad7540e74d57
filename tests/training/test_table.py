"""The kernels of the big table against NumPy, JAX's derivatives and optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.make_bootstrap_network import bootstrap_psqt
from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARES
from nnue_jax.training import model
from nnue_jax.training.features import Batch, make_batch
from nnue_jax.training.optimiser import AdamSettings, AdamStep
from nnue_jax.training.parameters import LIMIT, SCALE, TABLE_NAMES, random_parameters
from nnue_jax.training.table import FLOATS, Table, shares_of_buckets
from tests.training.data import some_records

WIDTH, COUNT = 96, 200


@pytest.fixture(scope="module")
def batch() -> Batch:
    return make_batch(some_records(COUNT), COUNT)


def random_table(threads: int = 2, width: int = WIDTH) -> Table:
    """With parts of single buckets that are not zero, and accumulators beyond both ends of their range."""
    rng = np.random.default_rng(3)
    parameters = random_parameters(width, 3, bootstrap_psqt())
    parameters["bucket"] += rng.normal(0, 0.05, parameters["bucket"].shape).astype(np.float32)
    parameters["psqt_bucket"] += rng.normal(0, 0.01, parameters["psqt_bucket"].shape).astype(np.float32)
    return Table(parameters, threads)


class Gathered:
    """What the table says of a batch."""

    def __init__(self, table: Table, batch: Batch):
        self.sums = np.zeros((2 * batch.slots, table.width), np.int16)
        self.inputs = np.zeros((batch.slots, table.width), np.uint8)
        self.psqt_sums = np.zeros(batch.slots, np.float32)
        table.gather(batch, self.sums, self.inputs, self.psqt_sums)


def multi_hot(batch: Batch) -> np.ndarray:
    """[R, Q] int32: which features each row has."""
    hot = np.zeros((2 * batch.slots, FEATURE_BUCKETS * PIECE_SQUARES), np.int32)
    for row, length in enumerate(batch.lengths):
        hot[row, batch.features[row, :length]] = 1
    return hot


def stack_of_slot(batch: Batch) -> np.ndarray:
    return np.repeat(batch.stack_of_tile, batch.tile)


def random_gradients(batch: Batch, width: int = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    shapes = (batch.slots, width), batch.slots
    return tuple(rng.normal(0, 1e-3, shape).astype(np.float32) for shape in shapes)


def test_gathered_sums(batch):
    table = random_table()
    found = Gathered(table, batch)
    hot = multi_hot(batch)
    sums = table.bias + hot @ table.weight.astype(np.int32)
    assert np.array_equal(found.sums, sums)
    clipped = np.clip(sums, 0, 255)
    products = clipped[:, : WIDTH // 2] * clipped[:, WIDTH // 2 :] >> 9
    assert np.array_equal(found.inputs, products.reshape(batch.slots, WIDTH))
    assert (sums < 0).any() and (sums > 255).any()
    psqt = (hot @ table.psqt.T).reshape(batch.slots, 2, LAYER_STACKS)
    of_stack = (psqt[:, 0] - psqt[:, 1])[np.arange(batch.slots), stack_of_slot(batch)]
    assert np.array_equal(found.psqt_sums, of_stack)


def test_integers_are_rounded_sums():
    table = random_table()
    own = table.parameters
    weight = np.clip(np.rint((own["shared"] + own["bucket"]) * SCALE["weight"]), -127, 127)
    assert np.abs(weight).max() == 127
    assert np.array_equal(table.weight.reshape(weight.shape), weight)
    psqt = np.rint((own["psqt_shared"][:, None] + own["psqt_bucket"]) * np.float32(SCALE["psqt"]))
    assert np.array_equal(table.psqt.reshape(psqt.shape), psqt)
    assert np.array_equal(table.bias, np.rint(own["bias"] * SCALE["bias"]))


def test_scattered_gradients(batch):
    """Against the chain rule, written out."""
    table = random_table()
    found = Gathered(table, batch)
    inputs_gradient, psqt_gradient = random_gradients(batch)
    table.scatter(batch, found.sums, inputs_gradient, psqt_gradient)
    half = WIDTH // 2
    sums = found.sums.astype(np.float64)
    clipped, inside = np.clip(sums, 0, 255), (sums >= 0) & (sums <= 255)
    of_rows = inputs_gradient.reshape(-1, half) / 512
    of_sums = np.concatenate([of_rows * clipped[:, half:], of_rows * clipped[:, :half]], axis=1) * inside
    hot = multi_hot(batch)
    expected = hot.T.astype(np.float64) @ of_sums
    np.testing.assert_allclose(table.weight_gradient, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    signed = np.stack([psqt_gradient, -psqt_gradient], axis=1).reshape(-1)
    of_slots = np.eye(LAYER_STACKS)[np.repeat(stack_of_slot(batch), 2)] * signed[:, None]
    np.testing.assert_allclose(table.psqt_gradient, of_slots.T @ hot, rtol=1e-4, atol=1e-8)


def test_scattered_gradients_are_jaxs(batch):
    """Against the derivative of the sums and products, which `model` defines."""
    table = random_table()
    found = Gathered(table, batch)
    inputs_gradient, psqt_gradient = random_gradients(batch)
    table.scatter(batch, found.sums, inputs_gradient, psqt_gradient)
    hot = jnp.asarray(multi_hot(batch), jnp.float32)

    def weighted(weight):
        sums = jnp.matmul(hot, weight, precision="highest") + table.bias
        return (model.products(sums.reshape(-1, 2, WIDTH)) * inputs_gradient).sum()

    expected = np.asarray(jax.grad(weighted)(table.weight.astype(np.float32)))
    np.testing.assert_allclose(table.weight_gradient, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_steps_are_adams(batch):
    """Against optax, with weights at their limits; the bias learns from every row."""
    table = random_table()
    table.parameters["shared"][:, 0] = LIMIT["weight"] / SCALE["weight"]
    settings = AdamSettings(weight_decay=0.3, own_rate=0.4)
    parameters = {name: jnp.asarray(table.parameters[name]) for name in TABLE_NAMES}
    chain = optax.scale_by_adam(settings.beta1, settings.beta2, settings.epsilon)
    moments = chain.init(parameters)
    rate = 0.02
    for number in range(1, 4):
        found = Gathered(table, batch)
        table.scatter(batch, found.sums, *random_gradients(batch))
        weight = SCALE["weight"] * table.weight_gradient.reshape(FEATURE_BUCKETS, PIECE_SQUARES, WIDTH)
        psqt = SCALE["psqt"] * table.psqt_gradient.reshape(LAYER_STACKS, FEATURE_BUCKETS, PIECE_SQUARES)
        gradients = {
            "bias": bias_gradient(batch, found.sums, random_gradients(batch)[0]) * SCALE["bias"],
            "shared": weight.sum(0),
            "bucket": weight,
            "psqt_shared": psqt.sum(1),
            "psqt_bucket": psqt,
        }
        directions, moments = chain.update({name: jnp.asarray(value) for name, value in gradients.items()}, moments)
        for name, share, decay in (
            ("bias", 1, 0),
            ("shared", 1, 0.3),
            ("bucket", 0.4, 0.3),
            ("psqt_shared", 1, 0),
            ("psqt_bucket", 0.4, 0.3),
        ):
            parameters[name] = parameters[name] - rate * share * (directions[name] + decay * parameters[name])
        parameters["shared"] = jnp.clip(parameters["shared"], -127 / 255, 127 / 255)
        whole = jnp.clip(parameters["shared"] + parameters["bucket"], -127 / 255, 127 / 255)
        parameters["bucket"] = whole - parameters["shared"]
        table.step(AdamStep(settings, rate, number))
        for name in TABLE_NAMES:
            np.testing.assert_allclose(table.parameters[name], parameters[name], rtol=1e-3, atol=2e-5, err_msg=name)
        assert not table.weight_gradient.any() and not table.psqt_gradient.any()
    assert np.abs(table.weight).max() == LIMIT["weight"]
    assert np.array_equal(
        table.weight.reshape(FEATURE_BUCKETS, PIECE_SQUARES, WIDTH),
        np.rint((table.parameters["shared"] + table.parameters["bucket"]) * np.float32(SCALE["weight"])),
    )


def bias_gradient(batch: Batch, sums: np.ndarray, inputs_gradient: np.ndarray) -> np.ndarray:
    """[W], of all rows that have features."""
    half = sums.shape[1] // 2
    clipped, inside = np.clip(sums, 0, 255).astype(np.float64), (sums >= 0) & (sums <= 255)
    of_rows = inputs_gradient.reshape(-1, half) / 512 * (batch.lengths > 0)[:, None]
    of_sums = np.concatenate([of_rows * clipped[:, half:], of_rows * clipped[:, :half]], axis=1) * inside
    return of_sums.sum(0).astype(np.float32)


@pytest.mark.parametrize("width", [32, 96, 256])
def test_results_do_not_depend_on_the_number_of_threads(width, batch):
    tables = [random_table(threads, width) for threads in (1, 2, 5)]
    for table in tables:
        found = Gathered(table, batch)
        table.scatter(batch, found.sums, *random_gradients(batch, width))
        table.step(AdamStep(AdamSettings(), 0.01, 1))
        for name in TABLE_NAMES:
            assert np.array_equal(table.parameters[name], tables[0].parameters[name]), name


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_shares_cover_every_place_once_and_are_even(threads, batch):
    columns = 8 * FLOATS
    rows = int(batch.bucket_ends[-1])
    owner = np.full((rows, columns), -1)
    shares = shares_of_buckets(batch.bucket_ends, columns, threads)
    for number, parts in enumerate(shares):
        for start, end, first, last in parts:
            assert (owner[start:end, first:last] == -1).all()
            owner[start:end, first:last] = number
    sizes = np.bincount(owner.ravel(), minlength=threads)
    assert (owner >= 0).all()
    assert sizes.max() - sizes.min() <= 2 * FLOATS * np.diff(batch.bucket_ends, prepend=0).max()


def test_shares_of_nothing():
    assert shares_of_buckets(np.zeros(FEATURE_BUCKETS, np.int64), 128, 2) == [[], []]
