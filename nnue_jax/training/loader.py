"""Batches of training data, prepared by another thread ahead of their use.

The batches of an epoch are a function of the data, the seed and the epoch alone, so a run that goes on from any of them
sees what an uninterrupted one sees.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from nnue_jax.training.dataset import TrainingData
from nnue_jax.training.features import Batch, make_batch

AHEAD = 3  # batches that are ready or in preparation while one is in use


class Loader:
    """Makes the training batches of an epoch, from one of them on, in a thread of its own."""

    def __init__(self, data: TrainingData, size: int, seed: int):
        self._data = data
        self._size = size
        self._seed = seed

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """All batches of an epoch from number `first` on."""
        parts = self._data.batches(self._size, self._seed, epoch, first)

        def make() -> Batch:
            # Tasks run one after the other, in one thread.
            return make_batch(next(parts), self._size)

        with ThreadPoolExecutor(1, thread_name_prefix="loader") as pool:
            waiting: deque[Future[Batch]] = deque()
            try:
                for _ in range(first, self._data.batches_per_epoch(self._size)):
                    waiting.append(pool.submit(make))
                    if len(waiting) > AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for task in waiting:
                    task.cancel()


def in_batches(records: np.ndarray, size: int) -> Iterator[Batch]:
    """[n] RECORD as they are, in their order; the last batch may hold fewer positions than the others."""
    for start in range(0, len(records), size):
        yield make_batch(records[start : start + size], size)
