"""Perft split by the first move, as move generators are compared."""

from collections.abc import Iterator

import numpy as np

from games.xiangqi.geometry import move_text
from games.xiangqi.movegen import legal_moves, make_move_kernel, perft


def divide(position: np.ndarray, depth: int) -> Iterator[tuple[str, int]]:
    """(move, number of lines of `depth` moves that start with it) for each legal move of a POSITION array [1]."""
    for move in legal_moves(position):
        after = position.copy()
        make_move_kernel(after[0], move)
        yield move_text(move), perft(after, depth - 1)
