"""The order in which the picker hands out moves."""

import numpy as np
import pytest

from games.jit import kernel
from games.memory import address_of
from games.xiangqi import Game
from games.xiangqi.geometry import NO_MOVE, move_text
from games.xiangqi.movegen import MAX_MOVES
from search.layout import HISTORIES, SEARCHER
from search.picker import LEAST_RANK, _take_best, begin_main, next_move


@kernel
def drain_kernel(searcher, picked):
    """Take all ranks of the first frame, best first."""
    frame = searcher.frames[0]
    count = 0
    while frame.next < frame.end:
        picked[count] = _take_best(searcher, frame)
        count += 1
    return count


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 32, 33, 64, 119])
@pytest.mark.parametrize("start", [0, 5])
def test_best_first(count, start):
    """What lies before and behind the ranks is greater than all of them, and must not be taken."""
    generator = np.random.default_rng(count)
    ranks = np.full(start + count + 64, 2**31 - 1, np.int32)
    values = generator.choice(2**31, count, replace=False) - 2**30
    values[generator.integers(count)] = LEAST_RANK + 1
    ranks[start : start + count] = values
    searcher = np.zeros(1, SEARCHER)[0]
    searcher["ranks"] = address_of(ranks)
    searcher["frames"][0]["next"] = start
    searcher["frames"][0]["end"] = start + count
    picked = np.zeros(count, np.int64)
    assert drain_kernel(searcher, picked) == count
    assert picked.tolist() == sorted(values.tolist(), reverse=True)


@kernel
def list_kernel(searcher, histories, picked):
    """Take all moves of the first frame."""
    frame = searcher.frames[0]
    begin_main(searcher, frame)
    count = 0
    move = next_move(searcher, histories, frame)
    while move != NO_MOVE:
        picked[count] = move
        count += 1
        move = next_move(searcher, histories, frame)
    return count


def test_quiet_moves_that_give_check_come_first_unless_they_lose_the_piece():
    searcher = np.zeros(1, SEARCHER)[0]
    buffers = np.zeros((2, 2 * MAX_MOVES), np.int32)
    searcher["moves"], searcher["ranks"] = address_of(buffers[0]), address_of(buffers[1])
    searcher["position"] = Game("4k4/R8/9/9/9/9/9/9/R8/3K5 w - - 0 1").position[0]
    searcher["frames"][0]["tt_move"] = NO_MOVE
    picked = np.zeros(MAX_MOVES, np.int64)
    count = list_kernel(searcher, np.zeros(1, HISTORIES)[0], picked)
    moves = [move_text(move) for move in picked[:count].tolist()]
    assert set(moves[:2]) == {"a8a9", "a1e1"}
    assert "a8e8" in moves[3:]  # the king takes the rook
