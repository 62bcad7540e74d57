"""The batched evaluator: whole batches of PACKED positions on the devices that JAX knows.

A batch travels as the bytes of its records and all else is computed on the device, by one compiled program for each of
a few batch sizes; smaller batches are filled up, larger ones split. Several devices share a batch evenly.
"""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from games.xiangqi.geometry import BLACK, NO_SQUARE, PIECES, PIECES_PER_SIDE, WHITE, parse_square
from games.xiangqi.packed import PACKED
from nnue_jax import jax_layers as layers
from nnue_jax.evaluator import Evaluator
from nnue_jax.jax_devices import BATCH_AXIS, describe, devices, keep_compiled_programs, mesh_of
from nnue_jax.jax_features import layer_stacks, piece_square_features, seen_from_side_to_move
from nnue_jax.jax_threats import threat_features
from nnue_jax.network_file import Network
from nnue_jax.threats import threat_table

FIRST_LAYERS = ("loop", "gather", "matmul")
LAYER_STACKS = ("tiles", "all")
IN_FLIGHT = 2  # batches on the device at once: one is computed while the next one travels


@dataclass(frozen=True)
class Formulation:
    """How the layers are computed; every choice gives the same results.

    first_layer    `loop` sums rows of weights position by position, `gather` all at once, `matmul` multiplies
    layer_stacks   `tiles` sorts positions by layer stack, `all` computes every stack for every position
    batch_sizes    for which a program is compiled, ascending
    preferred      batch size from which on larger ones gain little
    """

    first_layer: str
    layer_stacks: str
    batch_sizes: tuple[int, ...]
    preferred: int


FORMULATIONS = {
    # Beyond 1024 positions the sums of wide networks no longer fit the caches.
    "cpu": Formulation("loop", "tiles", (1, 8, 32, 64, 128, 256, 512, 1024), 1024),
    "gpu": Formulation("gather", "all", (64, 256, 1024, 4096, 16384, 65536), 16384),
    "tpu": Formulation("matmul", "all", (64, 256, 1024, 4096, 16384), 4096),
}


class JaxEvaluator(Evaluator):
    """Evaluates batches with JAX, on one device or on several of a kind.

    `used` are JAX devices, by default all of the kind that JAX prefers. The other options override the platform's
    entry in FORMULATIONS. ValueError for an option that is none.
    """

    def __init__(
        self,
        network: Network,
        used: Sequence | None = None,
        first_layer: str | None = None,
        layer_stacks: str | None = None,
        batch_sizes: Sequence[int] | None = None,
    ):
        keep_compiled_programs()
        used = list(used or devices())
        platform = used[0].platform
        default = FORMULATIONS.get(platform, FORMULATIONS["gpu"])
        first_layer = _one_of("first layer", first_layer or default.first_layer, FIRST_LAYERS)
        layer_stacks = _one_of("form of layer stacks", layer_stacks or default.layer_stacks, LAYER_STACKS)
        self.name = f"jax:{platform}"
        self.device = describe(used)
        self.uses_caller = platform == "cpu"
        self.batch_sizes = _divisible(batch_sizes or default.batch_sizes, len(used))
        self.preferred_batch = min(default.preferred, self.batch_sizes[-1])
        self.maximum_batch = self.batch_sizes[-1]
        self._lock = threading.Lock()
        self._programs: dict[int, jax.stages.Compiled] = {}

        def compute(parameters, records):
            return _outputs(first_layer, layer_stacks, parameters, records)

        mesh = mesh_of(used)
        everywhere, divided = PartitionSpec(), PartitionSpec(BATCH_AXIS)
        self._parameters = jax.device_put(_parameters(network, first_layer), NamedSharding(mesh, everywhere))
        self._divided = NamedSharding(mesh, divided)
        self._compute = jax.jit(
            jax.shard_map(
                compute,
                mesh=mesh,
                in_specs=(everywhere, divided),
                out_specs=PartitionSpec(None, BATCH_AXIS),
                check_vma=False,
            )
        )

    @property
    def compiled_programs(self) -> int:
        """Number of programs compiled so far: at most one for each batch size."""
        return len(self._programs)

    def warm_up(self) -> None:
        """Compile the programs of all batch sizes, or load them from the cache."""
        for size in self.batch_sizes:
            self._program(size)

    def begin(self, packed: np.ndarray) -> np.ndarray | tuple[int, jax.Array]:
        if len(packed) > self.maximum_batch:
            return np.stack(self.outputs(packed))
        return len(packed), self._start(_octets(packed))

    def finish(self, begun: np.ndarray | tuple[int, jax.Array]) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(begun, np.ndarray):
            return begun[0], begun[1]
        positions, outputs = begun
        found = np.asarray(outputs)
        return found[0, :positions], found[1, :positions]

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        records = _octets(packed)
        found = np.empty((2, len(records)), np.int32)
        running: deque[tuple[int, jax.Array]] = deque()

        def collect():
            start, outputs = running.popleft()
            part = found[:, start : start + self.maximum_batch]
            part[:] = np.asarray(outputs)[:, : part.shape[1]]

        for start in range(0, len(records), self.maximum_batch):
            if len(running) == IN_FLIGHT:
                collect()
            running.append((start, self._start(records[start : start + self.maximum_batch])))
        while running:
            collect()
        return found[0], found[1]

    def _start(self, records: np.ndarray) -> jax.Array:
        """Outputs [2, size] int32 of the program that holds all `records`, still being computed."""
        size = next(size for size in self.batch_sizes if size >= len(records))
        if size != len(records):
            filled = np.empty((size, PACKED.itemsize), np.uint8)
            filled[: len(records)] = records
            filled[len(records) :] = _FILLER
            records = filled
        return self._program(size)(self._parameters, jax.device_put(records, self._divided))

    def _program(self, size: int):
        program = self._programs.get(size)
        if program is None:
            with self._lock:
                program = self._programs.get(size)
                if program is None:
                    shape = jax.ShapeDtypeStruct((size, PACKED.itemsize), np.uint8, sharding=self._divided)
                    program = self._programs[size] = self._compute.lower(self._parameters, shape).compile()
        return program


