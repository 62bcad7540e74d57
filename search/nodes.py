"""What all nodes share: phases, entering and leaving a node, playing a move, limits, verdicts of the judge.

The search is a state machine. The driver (`machine`) looks at the phase and calls the function for it; the
function works on the top frame and returns the next phase. A node is entered by `descend`, and `leave` pops its
frame, puts its value into searcher.value and returns the phase in which the node below goes on.
"""

from numba import int64

from games.jit import leaf
from games.memory import load_i64, load_i64_acquire, store_i64
from games.xiangqi.attacks import gave_check
from games.xiangqi.geometry import EMPTY, NO_MOVE
from games.xiangqi.judge import LOSS, WIN, nearest_occurrence, needs_judge, result_of
from games.xiangqi.line import count_move, count_pass
from games.xiangqi.position import (
    key_after,
    make_move,
    minor_count,
    origin_of,
    pass_move,
    rook_count,
    target_of,
    unmake_move,
)
from nnue_jax.accumulator import push, push_pass
from nnue_jax.value import MAX_STATIC_VALUE, attacking_material, blend
from search.history import continuation_index
from search.layout import FIRST_NODE_COUNT, MATE, NO_CONTINUATION, NODE_LIMIT, STOP_FLAG, THREAD_COUNT
from search.transposition import prefetch_bucket, store, table_key, to_table

(
    ENTER,
    JUDGE,
    ENTERED,
    EVALUATE,
    EVALUATED,
    PASS_RETURNED,
    START_MOVES,
    NEXT_MOVE,
    SINGULAR_RETURNED,
    SEARCH_MOVE,
    CHILD_RETURNED,
    Q_ENTER,
    Q_JUDGE,
    Q_ENTERED,
    Q_EVALUATE,
    Q_EVALUATED,
    Q_NEXT_MOVE,
    Q_CHILD_RETURNED,
    ROOT_ITERATION,
    ROOT_LINE,
    ROOT_WINDOW,
    ROOT_NEXT_MOVE,
    ROOT_CHILD_RETURNED,
    ROOT_FINISHED,
    ROOT_MOVE_CHOSEN,
    ROOT_OUTSIDE,
    ROOT_LINE_DONE,
    ITERATION_DONE,
    STOPPED,
    FINISHED,
) = range(30)

# How a move is searched: with a reduced depth and a null window, with a null window, or with the full window.
REDUCED, NULL_WINDOW, FULL = range(3)

CHECK_PERIOD = 512  # nodes between two looks at the shared flags


@leaf
def top_frame(searcher):
    return searcher.frames[searcher.top]


@leaf
def publish_nodes(searcher):
    """Tell the others on the same root how many nodes have been searched."""
    store_i64(searcher.shared, FIRST_NODE_COUNT + searcher.thread, searcher.nodes)


@leaf
def must_stop(searcher):
    """Every few hundred nodes, whether a limit is reached or somebody asked to stop."""
    if searcher.nodes < searcher.next_check:
        return False
    publish_nodes(searcher)
    shared = searcher.shared
    if load_i64_acquire(shared, STOP_FLAG) != 0:
        return True
    threads = load_i64(shared, THREAD_COUNT)
    total = int64(0)
    for thread in range(threads):
        total += load_i64(shared, FIRST_NODE_COUNT + thread)
    limit = load_i64(shared, NODE_LIMIT)
    if total >= limit:
        store_i64(shared, STOP_FLAG, 1)
        return True
    left = (limit - total + threads - 1) // threads
    searcher.next_check = searcher.nodes + min(CHECK_PERIOD, left)
    return False


@leaf
def expect(searcher, frame, move):
    """Ask for the table's line of the position after a pseudo-legal move, long before it is needed."""
    position = searcher.position
    is_quiet = int64(position.board[target_of(move)] == EMPTY)
    key = table_key(key_after(position, move), is_quiet * (frame.counters.rule60 + 1), False)
    prefetch_bucket(searcher.tt_entries, searcher.tt_buckets, key)


@leaf
def play(searcher, frame, move):
    """Make a legal move at the top frame's node."""
    position = searcher.position
    frame.move = move
    frame.piece = int64(position.board[origin_of(move)])
    frame.captured = make_move(position, move)
    searcher.nodes += 1
    line = searcher.line
    last = searcher.root_index + searcher.ply + 1
    line.keys[last] = position.key
    line.moves[last] = move
    if searcher.evaluates_inline:
        push(searcher.evaluator, position, searcher.ply, move, frame.captured)


@leaf
def play_pass(searcher, frame):
    frame.move = NO_MOVE
    frame.captured = EMPTY
    position = searcher.position
    pass_move(position)
    searcher.nodes += 1
    line = searcher.line
    last = searcher.root_index + searcher.ply + 1
    line.keys[last] = position.key
    line.moves[last] = NO_MOVE
    key = table_key(position.key, frame.counters.rule60, False)
    prefetch_bucket(searcher.tt_entries, searcher.tt_buckets, key)
    if searcher.evaluates_inline:
        push_pass(searcher.evaluator, searcher.ply)


