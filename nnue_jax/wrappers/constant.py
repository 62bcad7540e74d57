"""The same outputs for every position."""

import numpy as np

from nnue_jax.evaluator import Evaluator


class ConstantEvaluator(Evaluator):
    """`psqt` and `positional`, both in internal units, whatever the position."""

    name = "constant"
    device = "none"
    preferred_batch = 1
    maximum_batch = 1 << 16

    def __init__(self, psqt: int = 0, positional: int = 0):
        self._psqt = psqt
        self._positional = positional

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(packed), self._psqt, np.int32), np.full(len(packed), self._positional, np.int32)
