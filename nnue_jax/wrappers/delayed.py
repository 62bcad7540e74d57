"""An evaluator made as slow as one behind a network or on a far device."""

import time

import numpy as np

from nnue_jax.evaluator import Evaluator


class DelayedEvaluator(Evaluator):
    """The outputs of `inner`, later: by `latency_ms` a batch and 1 / `positions_per_s` a position."""

    def __init__(self, inner: Evaluator, latency_ms: float, positions_per_s: float | None = None):
        if latency_ms < 0 or (positions_per_s is not None and positions_per_s <= 0):
            raise ValueError(
                f"A delay of {latency_ms} ms and {positions_per_s} positions/s is impossible; "
                "expected at least 0 ms, and more than 0 positions/s or None."
            )
        self._inner = inner
        self._latency_s = latency_ms / 1000
        self._position_s = 0.0 if positions_per_s is None else 1 / positions_per_s
        self.name = f"{inner.name} delayed"
        self.device = inner.device
        self.win_rate_model = inner.win_rate_model
        self.preferred_batch = inner.preferred_batch
        self.maximum_batch = inner.maximum_batch

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = self._inner.outputs(packed)
        time.sleep(self._latency_s + self._position_s * len(packed))
        return result
