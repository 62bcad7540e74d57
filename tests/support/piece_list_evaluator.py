"""An evaluator for tests of what is around evaluators: its outputs are sums over the piece list."""

import threading
import time

import numpy as np

from games.xiangqi.geometry import NO_SQUARE, PIECES
from nnue_jax.evaluator import Evaluator

PSQT_WEIGHTS = np.arange(PIECES, dtype=np.int64) * 37 % 101 - 50
POSITIONAL_WEIGHTS = np.arange(PIECES, dtype=np.int64) * 53 % 97 - 48


class PieceListEvaluator(Evaluator):
    """delay_s: that each call takes at least. calls, positions: what it was asked for."""

    name = "piece list"
    device = "NumPy"
    preferred_batch = 1
    maximum_batch = 1 << 20

    def __init__(self, delay_s: float = 0.0):
        self.calls = 0
        self.positions = 0
        self.largest_batch = 0
        self._delay_s = delay_s
        self._lock = threading.Lock()

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with self._lock:
            self.calls += 1
            self.positions += len(packed)
            self.largest_batch = max(self.largest_batch, len(packed))
        time.sleep(self._delay_s)
        squares = packed["square_of"].astype(np.int64)
        squares[squares == NO_SQUARE] = 0
        sign = 1 - 2 * packed["side"].astype(np.int64)
        return tuple((sign * (squares @ weights)).astype(np.int32) for weights in (PSQT_WEIGHTS, POSITIONAL_WEIGHTS))
