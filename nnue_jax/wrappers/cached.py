"""Outputs that are remembered."""

import threading
from collections import OrderedDict

import numpy as np

from games.xiangqi.packed import PACKED
from nnue_jax.evaluator import Evaluator

# Outputs depend on the piece list and the side to move, which come first in a PACKED record, and on nothing else.
_KEY_BYTES = PACKED.fields["in_check"][1]


class CachedEvaluator(Evaluator):
    """The outputs of `inner`, which is asked once for a position that is among the last `capacity` different ones.

    Keys are whole piece lists, so no position is ever taken for another; the least recently used goes first.

    hits     positions that were answered without `inner`: remembered, or met before in the same call
    misses   positions that `inner` was asked for
    """

    def __init__(self, inner: Evaluator, capacity: int):
        if capacity < 1:
            raise ValueError(f"A cache of {capacity} positions is impossible; expected at least 1.")
        self._inner = inner
        self._capacity = capacity
        self._remembered: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0
        self.name = f"{inner.name} cached"
        self.device = inner.device
        self.win_rate_model = inner.win_rate_model
        self.preferred_batch = inner.preferred_batch
        self.maximum_batch = inner.maximum_batch

    def __len__(self) -> int:
        """Number of positions remembered."""
        return len(self._remembered)

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys = _keys(packed)
        first_with: dict[bytes, int] = {}
        for i, key in enumerate(keys):
            first_with.setdefault(key, i)
        known = self._recall(first_with)
        missing = [key for key in first_with if key not in known]
        with self._lock:
            self.misses += len(missing)
            self.hits += len(keys) - len(missing)
        if missing:
            # The lock is not held: other threads may look up and evaluate meanwhile.
            psqt, positional = self._inner.outputs(packed[[first_with[key] for key in missing]])
            found = dict(zip(missing, zip(psqt.tolist(), positional.tolist(), strict=True), strict=True))
            self._remember(found)
            known |= found
        both = np.array([known[key] for key in keys], np.int32).reshape(-1, 2)
        return both[:, 0].copy(), both[:, 1].copy()

    def _recall(self, keys) -> dict[bytes, tuple[int, int]]:
        known = {}
        with self._lock:
            for key in keys:
                outputs = self._remembered.get(key)
                if outputs is not None:
                    self._remembered.move_to_end(key)
                    known[key] = outputs
        return known

    def _remember(self, found: dict[bytes, tuple[int, int]]) -> None:
        with self._lock:
            for key, outputs in found.items():
                self._remembered[key] = outputs
                self._remembered.move_to_end(key)
            while len(self._remembered) > self._capacity:
                self._remembered.popitem(last=False)


def _keys(packed: np.ndarray) -> list[bytes]:
    """Piece list and side to move of each position."""
    octets = np.ascontiguousarray(packed).view(np.uint8).reshape(len(packed), PACKED.itemsize)
    return np.ascontiguousarray(octets[:, :_KEY_BYTES]).view(f"V{_KEY_BYTES}").reshape(-1).tolist()
