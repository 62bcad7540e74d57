"""Perft split by the first move, as move generators are compared."""

from collections.abc import Callable, Iterator

import numpy as np

from games.xiangqi.geometry import move_text
from games.xiangqi.movegen import legal_moves, make_move_kernel, perft

KERNEL_DEPTH = 4  # counted in one go, in some hundredths of a second


def divide(
    position: np.ndarray, depth: int, is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[tuple[str, int]]:
    """(move, number of lines of `depth` moves that start with it) for each legal move of a POSITION array [1].

    Ends early, before a move that is not fully counted, when `is_stopped` says so.
    """
    for move in legal_moves(position):
        count = _count(_after(position, move), depth - 1, is_stopped)
        if is_stopped():
            return
        yield move_text(move), count


def _after(position: np.ndarray, move: int) -> np.ndarray:
    after = position.copy()
    make_move_kernel(after[0], move)
    return after


def _count(position: np.ndarray, depth: int, is_stopped: Callable[[], bool]) -> int:
    if depth <= KERNEL_DEPTH:
        return perft(position, depth)
    total = 0
    for move in legal_moves(position):
        if is_stopped():
            break
        total += _count(_after(position, move), depth - 1, is_stopped)
    return total
