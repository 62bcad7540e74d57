"""Singular extension: is the table's move so much better than all others that it deserves more depth?

The node is searched without that move, at half the depth, on a frame of its own above the node's.
"""

from numba import int64

from games.jit import leaf
from games.xiangqi.geometry import NO_MOVE
from search.layout import MATE_IN_MAX_PLY
from search.nodes import SEARCH_MOVE, SINGULAR_RETURNED, START_MOVES, leave, top_frame
from search.transposition import LOWER


@leaf
def may_be_singular(searcher, frame, move):
    """Whether to ask if the table's move is much better than all others."""
    return (
        move == frame.tt_move
        and frame.depth >= 6 + frame.tt_pv
        and frame.excluded == NO_MOVE
        and frame.tt_bound & LOWER
        and frame.tt_depth >= frame.depth - 3
        and abs(frame.tt_value) < MATE_IN_MAX_PLY
        and searcher.ply < 2 * searcher.depth
    )


@leaf
def _singular_beta(frame):
    return frame.tt_value - (44 + 72 * int64(frame.tt_pv and not frame.is_pv)) * frame.depth // 69


@leaf
def search_others(searcher, frame, move):
    """Search this node without `move`, at half the depth, on a frame of its own."""
    beta = _singular_beta(frame)
    frame.move = move
    frame.return_phase = SINGULAR_RETURNED
    searcher.top += 1
    other = searcher.frames[searcher.top]
    other.alpha = beta - 1
    other.beta = beta
    other.first_alpha = beta - 1
    other.depth = (frame.depth - 1) // 2
    other.is_pv = 0
    other.cut_node = frame.cut_node
    other.excluded = move
    other.in_check = frame.in_check
    other.counters.rule60 = frame.counters.rule60
    other.counters.checks[0] = frame.counters.checks[0]
    other.counters.checks[1] = frame.counters.checks[1]
    other.counters.since_pass = frame.counters.since_pass
    other.table_key = frame.table_key
    other.tt_hit = frame.tt_hit
    other.tt_move = move
    other.tt_value = frame.tt_value
    other.tt_depth = frame.tt_depth
    other.tt_bound = frame.tt_bound
    other.tt_pv = frame.tt_pv
    other.raw_eval = frame.raw_eval
    other.static_eval = frame.static_eval
    other.evaluation = frame.evaluation
    other.improving = frame.improving
    other.eval_1 = frame.eval_1
    other.eval_2 = frame.eval_2
    other.after_pass = frame.after_pass
    other.continuation_1 = frame.continuation_1
    other.continuation_2 = frame.continuation_2
    other.continuation_3 = frame.continuation_3
    other.continuation_4 = frame.continuation_4
    other.begin = frame.end
    other.end = frame.end
    return START_MOVES


@leaf
def singular_returned(searcher):
    """Extend the table's move if all others failed low, and cut if two moves fail high."""
    frame = top_frame(searcher)
    value = searcher.value
    beta = _singular_beta(frame)
    if value < beta:
        frame.extension = 1
        if not frame.is_pv and value < beta - 40:
            frame.extension = 2
    elif value >= frame.beta and abs(value) < MATE_IN_MAX_PLY:
        return leave(searcher, frame, value)
    elif frame.tt_value >= frame.beta:
        frame.extension = -3
    elif frame.cut_node:
        frame.extension = -2
    return SEARCH_MOVE
