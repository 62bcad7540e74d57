"""The specification as an evaluator: a position at a time, slow, for comparisons."""

import numpy as np

from games.xiangqi.packed import position_of
from nnue_jax import reference
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import Network


class ReferenceEvaluator(Evaluator):
    """Loops over `reference.evaluate`."""

    name = "reference"
    device = "NumPy"
    preferred_batch = 1
    maximum_batch = 1024

    def __init__(self, network: Network):
        self._network = network

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [reference.evaluate(self._network, position_of(record)[0]) for record in packed]
        psqt = np.array([evaluation.psqt for evaluation in found], np.int32)
        positional = np.array([evaluation.positional for evaluation in found], np.int32)
        return psqt, positional