def _octets(packed: np.ndarray) -> np.ndarray:
    """[n, 36] uint8 of [n] PACKED."""
    return np.ascontiguousarray(packed).view(np.uint8).reshape(-1, PACKED.itemsize)


def _one_of(what: str, name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise ValueError(f"'{name}' is no {what}; expected one of {', '.join(names)}.")
    return name


def _divisible(sizes: Sequence[int], parts: int) -> tuple[int, ...]:
    """Ascending sizes, each rounded up to a multiple of `parts`."""
    if min(sizes) < 1:
        raise ValueError(f"The batch size {min(sizes)} is not positive.")
    return tuple(sorted({-(-size // parts) * parts for size in sizes}))


def _filler() -> np.ndarray:
    """[36] uint8: a position with nothing but kings, with which batches are filled up."""
    record = np.zeros(1, PACKED)
    record["square_of"] = NO_SQUARE
    record["square_of"][:, WHITE * PIECES_PER_SIDE] = parse_square("d0")
    record["square_of"][:, BLACK * PIECES_PER_SIDE] = parse_square("e9")
    return record.view(np.uint8)


_FILLER = _filler()


def _parameters(network: Network, first_layer: str) -> dict:
    """The network laid out for `_outputs`: NumPy arrays."""
    stacks = network.stacks
    weight = network.piece_square_weight
    parameters = {
        "transformer_bias": network.transformer_bias,
        "piece_square_weight": weight.astype(jnp.bfloat16) if first_layer == "matmul" else _with_zeros(weight),
        "piece_square_psqt": _columns(network.piece_square_psqt),
        "stacks": {
            "fc0_weight": _transposed([stack.fc0_weight for stack in stacks]),
            "fc0_bias": np.stack([stack.fc0_bias for stack in stacks]),
            "fc1_weight": _transposed([stack.fc1_weight for stack in stacks]),
            "fc1_bias": np.stack([stack.fc1_bias for stack in stacks]),
            "fc2_weight": np.concatenate([stack.fc2_weight for stack in stacks]).astype(np.float32),
            "fc2_bias": np.concatenate([stack.fc2_bias for stack in stacks]),
        },
    }
    if network.architecture.threats:
        parameters["threats"] = {
            "table": threat_table().ravel(),
            "weight": _with_zeros(network.threat_weight),
            "psqt": _columns(network.threat_psqt),
        }
    return parameters


def _with_zeros(rows: np.ndarray) -> np.ndarray:
    """A row of zeros appended, for features that are not there."""
    return np.concatenate([rows, np.zeros_like(rows[:1])])


def _columns(psqt: np.ndarray) -> np.ndarray:
    """[rows, S] -> [S * (rows + 1)]: a position needs one column only."""
    return _with_zeros(psqt).T.ravel()


def _transposed(weights: list[np.ndarray]) -> np.ndarray:
    """S times [outputs, inputs] int8 -> [S, inputs, outputs] float32."""
    return np.ascontiguousarray(np.stack(weights).transpose(0, 2, 1), np.float32)


def _outputs(first_layer: str, form: str, parameters: dict, records: jax.Array) -> jax.Array:
    """[2, n] int32, psqt and positional, of [n, 36] uint8 records."""
    order = None
    pieces = seen_from_side_to_move(records)
    layer_stack = layer_stacks(pieces)
    if form == "tiles":
        positions = len(records)
        # Stack and number in one key sort faster than a pair.
        order = jnp.sort(layer_stack * positions + jnp.arange(positions)) % positions
        pieces = seen_from_side_to_move(jnp.take(records, order, axis=0, mode="clip"))
        layer_stack = jnp.take(layer_stack, order, mode="clip")
    inputs, psqt_sums = _first_layer(first_layer, parameters, pieces, layer_stack)
    propagate = layers.by_tiles if form == "tiles" else layers.through_all_stacks
    positional = propagate(parameters["stacks"], inputs, layer_stack)
    outputs = jnp.stack([layers.psqt_output(psqt_sums), positional])
    if order is not None:
        outputs = jnp.zeros_like(outputs).at[:, order].set(outputs, unique_indices=True)
    return outputs


def _first_layer(form: str, parameters: dict, pieces, layer_stack) -> tuple[jax.Array, jax.Array]:
    """([n, W] float32 inputs of fc0, [n, 2] int32 PSQT sums of us and them)."""
    found = piece_square_features(pieces)
    psqt_sums = layers.psqt_of_stack(parameters["piece_square_psqt"], found.features, layer_stack)
    sum_rows = layers.looped_rows if form == "loop" else layers.gathered_rows
    weight, bias = parameters["piece_square_weight"], parameters["transformer_bias"]
    if form == "matmul":
        hidden = layers.multiplied_rows(weight, found)
    else:
        hidden = sum_rows(weight, found.features.reshape(-1, PIECES))  # us and them in turn
    threats = parameters.get("threats")
    if threats is not None:
        active = threat_features(pieces, found.mirrored, threats["table"])
        more, psqt = layers.threat_sums(sum_rows, threats["weight"], threats["psqt"], active, layer_stack)
        hidden, psqt_sums = hidden + more, psqt_sums + psqt
    return layers.transform((hidden + bias).reshape(-1, 2, len(bias))), psqt_sums
