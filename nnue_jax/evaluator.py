"""Evaluation in bulk: what all evaluators have in common, and how one is chosen.

An evaluator gives the network's two outputs for arrays of PACKED positions; `evaluate` makes values, centipawns and
expected results of them. All backends agree in every bit.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain, islice
from typing import Any

import numpy as np

from games.xiangqi.packed import PACKED, pack_fens
from nnue_jax.network_file import Network, read_network
from nnue_jax.outcomes import fill_outcomes
from nnue_jax.win_rate import PIKAFISH_MODEL, WinRateModel

Positions = np.ndarray | Iterable[str] | Iterable[np.ndarray]


@dataclass(frozen=True)
class Evaluations:
    """Arrays [n] for n positions, all from the side to move's view.

    psqt, positional   int32, the network's outputs in internal units
    value              int32, both blended and damped by the 60-move counter, as the search sees them; internal units
    cp                 int32, centipawns: 100 where half of all games are won
    win, draw, loss    int32, expected results in thousandths
    in_check           bool; where it is True the search never asks, and value and what follows from it are zero
    """

    psqt: np.ndarray
    positional: np.ndarray
    value: np.ndarray
    cp: np.ndarray
    win: np.ndarray
    draw: np.ndarray
    loss: np.ndarray
    in_check: np.ndarray

    def __len__(self) -> int:
        return len(self.psqt)


class Evaluator(ABC):
    """Evaluates positions in bulk.

    name              such as `numba` or `jax:cpu`
    device            what it runs on, in words
    preferred_batch   number of positions from which on larger batches gain little
    maximum_batch     larger ones are split
    batch_sizes       to which batches are filled up, ascending; empty if any size will do
    uses_caller       whether a call keeps the processor of the calling thread busy, so that every thread does best to
                      call for itself, and nothing is gained by work beside it
    win_rate_model    from values to centipawns and expected results
    """

    name: str
    device: str
    preferred_batch: int
    maximum_batch: int
    batch_sizes: tuple[int, ...] = ()
    uses_caller: bool = False
    win_rate_model: WinRateModel = PIKAFISH_MODEL

    @staticmethod
    def load(network: str | os.PathLike | Network, backend: str = "auto", **options) -> "Evaluator":
        """An evaluator of a network file on the backend of this name; see `backends.BACKENDS`.

        NetworkError for a file that is no network, BackendError for a backend that is not there.
        """
        from nnue_jax.backends import create

        if not isinstance(network, Network):
            network = read_network(network)
        evaluator = create(network, backend, **options)
        evaluator.win_rate_model = network.win_rate_model
        return evaluator

    @abstractmethod
    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(psqt, positional), int32 [n], of [n] PACKED positions; any n, also from several threads at once."""

    def begin(self, packed: np.ndarray) -> Any:
        """Start to evaluate, if the device can do so by itself; what `finish` takes."""
        return self.outputs(packed)

    def finish(self, begun: Any) -> tuple[np.ndarray, np.ndarray]:
        """The outputs of a batch for which `begin` was called, in whatever order."""
        return begun

    def warm_up(self) -> None:  # noqa: B027 - most have nothing to do
        """Get everything ready that would make the first batches slow."""

    def padded_size(self, positions: int) -> int:
        """Number of positions that are computed for a batch of so many."""
        return next((size for size in self.batch_sizes if size >= positions), positions)

    def evaluate(self, positions: Positions) -> Evaluations:
        """Evaluate FENs, an array of PACKED positions, or an iterator of either.

        PositionError for a FEN that is refused.
        """
        parts = [self._evaluate_packed(packed) for packed in batches(positions, self.maximum_batch)]
        if len(parts) == 1:
            return parts[0]
        columns = (field.name for field in fields(Evaluations))
        return Evaluations(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))

    def _evaluate_packed(self, packed: np.ndarray) -> Evaluations:
        psqt, positional = self.outputs(packed)
        return evaluations(packed, psqt, positional, self.win_rate_model)


def evaluations(
    packed: np.ndarray, psqt: np.ndarray, positional: np.ndarray, model: WinRateModel = PIKAFISH_MODEL
) -> Evaluations:
    """What follows from the network's outputs for [n] PACKED positions."""
    value, cp, win, draw, loss = (np.zeros(len(packed), np.int32) for _ in range(5))
    fill_outcomes(packed, psqt, positional, *model.tables(), value, cp, win, draw, loss)
    return Evaluations(psqt, positional, value, cp, win, draw, loss, packed["in_check"] != 0)


def batches(positions: Positions, size: int) -> Iterator[np.ndarray]:
    """At least one array of PACKED positions, none of more than `size`, that together hold `positions` in order."""
    if isinstance(positions, str):
        positions = [positions]
    if isinstance(positions, np.ndarray) and positions.dtype == PACKED:
        yield from _split(positions.reshape(-1), size)
        return
    iterator = iter(positions)
    first = next(iterator, None)
    if first is None:
        yield np.zeros(0, PACKED)
    elif isinstance(first, str):
        yield from _packed_fens(chain([first], iterator), size)
    else:
        for packed in chain([first], iterator):
            yield from _split(np.atleast_1d(packed), size)


def _packed_fens(fens: Iterator[str], size: int) -> Iterator[np.ndarray]:
    number = 0
    while chunk := list(islice(fens, size)):
        yield pack_fens(chunk, number)
        number += len(chunk)


def _split(packed: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, max(1, len(packed)), size):
        yield packed[start : start + size]
