"""What the main search does not look at, or not as deeply: pruning of moves and late move reductions.

Numbers are in internal units (a pawn is worth about 144) and reductions in 1024ths of a ply.
"""

import math

import numpy as np
from numba import int64

from games.jit import leaf
from games.xiangqi.attacks import gives_check
from games.xiangqi.geometry import EMPTY, NO_MOVE
from games.xiangqi.movegen import MAX_MOVES
from games.xiangqi.position import origin_of, target_of
from search.history import (
    butterfly_index,
    capture_index,
    continuation_context,
    continuation_index,
    continuation_score,
    quiet_score,
)
from search.layout import MATE_IN_MAX_PLY, MAX_PLY
from search.nodes import has_attackers
from search.see import PIECE_VALUE, see_at_least

PLY = 1024  # reductions count in this fraction


def _reduction_table() -> np.ndarray:
    """[MAX_MOVES or MAX_PLY] int64: the product of two entries is a reduction in 1024ths of a ply."""
    size = max(MAX_MOVES, MAX_PLY) + 1
    return np.array([0] + [int(21.5 * math.log(n)) for n in range(1, size)], np.int64)


REDUCTIONS = _reduction_table()


@leaf
def base_reduction(frame):
    """Late move reduction before the history of the move is known."""
    reduction = REDUCTIONS[min(frame.depth, MAX_PLY)] * REDUCTIONS[frame.move_count] + 600
    if not frame.improving:
        reduction += 300
    return reduction


@leaf
def is_pruned(searcher, histories, frame, move):
    """Whether a legal move can be left out, given that another has saved the side from mate."""
    position = searcher.position
    depth = frame.depth
    victim = int64(position.board[target_of(move)])
    if not frame.skip_quiets and frame.move_count >= (3 + depth * depth) // (2 - frame.improving):
        frame.skip_quiets = 1
    if not has_attackers(position):
        return False
    reduced_depth = max(frame.depth - 1 - frame.reduction // PLY, 0)
    if victim != EMPTY:
        if reduced_depth < 7 and not frame.in_check and not gives_check(position, move):
            history = int64(histories.captures[capture_index(position, move)])
            optimistic = frame.static_eval + 322 + 336 * reduced_depth + PIECE_VALUE[victim] + history // 8
            if optimistic <= frame.alpha:
                return True
        return not see_at_least(position, move, -200 * depth)
    if _is_quiet_pruned(searcher, histories, frame, move, reduced_depth):
        return not gives_check(position, move) or not see_at_least(position, move, -200 * depth)
    return False


@leaf
def _is_quiet_pruned(searcher, histories, frame, move, reduced_depth):
    """Whether a quiet move can be left out, unless it gives check."""
    position = searcher.position
    piece = int64(position.board[origin_of(move)])
    history = continuation_score(histories, continuation_context(frame), continuation_index(piece, move))
    if history < -4500 * frame.depth:
        return True
    history += 2 * int64(histories.butterfly[butterfly_index(position.side, move)])
    reduced_depth = max(reduced_depth + history // 8192, 0)
    if not frame.in_check and reduced_depth < 9:
        optimistic = frame.static_eval + 130 + 129 * reduced_depth
        if optimistic <= frame.alpha and not gives_check(position, move):
            if frame.best_value <= optimistic and optimistic < MATE_IN_MAX_PLY:
                frame.best_value = optimistic
            return True
    return not see_at_least(position, move, -35 * reduced_depth * reduced_depth)


@leaf
def late_reduction(searcher, histories, frame, move):
    position = searcher.position
    reduction = frame.reduction
    if frame.tt_pv:
        reduction -= 1024 + 512 * frame.is_pv
    if frame.cut_node:
        reduction += 1700
    victim = int64(position.board[target_of(move)])
    if victim != EMPTY:
        history = 6 * PIECE_VALUE[victim] + int64(histories.captures[capture_index(position, move)])
    else:
        if frame.tt_move != NO_MOVE and position.board[target_of(frame.tt_move)] != EMPTY:
            reduction += 900
        history = quiet_score(position, histories, continuation_context(frame), move)
    return reduction - history * 946 // 8192
