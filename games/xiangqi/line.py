"""A line of moves as the repetition judge needs it: what led from its first position to the present one.

LINE; element i of each array belongs to the position after i moves
    keys       [.] i8   Zobrist key of placement and side to move
    in_check   [.] u1   whether the side to move is in check
    moves      [.] u2   the move that led there; NO_MOVE for a pass and for the first position

COUNTERS of a position
    rule60       i8       plies that the 60-move rule counts
    checks       [2] i8   checks given by each side since the last capture
    since_pass   i8       plies since the first position or the last pass

Each side's first FREE_CHECKS checks count for the 60-move rule, and so do the answers to them; later ones do not. So
the plies since the last capture are rule60 and the uncounted ones: `plies_since_capture`.
"""

import numpy as np
from numba import int64

from games.jit import kernel, leaf
from games.xiangqi.attacks import king_attacked
from games.xiangqi.geometry import EMPTY, NO_MOVE
from games.xiangqi.position import make_move

# A longer game keeps its last positions; repetitions of older ones are not seen.
HISTORY_LENGTH = 1024
LINE_LENGTH = HISTORY_LENGTH + 256  # with room for the deepest search

FREE_CHECKS = 10
RULE60_LIMIT = 120

LINE = np.dtype([("keys", "i8", (LINE_LENGTH,)), ("moves", "u2", (LINE_LENGTH,)), ("in_check", "u1", (LINE_LENGTH,))])
COUNTERS = np.dtype([("rule60", "i8"), ("checks", "i8", (2,)), ("since_pass", "i8")])


@leaf
def count_move(before, after, mover, is_capture, gives_check, was_in_check):
    """Set the COUNTERS `after` a move of side `mover`; the last two tell of the sides after and before the move."""
    after.since_pass = before.since_pass + 1
    if is_capture:
        after.rule60 = 0
        after.checks[0] = 0
        after.checks[1] = 0
        return
    opponent = 1 - mover
    after.checks[opponent] = before.checks[opponent]
    after.checks[mover] = before.checks[mover] + int64(gives_check)
    after.rule60 = before.rule60
    if gives_check and after.checks[mover] > FREE_CHECKS:
        return
    if was_in_check and before.checks[opponent] > FREE_CHECKS:
        after.checks[opponent] += 1
        return
    after.rule60 += 1


@leaf
def count_pass(before, after):
    after.rule60 = before.rule60
    after.checks[0] = before.checks[0]
    after.checks[1] = before.checks[1]
    after.since_pass = 0


@leaf
def plies_since_capture(counters):
    uncounted = max(0, counters.checks[0] - FREE_CHECKS) + max(0, counters.checks[1] - FREE_CHECKS)
    return counters.rule60 + uncounted


@leaf
def repetition_range(counters):
    """Plies back to which a position may be repeated."""
    return min(plies_since_capture(counters), counters.since_pass)


@kernel
def begin_line_kernel(position, line):
    """Make the present position the first of a line."""
    line.keys[0] = position.key
    line.moves[0] = NO_MOVE
    line.in_check[0] = king_attacked(position, int64(position.side))


@kernel
def extend_line_kernel(position, line, last, before, after, move):
    """Play a legal move from the position at line index `last`; `before` and `after` are its COUNTERS."""
    mover = int64(position.side)
    captured = make_move(position, int64(move))
    gives_check = king_attacked(position, 1 - mover)
    count_move(before, after, mover, captured != EMPTY, gives_check, line.in_check[last] != 0)
    line.keys[last + 1] = position.key
    line.moves[last + 1] = move
    line.in_check[last + 1] = gives_check
