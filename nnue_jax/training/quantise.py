"""From trained parameters to the network that the engine loads, and a check that both say the same."""

import numpy as np

from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARE_FEATURES, Architecture
from nnue_jax.network_file import LayerStack, Network
from nnue_jax.numba_batch import NumbaBatchEvaluator
from nnue_jax.training.features import make_batch
from nnue_jax.training.parameters import LIMIT, SCALE, Parameters, layer_shapes, width_of

# Internal units. Sums beyond 2**24 and outputs beyond 2**24 / 75, far from anything that occurs, may round differently.
BOUND = 1

_DTYPES = {"bias": "<i2", "weight": "i1", "psqt": "<i4"}


def _integers(name: str, parameter: np.ndarray, dtype: str) -> np.ndarray:
    # In float32, as in training, so that halves are rounded alike.
    rounded = np.rint(parameter.astype(np.float32) * np.float32(SCALE[name]))
    return np.clip(rounded, -LIMIT[name], LIMIT[name]).astype(dtype)


def quantised(parameters: Parameters, description: str) -> Network:
    """The network of these parameters."""
    width = width_of(parameters)
    weight = parameters["shared"] + parameters["bucket"]
    psqt = parameters["psqt_shared"][:, None] + parameters["psqt_bucket"]
    layers = {}
    for name in layer_shapes(width):
        whole = parameters["common"][name] + parameters["stack"][name]
        layers[name] = _integers(name, whole, "<i4" if name.endswith("bias") else "i1")
    stacks = tuple(
        LayerStack(**{name: np.ascontiguousarray(array[stack]) for name, array in layers.items()})
        for stack in range(LAYER_STACKS)
    )
    assert weight.shape == (FEATURE_BUCKETS, PIECE_SQUARE_FEATURES // FEATURE_BUCKETS, width)
    return Network(
        architecture=Architecture(width),
        description=description.encode(),
        transformer_bias=_integers("bias", parameters["bias"], _DTYPES["bias"]),
        threat_weight=np.zeros((0, width), "i1"),
        threat_psqt=np.zeros((0, LAYER_STACKS), "<i4"),
        piece_square_weight=_integers("weight", weight, _DTYPES["weight"]).reshape(-1, width),
        piece_square_psqt=np.ascontiguousarray(_integers("psqt", psqt, _DTYPES["psqt"]).reshape(LAYER_STACKS, -1).T),
        stacks=stacks,
    )


class QuantisationError(ValueError):
    """A network that does not say what the trained parameters say."""


def check_quantised(network: Network, trainer, records: np.ndarray) -> tuple[int, int]:
    """Largest differences (psqt, positional), in internal units, between a network and the trainer it was made from.

    The network is asked through the engine's own evaluator about [n] RECORDs. QuantisationError if a difference is more
    than BOUND.
    """
    batch = make_batch(records, len(records))
    used = batch.sample >= 0
    order = batch.sample[used]
    found = NumbaBatchEvaluator(network).outputs(np.ascontiguousarray(records["packed"])[order])
    differences = [
        int(np.abs(expected[used].astype(np.int64) - outputs).max(initial=0))
        for expected, outputs in zip(trainer.outputs(batch), found, strict=True)
    ]
    if max(differences) > BOUND:
        raise QuantisationError(
            f"On {len(records)} positions the quantised network differs from the trained one by up to "
            f"{differences[0]} units in psqt and {differences[1]} in positional; expected at most {BOUND}."
        )
    return differences[0], differences[1]
