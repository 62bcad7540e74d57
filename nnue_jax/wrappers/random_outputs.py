"""Random outputs that a position always gets again."""

import numpy as np

from games.xiangqi.geometry import KIND_OF, KINDS, NO_SQUARE, PIECES, PIECES_PER_SIDE, SQUARES
from nnue_jax.evaluator import Evaluator

MAX_OUTPUT = 500  # internal units; about as large as what networks say of playable positions


class RandomEvaluator(Evaluator):
    """Outputs from -MAX_OUTPUT to MAX_OUTPUT that depend on `seed`, on what stands where and on the side to move.

    Which of two like pieces stands on which square makes no difference, as for a network.
    """

    name = "random"
    device = "NumPy"
    preferred_batch = 256
    maximum_batch = 1 << 16

    def __init__(self, seed: int):
        # NumPy guarantees the raw stream of PCG64 not to change.
        stream = np.random.PCG64(seed)
        of_code = stream.random_raw(2 * KINDS * (SQUARES + 1)).reshape(2 * KINDS, SQUARES + 1)
        of_code[:, -1] = 0
        code = np.arange(PIECES) // PIECES_PER_SIDE * KINDS + KIND_OF[:PIECES]
        self._of_piece = of_code[code]  # [32, 91] uint64 by identity and square; the last column is for none
        self._of_side = stream.random_raw(2)

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        squares = packed["square_of"]
        column = np.where(squares == NO_SQUARE, SQUARES, squares)
        words = self._of_piece[np.arange(PIECES), column].sum(axis=1) + self._of_side[packed["side"]]
        words = _mixed(words)
        span = np.uint64(2 * MAX_OUTPUT + 1)
        psqt, positional = words % span, (words >> np.uint64(32)) % span
        return psqt.astype(np.int32) - MAX_OUTPUT, positional.astype(np.int32) - MAX_OUTPUT


def _mixed(words: np.ndarray) -> np.ndarray:
    """uint64 words in which every bit depends on all of a word: sums alone leave like positions alike."""
    words = (words ^ words >> np.uint64(31)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(29)) * np.uint64(0xD1B54A32D192ED03)
    return words ^ words >> np.uint64(32)
