"""The parameters that are trained: floats of order one, and how they relate to a network's integers.

    bias            [W]
    shared          [689, W]        weights of a piece square in all buckets
    bucket          [24, 689, W]    what each bucket adds to them
    psqt_shared     [S, 689]
    psqt_bucket     [S, 24, 689]
    common          the layers fc0, fc1 and fc2, as all stacks have them: weights [H, inputs] and biases [H]
    stack           what each stack adds: the same with an axis [S] in front

A shared part learns from every position, so that a bucket or a stack that is rare knows what the others know. Integers
are floats times SCALE, rounded and clipped to LIMIT.
"""

from collections.abc import Mapping

import numpy as np

from nnue_jax.architecture import FEATURE_BUCKETS, HIDDEN, LAYER_STACKS, PIECE_SQUARES
from nnue_jax.network_file import Network
from nnue_jax.reference import (
    ACTIVATION_MAX,
    CLIP_MAX,
    FC0_SHIFT,
    FC1_SHIFT,
    OUTPUT_SCALE,
    POSITIONAL_DENOMINATOR,
    SKIP_MINUS,
    SKIP_PLUS,
)

VALUE_UNIT = 600  # internal units in an output of one
_FC0, _FC1 = 1 << FC0_SHIFT, 1 << FC1_SHIFT
_FC2 = POSITIONAL_DENOMINATOR // ACTIVATION_MAX

# Integer units in one, so that an accumulator, an activation and an output of one are what they are called.
SCALE = {
    "bias": CLIP_MAX,
    "weight": CLIP_MAX,
    "psqt": VALUE_UNIT * OUTPUT_SCALE,
    "fc0_bias": _FC0 * ACTIVATION_MAX,
    "fc0_weight": _FC0,
    "fc1_bias": _FC1 * ACTIVATION_MAX,
    "fc1_weight": _FC1,
    "fc2_bias": POSITIONAL_DENOMINATOR,
    "fc2_weight": _FC2,
}
INT8_MAX = 127
# Largest magnitude of the integers. Biases keep the sums of a layer well inside the integers that float32 holds.
LIMIT = {
    "bias": 1 << 14,
    "weight": INT8_MAX,
    "psqt": 1 << 18,
    "fc0_bias": 1 << 21,
    "fc0_weight": INT8_MAX,
    "fc1_bias": 1 << 21,
    "fc1_weight": INT8_MAX,
    "fc2_bias": 1 << 21,
    "fc2_weight": INT8_MAX,
}
LAYERS = ("fc0", "fc1", "fc2")
LAYER_SHAPES = {"fc1": (HIDDEN, 2 * HIDDEN), "fc2": (1, 4 * HIDDEN)}
TABLE_NAMES = ("bias", "shared", "bucket", "psqt_shared", "psqt_bucket")

# Accumulators of a position with some twenty pieces then spread over the range that is not clipped.
_WEIGHT_SPREAD, _BIAS_START = 0.09, 0.45
_FC0_FAN = 64  # few inputs of fc0 are not zero

Parameters = dict[str, np.ndarray | dict[str, np.ndarray]]


def limit_of(name: str) -> float:
    """Largest magnitude of a parameter."""
    return LIMIT[name] / SCALE[name]


def layer_shapes(width: int) -> dict[str, tuple[int, ...]]:
    """Of weights [outputs, inputs] and biases [outputs] of one stack."""
    shapes = {}
    for layer in LAYERS:
        shape = LAYER_SHAPES.get(layer, (HIDDEN, width))
        shapes[f"{layer}_weight"] = shape
        shapes[f"{layer}_bias"] = shape[:1]
    return shapes


def width_of(parameters: Parameters) -> int:
    return len(parameters["bias"])


def random_parameters(width: int, seed: int, psqt: np.ndarray) -> Parameters:
    """Parameters of a network whose value is at first that of its PSQT part, [Q, S] integers.

    The last layer is zero, and the two outputs of fc0 that skip it are equal.
    """
    rng = np.random.default_rng(seed)
    shapes = layer_shapes(width)

    def uniform(name: str, fan: int) -> np.ndarray:
        return (rng.uniform(-1, 1, shapes[name]) / np.sqrt(fan)).astype(np.float32)

    fc0 = uniform("fc0_weight", _FC0_FAN)
    fc0[SKIP_MINUS] = fc0[SKIP_PLUS]
    common = {
        "fc0_weight": fc0,
        "fc0_bias": np.full(HIDDEN, 0.1, np.float32),
        "fc1_weight": uniform("fc1_weight", 2 * HIDDEN),
        "fc1_bias": np.full(HIDDEN, 0.1, np.float32),
        "fc2_weight": np.zeros(shapes["fc2_weight"], np.float32),
        "fc2_bias": np.zeros(1, np.float32),
    }
    psqt_shared, psqt_bucket = _split_psqt(psqt)
    return {
        "bias": np.full(width, _BIAS_START, np.float32),
        "shared": rng.normal(0, _WEIGHT_SPREAD, (PIECE_SQUARES, width)).astype(np.float32),
        "bucket": np.zeros((FEATURE_BUCKETS, PIECE_SQUARES, width), np.float32),
        "psqt_shared": psqt_shared,
        "psqt_bucket": psqt_bucket,
        "common": common,
        "stack": {name: np.zeros((LAYER_STACKS, *shape), np.float32) for name, shape in shapes.items()},
    }


def _split(whole: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """(mean along an axis, what is left)."""
    shared = whole.mean(axis, dtype=np.float64).astype(np.float32)
    return shared, whole - np.expand_dims(shared, axis)


def _split_psqt(psqt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    whole = (psqt / SCALE["psqt"]).astype(np.float32).T.reshape(LAYER_STACKS, FEATURE_BUCKETS, PIECE_SQUARES)
    return _split(np.ascontiguousarray(whole), 1)


def parameters_of(network: Network) -> Parameters:
    """The parameters that quantise to a network without threats; ValueError for one with them."""
    width = network.architecture.width
    if network.architecture.threats:
        raise ValueError("The network has threat features; expected one without, as only those are trained.")
    weight = network.piece_square_weight.reshape(FEATURE_BUCKETS, PIECE_SQUARES, width) / np.float32(SCALE["weight"])
    shared, bucket = _split(weight.astype(np.float32), 0)
    psqt_shared, psqt_bucket = _split_psqt(network.piece_square_psqt)
    common, stack = {}, {}
    for name in layer_shapes(width):
        integers = np.stack([np.asarray(getattr(one, name)) for one in network.stacks])
        common[name], stack[name] = _split((integers / SCALE[name]).astype(np.float32), 0)
    return {
        "bias": (network.transformer_bias / SCALE["bias"]).astype(np.float32),
        "shared": shared,
        "bucket": bucket,
        "psqt_shared": psqt_shared,
        "psqt_bucket": psqt_bucket,
        "common": common,
        "stack": stack,
    }


def flattened(parameters: Mapping, prefix: str = "") -> dict[str, np.ndarray]:
    """Arrays of nested dictionaries by names such as `stack.fc0_bias`."""
    flat = {}
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = np.asarray(value)
    return flat


def nested(flat: Mapping[str, np.ndarray]) -> Parameters:
    """Inverse of `flattened`."""
    tree: Parameters = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = value
    return tree
