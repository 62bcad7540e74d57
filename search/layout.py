"""The records of the search: a frame, a root move, a searcher, and the tables of a thread.

A searcher walks one tree. Its stack holds a FRAME for every node on the way from the root, and one more for a
search of the same node without its best move (singular extension), so the height of the stack, `top`, can be
more than the distance from the root, `ply`. Every number is an int64 unless the layout says otherwise;
truth values are 0 and 1.

FRAME
    alpha, beta        window; alpha rises as moves are searched
    first_alpha        alpha as it was on entry
    depth              remaining depth in plies
    is_pv, cut_node    kind of node: full window; expected to fail high
    in_check           whether the side to move is in check
    counters           COUNTERS of the position
    table_key          key in the transposition table: see `transposition.table_key`
    tt_hit, tt_move, tt_value, tt_depth, tt_bound    what the transposition table knew
    tt_pv              whether the node is or was part of a principal variation
    raw_eval           blended network output, NO_VALUE if not known
    static_eval        raw_eval damped by the 60-move counter and corrected; NO_VALUE in check
    evaluation         static_eval, or a better bound from the transposition table
    eval_1, eval_2     static_eval one and two plies before
    improving          whether static_eval is above eval_2
    excluded           move left out (singular extension), or NO_MOVE
    after_pass         whether the move before was a pass
    stage, begin, next, end, bad_end    state of the move picker: indices into the move buffer
    skip_quiets        whether the remaining quiet moves are pruned
    best_value, best_move
    move, captured, piece    the move being searched, the identity captured, the identity moved
    move_count         legal moves seen
    extension, reduction, mode    how the present move is searched: see `nodes.FULL`
    nodes_before       nodes searched before the present move (root only)
    continuation_1, _2, _4   slices of the continuation history for the moves one, two and four plies before
    continuation_3     kept to hand it down
    return_phase       phase in which this node goes on when its child returns
    quiet_count, capture_count    how many of the moves below are noted
    quiets, captures   [.] u2, moves searched without raising alpha to beta

ROOT_MOVE
    move, score, previous_score, average_score, nodes, selective_depth, pv_length, pv [MAX_PLY] u2
    bound              what the score is: EXACT, LOWER or UPPER of `transposition`
"""

import numpy as np

from games.memory import CACHE_LINE_BYTES
from games.xiangqi.geometry import SQUARES
from games.xiangqi.line import COUNTERS, HISTORY_LENGTH, LINE, LINE_LENGTH
from games.xiangqi.movegen import MAX_MOVES
from games.xiangqi.position import POSITION
from nnue_jax.accumulator import EVALUATOR
from nnue_jax.value import MATE_VALUE, MAX_PLY

MATE = MATE_VALUE
MATE_IN_MAX_PLY = MATE - MAX_PLY
INFINITE = MATE + 1
NO_VALUE = MATE + 2

NEVER = 1 << 62  # as a number of nodes

MAX_DEPTH = MAX_PLY - 1
STACK_HEIGHT = 2 * MAX_PLY + 4
SCRATCH_LISTS = 3  # move lists that the judge may need above the highest frame
NOTED_QUIETS = 32
NOTED_CAPTURES = 16

PIECE_CODES = 14  # side * 7 + kind
CONTINUATIONS = PIECE_CODES * SQUARES
NO_CONTINUATION = CONTINUATIONS  # a slice that stays zero

FRAME_FIELDS = (
    *("alpha", "beta", "first_alpha", "depth", "is_pv", "cut_node", "in_check", "table_key"),
    *("tt_hit", "tt_move", "tt_value", "tt_depth", "tt_bound", "tt_pv"),
    *("raw_eval", "static_eval", "evaluation", "eval_1", "eval_2", "improving", "excluded", "after_pass"),
    *("stage", "begin", "next", "end", "bad_end", "skip_quiets"),
    *("best_value", "best_move", "move", "captured", "piece", "move_count"),
    *("extension", "reduction", "mode", "nodes_before"),
    *("continuation_1", "continuation_2", "continuation_3", "continuation_4"),
    *("return_phase", "quiet_count", "capture_count"),
)

FRAME = np.dtype(
    [(name, "i8") for name in FRAME_FIELDS]
    + [("counters", COUNTERS)]
    + [("quiets", "u2", (NOTED_QUIETS,)), ("captures", "u2", (NOTED_CAPTURES,))],
    align=True,
)

