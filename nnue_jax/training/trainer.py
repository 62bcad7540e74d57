"""One step of training: on a CPU, Numba for the table and JAX for the layers behind it; elsewhere all of it in JAX.

Both trainers do the same to the same batch, within what the order of sums in float32 makes of it.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from games.memory import aligned_zeros
from games.processors import available_processors
from nnue_jax.architecture import FEATURE_BUCKETS, PIECE_SQUARES
from nnue_jax.jax_devices import keep_compiled_programs
from nnue_jax.training import model
from nnue_jax.training.features import TILE_GROUP, Batch
from nnue_jax.training.model import Aim, Targets
from nnue_jax.training.optimiser import AdamSettings, AdamStep, adam_directions, stepped
from nnue_jax.training.parameters import TABLE_NAMES, Parameters, flattened, nested, width_of
from nnue_jax.training.table import Table

LAYER_GROUPS = ("common", "stack")
MAX_PART_BYTES = 12 << 20  # of a part's inputs of fc0; glibc keeps no piece of memory above 32 MiB


def make_trainer(parameters: Parameters, aim: Aim, settings: AdamSettings, threads: int | None = None):
    """The trainer that suits JAX's default device."""
    if jax.default_backend() == "cpu":
        return CpuTrainer(parameters, aim, settings, threads)
    return DeviceTrainer(parameters, aim, settings)


def _targets(batch: Batch) -> Targets:
    return Targets(batch.weight, batch.score, batch.result, batch.gain)


def _value(aim: Aim, layers: dict, inputs, psqt_sums, stack_of_tile, targets: Targets) -> jax.Array:
    positional = model.positional(layers["common"], layers["stack"], inputs, stack_of_tile)
    return model.value_of(aim, model.psqt_output(psqt_sums), positional, targets)


