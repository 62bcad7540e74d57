"""Samples in memory, and threads that prepare batches of them ahead of their use.

In every epoch all samples of the training part come in a new order, a function of the seed and the epoch alone; what
does not fill a last batch is left out. So a run that goes on from any batch sees what an uninterrupted one sees.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnue_jax.training.features import Batch, make_batch
from nnue_jax.training.records import RECORD, RecordsError, read_games, shard_paths

AHEAD = 3  # batches in preparation or waiting


@dataclass(frozen=True)
class Samples:
    """records: all of them. training, validation: numbers of records, ascending; no game is in both."""

    records: np.ndarray  # [n] RECORD
    training: np.ndarray  # [t] uint32
    validation: np.ndarray  # [v] uint32


def load_samples(places: Iterable[Path], validation_share: float) -> Samples:
    """The records of shards, or of folders of shards; RecordsError if there are none.

    Of each shard about `validation_share` is kept for validation: its last games, but never all of them.
    """
    paths = [path for place in map(Path, places) for path in (shard_paths(place) if place.is_dir() else [place])]
    parts, held_out, start = [], [], 0
    for path in paths:
        shard = read_games(path)
        parts.append(shard.records)
        kept = _kept_records(shard.game_lengths, validation_share)
        held_out.append(np.arange(start + kept, start + len(shard.records), dtype=np.uint32))
        start += len(shard.records)
    if start == 0:
        raise RecordsError("There are no training positions; expected shards or folders of shards.")
    validation = np.concatenate(held_out)
    is_training = np.ones(start, bool)
    is_training[validation] = False
    return Samples(
        np.concatenate(parts).astype(RECORD, copy=False), np.flatnonzero(is_training).astype(np.uint32), validation
    )


def _kept_records(game_lengths: np.ndarray, validation_share: float) -> int:
    """How many records of a shard, whole games from its beginning, are for training."""
    ends = np.cumsum(game_lengths)
    if len(ends) < 2 or validation_share == 0:
        return int(ends[-1]) if len(ends) else 0
    last = np.searchsorted(ends, ends[-1] * (1 - validation_share))
    return int(ends[min(last, len(ends) - 2)])


def steps_in_epoch(samples: Samples, size: int) -> int:
    """Batches of `size` positions."""
    return len(samples.training) // size


class Loader:
    """Makes the training batches of an epoch, from one of them on, in other threads."""

    def __init__(self, samples: Samples, size: int, seed: int, mirrors: bool = True, threads: int = 1):
        self._samples = samples
        self._size = size
        self._seed = seed
        self._mirrors = mirrors
        self._threads = threads

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """All batches of an epoch from number `first` on."""
        order = self._order(epoch)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="loader") as pool:
            waiting: deque[Future[Batch]] = deque()
            try:
                for number in range(first, len(order) // self._size):
                    waiting.append(pool.submit(self._make, order, epoch, number))
                    if len(waiting) > AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for task in waiting:
                    task.cancel()

    def _order(self, epoch: int) -> np.ndarray:
        order = self._samples.training.copy()
        np.random.Generator(np.random.PCG64([self._seed, epoch])).shuffle(order)
        return order

    def _make(self, order: np.ndarray, epoch: int, number: int) -> Batch:
        # Ascending, the samples are read from memory in one sweep.
        chosen = np.sort(order[number * self._size : (number + 1) * self._size])
        mirror_seed = self._seed * 1_000_003 + epoch if self._mirrors else None
        return make_batch(self._samples.records, chosen, self._size, mirror_seed)


def validation_batches(samples: Samples, size: int) -> Iterator[Batch]:
    """All samples held out, as they are; the last batch may be smaller than the others, in the same slots."""
    for start in range(0, len(samples.validation), size):
        yield make_batch(samples.records, samples.validation[start : start + size], size, None)