ROOT_MOVE = np.dtype(
    [
        ("move", "i8"),
        ("score", "i8"),
        ("bound", "i8"),
        ("previous_score", "i8"),
        ("average_score", "i8"),
        ("nodes", "i8"),
        ("selective_depth", "i8"),
        ("pv_length", "i8"),
        ("pv", "u2", (MAX_PLY,)),
    ],
    align=True,
)

_SEARCHER_FIELDS = [
    ("position", POSITION),
    # where the machine stands
    ("phase", "i8"),
    ("top", "u4"),
    ("ply", "u4"),
    ("value", "i8"),  # returned by the node that was left last
    ("verdict", "i8"),  # of the judge on the node being entered, 0 for none
    # evaluation
    ("evaluates_inline", "i8"),  # 0: stop and wait wherever a value is needed
    ("evaluator", EVALUATOR),
    # limits and counters
    ("thread", "i8"),
    # what keeps searchers of one root on different work, see `spread`; zero for one that searches as if alone
    ("variant", "i8"),
    ("order_noise", "i8"),  # quiet moves are ordered as if their scores were wrong by up to so much
    ("root_rotation", "i8"),  # root moves by which the moves after the first are rotated
    ("depth_skip", "i8"),  # iterations: of two times as many, the later half is left out
    ("nodes", "i8"),
    ("next_check", "i8"),  # node count at which to look at the shared flags
    ("max_depth", "i8"),
    ("selective_depth", "i8"),
    ("verbose_from", "i8"),  # node count from which what happens at the root is told move by move
    ("shared", "i8"),  # address of i64 [.]: words that all threads share, see below
    # transposition table
    ("tt_entries", "i8"),  # address
    ("tt_buckets", "i8"),
    ("tt_generation", "i8"),
    # the root
    ("depth", "i8"),  # of the iteration that is running
    ("completed_depth", "i8"),  # of the last iteration that was not cut short
    ("root_count", "i8"),
    ("multi_pv", "i8"),
    ("pv_index", "i8"),  # number of the line that is being searched
    ("root_next", "i8"),  # place in root_order of the next move
    ("window", "i8"),  # half the width of the aspiration window
    ("fail_highs", "i8"),
    ("best_move_changes", "i8"),
    ("root_counters", COUNTERS),
    ("root_order", "i8", (MAX_MOVES,)),  # indices into root_moves, best first
    ("root_moves", ROOT_MOVE, (MAX_MOVES,)),
    # the line from the start of the game to the present node
    ("root_index", "i8"),  # of the root's position in the line
    ("line", LINE),
    # buffers
    ("moves", "i8"),  # address of i32 [(STACK_HEIGHT + SCRATCH_LISTS) * MAX_MOVES]
    ("ranks", "i8"),  # address of i32, beside the moves: see `picker`
    ("pv_length", "i8", (MAX_PLY + 2,)),
    ("pv", "u2", (MAX_PLY + 2, MAX_PLY + 2)),
    ("frames", FRAME, (STACK_HEIGHT,)),
]

# An odd number of cache lines: the same field of neighbours must not fall into the same sets of a cache.
_size = np.dtype(_SEARCHER_FIELDS, align=True).itemsize
_padding = (_size // CACHE_LINE_BYTES + 1 | 1) * CACHE_LINE_BYTES - _size
SEARCHER = np.dtype([*_SEARCHER_FIELDS, ("padding", "u1", (_padding,))], align=True)

assert HISTORY_LENGTH + MAX_PLY + 2 <= LINE_LENGTH

# Words at SEARCHER.shared: the limit is of the nodes of all threads together, whose counts follow one another.
STOP_FLAG, THREAD_COUNT, NODE_LIMIT, FIRST_NODE_COUNT = 0, 1, 2, 3

# Statistics of past cutoffs; each entry stays within the limit named in `history`.
HISTORIES = np.dtype(
    [
        ("butterfly", "i2", (2 * SQUARES * SQUARES,)),  # side, origin, target
        ("captures", "i2", (PIECE_CODES * SQUARES * 8,)),  # piece code, target, kind captured
        ("continuation", "i2", ((CONTINUATIONS + 1) * CONTINUATIONS,)),  # earlier piece and target, piece and target
    ],
    align=True,
)
