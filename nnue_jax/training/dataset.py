"""Training data from folders of shards: what is kept out for validation, and the rest in random order.

The last games of every folder, one in fifty, are the validation positions: whole games, so that no validation position
is one move away from a training position. An order depends on the seed, the epoch and the data alone.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from nnue_jax.training.records import RECORD, RecordsError, read_games, read_header, read_shard, shard_paths

VALIDATION_SHARE = 0.02


@dataclass(frozen=True)
class Part:
    """Records first ... end - 1 of a shard."""

    path: Path
    first: int
    end: int

    @property
    def positions(self) -> int:
        return self.end - self.first

    def read(self) -> np.ndarray:
        """[positions] RECORD"""
        return read_shard(self.path)[self.first : self.end]


class TrainingData:
    """All shards of one or several folders. RecordsError if a folder has none, or a shard cannot be read.

    max_positions: how many training positions may be in memory at once; None for all of them. Then they are read once
    and stay, and every order of them is as likely as any other. With a limit, each epoch takes blocks of about so many
    positions from random shards, and the order within a block is random.
    """

    def __init__(
        self,
        folders: Sequence[str | os.PathLike],
        validation_share: float = VALIDATION_SHARE,
        max_positions: int | None = None,
    ):
        if not 0 <= validation_share < 1:
            raise RecordsError(f"The share of validation games is {validation_share}; expected 0 to less than 1.")
        if max_positions is not None and max_positions < 1:
            raise RecordsError(f"The limit is {max_positions} positions in memory; expected 1 or more.")
        self._training: list[Part] = []
        self._validation: list[Part] = []
        self._max_positions = max_positions
        self._all: np.ndarray | None = None
        for folder in folders:
            training, validation = split_folder(folder, validation_share)
            self._training += training
            self._validation += validation

    @property
    def positions(self) -> int:
        """Number of training positions."""
        return sum(part.positions for part in self._training)

    @property
    def validation_positions(self) -> int:
        return sum(part.positions for part in self._validation)

    def validation(self) -> np.ndarray:
        """[validation_positions] RECORD, always in the same order."""
        return _read_parts(self._validation)

    def batches_per_epoch(self, batch_size: int) -> int:
        """Only full batches count."""
        return self.positions // batch_size

    def batches(self, batch_size: int, seed: int, epoch: int, first_batch: int = 0) -> Iterator[np.ndarray]:
        """[batch_size] RECORD at a time, all training positions of an epoch in random order but an incomplete rest.

        Those before number `first_batch` are left out, quickly: so a run can be taken up where it was interrupted.
        """
        batch = np.empty(batch_size, RECORD)
        filled = 0
        for block, order in self._blocks(seed, epoch, first_batch * batch_size):
            begin = 0
            while begin < len(order):
                taken = order[begin : begin + batch_size - filled]
                batch[filled : filled + len(taken)] = block[taken]
                filled += len(taken)
                begin += len(taken)
                if filled == batch_size:
                    yield batch
                    batch = np.empty(batch_size, RECORD)
                    filled = 0

    def _blocks(self, seed: int, epoch: int, skipped: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(records, order in which to take them), without the first `skipped` of the epoch."""
        rng = np.random.Generator(np.random.PCG64([seed, epoch]))
        for parts in self._group(rng):
            count = sum(part.positions for part in parts)
            order = rng.permutation(np.arange(count, dtype=np.uint32))
            if skipped < count:
                yield self._read(parts), order[skipped:]
            skipped = max(0, skipped - count)

    def _group(self, rng: np.random.Generator) -> list[list[Part]]:
        """Parts that are in memory together."""
        if self._max_positions is None or self.positions <= self._max_positions:
            return [self._training]
        parts = [self._training[i] for i in rng.permutation(len(self._training))]
        blocks = -(-self.positions // self._max_positions)
        target = self.positions / blocks
        groups: list[list[Part]] = [[] for _ in range(blocks)]
        for part, end in zip(parts, accumulate(part.positions for part in parts), strict=True):
            groups[min(blocks - 1, int((end - part.positions / 2) / target))].append(part)
        return [group for group in groups if group]

    def _read(self, parts: list[Part]) -> np.ndarray:
        if parts is not self._training:
            return _read_parts(parts)
        if self._all is None:
            self._all = _read_parts(parts)
        return self._all


def split_folder(folder: str | os.PathLike, validation_share: float) -> tuple[list[Part], list[Part]]:
    """(training parts, validation parts) of a folder, in the order of its games."""
    paths = shard_paths(folder)
    if not paths:
        raise RecordsError(f"'{folder}' has no shards of training data.")
    headers = [read_header(path) for path in paths]
    games = sum(header.games for header in headers)
    training_games = games - int(np.ceil(games * validation_share))
    training, validation = [], []
    for path, header in zip(paths, headers, strict=True):
        if header.games <= training_games:
            border = header.positions
        elif training_games <= 0:
            border = 0
        else:
            border = int(read_games(path).game_lengths[:training_games].sum())
        training_games -= header.games
        if border > 0:
            training.append(Part(path, 0, border))
        if border < header.positions:
            validation.append(Part(path, border, header.positions))
    return training, validation


def _read_parts(parts: list[Part]) -> np.ndarray:
    """[n] RECORD"""
    records = np.empty(sum(part.positions for part in parts), RECORD)
    filled = 0
    for part in parts:
        records[filled : filled + part.positions] = part.read()
        filled += part.positions
    return records