@leaf
def take_back(searcher, frame):
    """Undo `play`; the child has been left."""
    unmake_move(searcher.position, frame.move, frame.captured)


@leaf
def descend(searcher, parent, alpha, beta, depth, cut_node):
    """Enter the node after the move just played, or after a pass; returns the phase to begin with."""
    searcher.top += 1
    searcher.ply += 1
    child = searcher.frames[searcher.top]
    child.alpha = alpha
    child.beta = beta
    child.first_alpha = alpha
    child.depth = depth
    child.is_pv = int64(beta - alpha > 1)
    child.cut_node = cut_node
    child.excluded = NO_MOVE
    child.eval_1 = parent.static_eval
    child.eval_2 = parent.eval_1
    child.begin = parent.end
    child.end = parent.end
    child.continuation_4 = parent.continuation_3
    child.continuation_3 = parent.continuation_2
    child.continuation_2 = parent.continuation_1
    if parent.move == NO_MOVE:
        child.after_pass = 1
        child.in_check = 0
        child.continuation_1 = NO_CONTINUATION
        count_pass(parent.counters, child.counters)
    else:
        child.after_pass = 0
        child.in_check = int64(gave_check(searcher.position, parent.piece, parent.move))
        child.continuation_1 = continuation_index(parent.piece, parent.move)
        mover = 1 - searcher.position.side
        is_capture = parent.captured != EMPTY
        count_move(parent.counters, child.counters, mover, is_capture, child.in_check != 0, parent.in_check != 0)
    searcher.line.in_check[searcher.root_index + searcher.ply] = child.in_check
    return ENTER if depth > 0 else Q_ENTER


@leaf
def leave(searcher, frame, value):
    """Leave the top frame's node with a value from its side to move's view."""
    searcher.value = value
    searcher.top -= 1
    if frame.excluded == NO_MOVE:
        searcher.ply -= 1
    return searcher.frames[searcher.top].return_phase


@leaf
def take_evaluation(searcher, frame):
    """Blend the evaluator's answer for the present position into frame.raw_eval."""
    evaluator = searcher.evaluator
    value = blend(evaluator.psqt, evaluator.positional, attacking_material(searcher.position))
    frame.raw_eval = max(-MAX_STATIC_VALUE, min(MAX_STATIC_VALUE, value))


@leaf
def store_node(searcher, frame, bound, depth):
    """Write what is known of the top frame's node to the transposition table."""
    value = to_table(frame.best_value, searcher.ply)
    store(
        searcher.tt_entries,
        searcher.tt_buckets,
        searcher.tt_generation,
        frame.table_key,
        frame.best_move,
        bound,
        depth,
        value,
        frame.raw_eval,
        frame.tt_pv,
    )


@leaf
def mated_in(ply):
    return -MATE + ply


@leaf
def draw_value(searcher):
    """Zero with a little noise, lest all ways to a draw look the same to the search."""
    return 1 - (searcher.nodes & 2)


@leaf
def look_back(searcher, frame):
    """Set the table's key of the top frame's node; whether the judge may have a verdict on it."""
    position = searcher.position
    occurred = nearest_occurrence(searcher.line, searcher.root_index + searcher.ply, frame.counters) != 0
    frame.table_key = table_key(position.key, frame.counters.rule60, occurred)
    return occurred or needs_judge(position, frame.counters)


@leaf
def enter(searcher, judge_phase, entered_phase):
    """Open the top frame's node, of either kind; its phase if the judge is to be asked, and if not."""
    frame = top_frame(searcher)
    if must_stop(searcher):
        return STOPPED
    if frame.is_pv:
        ply = searcher.ply
        searcher.pv_length[ply] = 0
        searcher.selective_depth = max(searcher.selective_depth, ply + 1)
    searcher.verdict = 0
    return judge_phase if look_back(searcher, frame) else entered_phase


@leaf
def final_value(searcher, verdict, drawn):
    """Value of a node that a final verdict ends; `drawn` is that of a draw."""
    result = result_of(verdict)
    if result == WIN:
        return MATE - searcher.ply
    if result == LOSS:
        return mated_in(searcher.ply)
    return drawn


@leaf
def narrow_by(frame, verdict, bound):
    """After a provisional verdict: a win is worth -bound at least, a loss `bound` at most."""
    if result_of(verdict) == WIN:
        frame.alpha = max(frame.alpha, -bound)
    elif result_of(verdict) == LOSS:
        frame.beta = min(frame.beta, bound)


@leaf
def has_attackers(position):
    """Whether the side to move has a rook, knight or cannon; without one, a pass is too good to be true."""
    return rook_count(position, position.side) + minor_count(position, position.side) > 0


@leaf
def extend_pv(searcher, move):
    """The line of the present ply becomes `move` and the line of the next ply."""
    ply = searcher.ply
    length = searcher.pv_length[ply + 1]
    searcher.pv[ply, 0] = move
    for i in range(length):
        searcher.pv[ply, i + 1] = searcher.pv[ply + 1, i]
    searcher.pv_length[ply] = length + 1