class CpuTrainer:
    """Keeps the table in NumPy arrays, and the layers where JAX keeps them."""

    def __init__(self, parameters: Parameters, aim: Aim, settings: AdamSettings, threads: int | None = None):
        keep_compiled_programs()
        self._aim = aim
        self._settings = settings
        self._width = width_of(parameters)
        threads = threads or len(available_processors())
        self.table = Table(parameters, threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="layers")
        self._layers = jax.tree.map(jnp.asarray, {group: parameters[group] for group in LAYER_GROUPS})
        self._moments = adam_directions(settings).init(self._layers)
        self._sums = np.zeros((0, self._width), np.int16)
        self.steps = 0

    def step(self, batch: Batch, rate: float) -> jax.Array:
        """Learn from a batch; returns its mean loss before that."""
        self.gather(batch)
        loss = self.learn_layers(batch, rate)
        self.scatter(batch)
        self.learn_table(batch, rate)
        return loss

    def gather(self, batch: Batch, rate: float = 0) -> None:
        """First part of a step: what the table says of the batch."""
        rows = 2 * batch.slots
        if len(self._sums) != rows:
            self._sums = aligned_zeros((rows, self._width), np.int16)
            self._inputs = aligned_zeros((batch.slots, self._width), np.uint8)
            self._psqt_sums = aligned_zeros(batch.slots, np.float32)
            self._inputs_gradient = aligned_zeros((batch.slots, self._width), np.float32)
            self._psqt_gradient = aligned_zeros(batch.slots, np.float32)
        self.table.gather(batch, self._sums, self._inputs, self._psqt_sums)

    def learn_layers(self, batch: Batch, rate: float) -> jax.Array:
        """Second part: the layers' outputs, gradients and Adam's step; returns the mean loss."""
        targets = _targets(batch)
        parts = parts_of(batch.slots, self._width)

        def learn_part(number: int):
            slots = slice(batch.slots * number // parts, batch.slots * (number + 1) // parts)
            tiles = slice(slots.start // batch.tile, slots.stop // batch.tile)
            loss, gradients, of_inputs, of_psqt_sums = _layer_gradients(
                self._aim, self._layers, self._inputs[slots], self._psqt_sums[slots], batch.stack_of_tile[tiles],
                Targets(*(array[slots] for array in targets)), np.float32(batch.count),
            )  # fmt: skip
            self._inputs_gradient[slots] = of_inputs
            self._psqt_gradient[slots] = of_psqt_sums
            return loss, gradients

        losses, gradients = zip(*self._pool.map(learn_part, range(parts)), strict=True)
        self._layers, self._moments = _step_layers(self._settings, self._layers, self._moments, rate, gradients)
        return sum(losses)

    def scatter(self, batch: Batch, rate: float = 0) -> None:
        """Third part: gradients of the table."""
        self.table.scatter(batch, self._sums, self._inputs_gradient, self._psqt_gradient)

    def learn_table(self, batch: Batch, rate: float) -> None:
        """Last part: Adam's step of the table."""
        self.steps += 1
        self.table.step(AdamStep(self._settings, rate, self.steps))

    def losses(self, batch: Batch) -> np.ndarray:
        """[3] sums, see `model.losses`."""
        self.gather(batch)
        found = _losses_of_layers(
            self._aim, self._layers, self._inputs, self._psqt_sums, batch.stack_of_tile, _targets(batch)
        )
        return np.asarray(found)

    def outputs(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """([N], [N]) float32: psqt and positional, in internal units."""
        self.gather(batch)
        found = _outputs_of_layers(self._layers, self._inputs, self._psqt_sums, batch.stack_of_tile)
        return np.asarray(found[0]), np.asarray(found[1])

    def parameters(self) -> Parameters:
        return {**self.table.parameters, **jax.tree.map(np.asarray, self._layers)}

    def state(self) -> dict[str, np.ndarray]:
        """All that a later step depends on, by name."""
        return flattened(
            {
                "parameters": self.parameters(),
                "first": {**self.table.first, **self._moments.mu},
                "second": {**self.table.second, **self._moments.nu},
                "steps": self.steps,
            }
        )

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from what `state` told, of a trainer of either kind."""
        tree = nested(state)
        for name in TABLE_NAMES:
            self.table.parameters[name][...] = tree["parameters"][name]
            self.table.first[name][...] = tree["first"][name]
            self.table.second[name][...] = tree["second"][name]
        self.table.quantise()
        self._layers, self._moments = _layers_and_moments(tree, LAYER_GROUPS)
        self.steps = int(tree["steps"])


def _layers_and_moments(tree: dict, groups) -> tuple[dict, optax.ScaleByAdamState]:
    parameters, first, second = (
        jax.tree.map(jnp.asarray, {group: tree[part][group] for group in groups})
        for part in ("parameters", "first", "second")
    )
    return parameters, optax.ScaleByAdamState(jnp.asarray(int(tree["steps"]), jnp.int32), first, second)


def parts_of(slots: int, width: int) -> int:
    """Into how many equal parts of whole tiles a batch is divided for the layers, so that threads can share them.

    A part that takes more memory than an allocator keeps for the next step costs several times as much.
    """
    parts = 2
    while parts < TILE_GROUP and slots * width * np.dtype(np.float32).itemsize > parts * MAX_PART_BYTES:
        parts *= 2
    return parts


@partial(jax.jit, static_argnums=0)
def _layer_gradients(aim, layers, inputs, psqt_sums, stack_of_tile, targets, count):
    """(loss, gradients of the layers, of the inputs of fc0, and of the PSQT sums) of a part of `count` positions."""

    def loss_of(layers, inputs, psqt_sums):
        value = _value(aim, layers, inputs, psqt_sums, stack_of_tile, targets)
        return model.losses(aim, value, targets)[0] / count

    loss, gradients = jax.value_and_grad(loss_of, argnums=(0, 1, 2))(layers, inputs.astype(jnp.float32), psqt_sums)
    return loss, *gradients


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def _step_layers(settings, layers, moments, rate, gradients):
    """(layers, moments) after a step; `gradients` is a tuple of those of all parts."""
    total = jax.tree.map(lambda *parts: sum(parts[1:], parts[0]), *gradients)
    directions, moments = adam_directions(settings).update(total, moments)
    return stepped(settings, layers, directions, rate), moments


@partial(jax.jit, static_argnums=0)
def _losses_of_layers(aim, layers, inputs, psqt_sums, stack_of_tile, targets):
    value = _value(aim, layers, inputs.astype(jnp.float32), psqt_sums, stack_of_tile, targets)
    return model.losses(aim, value, targets)


@jax.jit
def _outputs_of_layers(layers, inputs, psqt_sums, stack_of_tile):
    positional = model.positional(layers["common"], layers["stack"], inputs.astype(jnp.float32), stack_of_tile)
    return model.psqt_output(psqt_sums), positional


class DeviceTrainer:
    """Keeps everything on JAX's default device."""

    def __init__(self, parameters: Parameters, aim: Aim, settings: AdamSettings):
        keep_compiled_programs()
        self._aim = aim
        self._settings = settings
        self._parameters = jax.tree.map(jnp.asarray, dict(parameters))
        self._moments = adam_directions(settings).init(self._parameters)
        self.steps = 0

    def step(self, batch: Batch, rate: float) -> jax.Array:
        """Learn from a batch; returns its mean loss before that."""
        self.steps += 1
        loss, self._parameters, self._moments = _learn_all(
            self._aim, self._settings, self._parameters, self._moments, rate, _travelling(batch), _targets(batch)
        )
        return loss

    def losses(self, batch: Batch) -> np.ndarray:
        """[3] sums, see `model.losses`."""
        return np.asarray(_losses_of_all(self._aim, self._parameters, _travelling(batch), _targets(batch)))

    def outputs(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """([N], [N]) float32: psqt and positional, in internal units."""
        psqt, positional = _outputs_of_all(self._parameters, _travelling(batch))
        return np.asarray(psqt), np.asarray(positional)

    def parameters(self) -> Parameters:
        return jax.tree.map(np.asarray, self._parameters)

    def state(self) -> dict[str, np.ndarray]:
        """All that a later step depends on, by name."""
        return flattened(
            {
                "parameters": self._parameters,
                "first": self._moments.mu,
                "second": self._moments.nu,
                "steps": self.steps,
            }
        )

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from what `state` told, of a trainer of either kind."""
        tree = nested(state)
        self._parameters, self._moments = _layers_and_moments(tree, tuple(tree["parameters"]))
        self.steps = int(tree["steps"])


def _travelling(batch: Batch) -> dict[str, np.ndarray]:
    """What a device needs of a batch to find the outputs."""
    return {"features": batch.features, "lengths": batch.lengths, "stack_of_tile": batch.stack_of_tile}


def _outputs(parameters: dict, batch: dict) -> tuple[jax.Array, jax.Array]:
    """([N], [N]) psqt and positional outputs, in internal units."""
    features = batch["features"].astype(jnp.int32)
    present = jnp.arange(features.shape[1]) < batch["lengths"][:, None]
    weight = model.integers("weight", parameters["shared"] + parameters["bucket"])
    weight = weight.reshape(FEATURE_BUCKETS * PIECE_SQUARES, -1)
    rows = jnp.take(weight, features, axis=0, mode="clip") * present[:, :, None]
    sums = rows.sum(1) + model.integers("bias", parameters["bias"])
    inputs = model.products(sums.reshape(-1, 2, sums.shape[1]))
    psqt = model.integers("psqt", parameters["psqt_shared"][:, None] + parameters["psqt_bucket"])
    stack_of_row = jnp.repeat(batch["stack_of_tile"], len(features) // len(batch["stack_of_tile"]))
    place = stack_of_row[:, None] * (FEATURE_BUCKETS * PIECE_SQUARES) + features
    psqt_sums = (jnp.take(psqt.reshape(-1), place, mode="clip") * present).sum(1).reshape(-1, 2)
    positional = model.positional(parameters["common"], parameters["stack"], inputs, batch["stack_of_tile"])
    return model.psqt_output(psqt_sums[:, 0] - psqt_sums[:, 1]), positional


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2, 3))
def _learn_all(aim, settings, parameters, moments, rate, batch, targets):
    """(loss, parameters, moments)."""

    def loss_of(parameters):
        value = model.value_of(aim, *_outputs(parameters, batch), targets)
        return model.mean_loss(aim, value, targets)

    loss, gradients = jax.value_and_grad(loss_of)(parameters)
    directions, moments = adam_directions(settings).update(gradients, moments)
    return loss, stepped(settings, parameters, directions, rate), moments


@partial(jax.jit, static_argnums=0)
def _losses_of_all(aim, parameters, batch, targets):
    return model.losses(aim, model.value_of(aim, *_outputs(parameters, batch), targets), targets)


_outputs_of_all = jax.jit(_outputs)
