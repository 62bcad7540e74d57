"""The main search: a node of remaining depth one or more, below the root.

Principal variation search with a transposition table. Numbers are in internal units (a pawn is worth about 144)
and reductions in 1024ths of a ply, unless said otherwise.
"""

from numba import int64

from games.jit import leaf
from games.xiangqi.attacks import is_legal
from games.xiangqi.geometry import NO_MOVE
from games.xiangqi.judge import is_final
from games.xiangqi.position import pass_move
from nnue_jax.value import damp
from search.history import note_searched, reward_best
from search.layout import INFINITE, MATE_IN_MAX_PLY, MAX_PLY, NO_VALUE
from search.nodes import (
    CHILD_RETURNED,
    EVALUATE,
    EVALUATED,
    FULL,
    NEXT_MOVE,
    NULL_WINDOW,
    PASS_RETURNED,
    Q_ENTER,
    REDUCED,
    ROOT_CHILD_RETURNED,
    SEARCH_MOVE,
    START_MOVES,
    descend,
    draw_value,
    expect,
    extend_pv,
    final_value,
    has_attackers,
    leave,
    mated_in,
    narrow_by,
    play,
    play_pass,
    store_node,
    take_back,
    take_evaluation,
    top_frame,
)
from search.picker import begin_main, next_move
from search.reductions import PLY, base_reduction, is_pruned, late_reduction
from search.singular import may_be_singular, search_others
from search.transposition import (
    EXACT,
    LOWER,
    UPPER,
    bound_of,
    depth_of,
    from_table,
    is_pv_of,
    move_of,
    probe,
    raw_eval_of,
    value_of,
)

# Near the end of the 60-move rule the table's values say little.
MAX_CUTOFF_RULE60 = 116


@leaf
def entered(searcher):
    """The judge has had his say: look into the table, and decide whether to go on."""
    frame = top_frame(searcher)
    ply = searcher.ply
    verdict = searcher.verdict
    if is_final(verdict):
        return leave(searcher, frame, final_value(searcher, verdict, draw_value(searcher)))
    narrow_by(frame, verdict, 1)
    if ply >= MAX_PLY - 1:
        return Q_ENTER
    # Mate distance: no line from here can beat a shorter mate found elsewhere.
    frame.alpha = max(frame.alpha, mated_in(ply))
    frame.beta = min(frame.beta, -mated_in(ply + 1))
    if frame.alpha >= frame.beta:
        return leave(searcher, frame, frame.alpha)
    frame.first_alpha = frame.alpha
    if _look_up(searcher, frame):
        return leave(searcher, frame, frame.tt_value)
    if frame.in_check:
        frame.static_eval = frame.eval_2
        frame.evaluation = frame.eval_2
        frame.improving = 0
        return START_MOVES
    return EVALUATE if frame.raw_eval == NO_VALUE else EVALUATED


@leaf
def _look_up(searcher, frame):
    """Read the transposition table; whether its value ends the node."""
    data = probe(searcher.tt_entries, searcher.tt_buckets, frame.table_key)
    frame.tt_hit = int64(data != 0)
    if data == 0:
        frame.tt_move = NO_MOVE
        frame.tt_value = NO_VALUE
        frame.tt_depth = -1
        frame.tt_bound = 0
        frame.tt_pv = frame.is_pv
        frame.raw_eval = NO_VALUE
        return False
    frame.tt_move = move_of(data)
    frame.tt_value = from_table(value_of(data), searcher.ply, frame.counters.rule60)
    frame.tt_depth = depth_of(data)
    frame.tt_bound = bound_of(data)
    frame.tt_pv = frame.is_pv | is_pv_of(data)
    frame.raw_eval = raw_eval_of(data)
    return (
        not frame.is_pv
        and frame.tt_depth > frame.depth - int64(frame.tt_value <= frame.beta)
        and frame.counters.rule60 < MAX_CUTOFF_RULE60
        and (frame.tt_bound & (LOWER if frame.tt_value >= frame.beta else UPPER)) != 0
    )


@leaf
def evaluated(searcher):
    """The static value is known: try to do without searching moves."""
    frame = top_frame(searcher)
    position = searcher.position
    if frame.raw_eval == NO_VALUE:
        take_evaluation(searcher, frame)
    frame.static_eval = damp(frame.raw_eval, frame.counters.rule60)
    frame.evaluation = frame.static_eval
    if frame.tt_bound & (LOWER if frame.tt_value > frame.evaluation else UPPER):
        frame.evaluation = frame.tt_value
    frame.improving = int64(frame.static_eval > frame.eval_2)
    if frame.is_pv:
        return START_MOVES
    depth = frame.depth
    beta = frame.beta
    # Razoring: so far below alpha that only captures can help.
    if frame.evaluation < frame.alpha - 1370 - 244 * depth * depth:
        return Q_ENTER
    # Reverse futility: so far above beta that no reply at this depth brings it down.
    if depth < 9 and frame.evaluation >= beta and abs(beta) < MATE_IN_MAX_PLY:
        margin = (90 - 20 * frame.improving) * depth
        if frame.evaluation - margin >= beta and frame.evaluation < MATE_IN_MAX_PLY:
            return leave(searcher, frame, (2 * beta + frame.evaluation) // 3)
    # Null move: if even a pass fails high, so will some move.
    if (
        frame.after_pass == 0
        and depth >= 3
        and frame.evaluation >= beta
        and frame.static_eval >= beta - 12 * depth + 120
        and beta > -MATE_IN_MAX_PLY
        and has_attackers(position)
    ):
        reduction = 4 + depth // 3 + min((frame.evaluation - beta) // 300, 3)
        play_pass(searcher, frame)
        frame.return_phase = PASS_RETURNED
        return descend(searcher, frame, -beta, -beta + 1, depth - reduction, 1 - frame.cut_node)
    return START_MOVES


@leaf
def pass_returned(searcher):
    frame = top_frame(searcher)
    value = -searcher.value
    pass_move(searcher.position)
    if value >= frame.beta:
        # A mate found behind a pass is not proven.
        return leave(searcher, frame, value if value < MATE_IN_MAX_PLY else frame.beta)
    return START_MOVES


@leaf
def start_moves(searcher):
    frame = top_frame(searcher)
    # Without a move to try first, a shallower search finds one more cheaply.
    if frame.depth >= 5 and frame.tt_move == NO_MOVE and (frame.is_pv or frame.cut_node):
        frame.depth -= 1
    frame.best_value = -INFINITE
    frame.best_move = NO_MOVE
    frame.move_count = 0
    frame.quiet_count = 0
    frame.capture_count = 0
    begin_main(searcher, frame)
    return NEXT_MOVE


@leaf
def choose_move(searcher, histories):
    """Phase NEXT_MOVE: pick the next move that is legal and worth searching."""
    frame = top_frame(searcher)
    in_check = frame.in_check != 0
    while True:
        move = next_move(searcher, histories, frame)
        if move == NO_MOVE:
            return _finish(searcher, histories, frame)
        expect(searcher, frame, move)
        if move == frame.excluded or not is_legal(searcher.position, move, in_check):
            continue
        frame.move_count += 1
        frame.extension = 0
        frame.reduction = base_reduction(frame)
        if frame.best_value > -MATE_IN_MAX_PLY and is_pruned(searcher, histories, frame, move):
            continue
        if may_be_singular(searcher, frame, move):
            return search_others(searcher, frame, move)
        frame.move = move
        return SEARCH_MOVE


@leaf
def _descend_full(searcher, frame, depth):
    """Search frame.move with the full window.

    If that is only one wide, the child keeps no line, and what an earlier one left must not be taken for it.
    """
    frame.mode = FULL
    searcher.pv_length[searcher.ply + 1] = 0
    return descend(searcher, frame, -frame.beta, -frame.alpha, depth, int64(0))


@leaf
def search_move(searcher, histories):
    """Play frame.move and search it, with a depth and window that fit its place in the order."""
    frame = top_frame(searcher)
    move = frame.move
    depth = frame.depth - 1 + frame.extension
    alpha = frame.alpha
    frame.return_phase = CHILD_RETURNED if searcher.top > 0 else ROOT_CHILD_RETURNED
    if frame.depth >= 2 and frame.move_count > 1 + frame.is_pv:
        reduction = late_reduction(searcher, histories, frame, move)
        reduced = max(1, min(depth - reduction // PLY, depth + 1))
        frame.reduction = depth - reduced
        play(searcher, frame, move)
        if reduced < depth:
            frame.mode = REDUCED
            return descend(searcher, frame, -alpha - 1, -alpha, reduced, int64(1))
    else:
        play(searcher, frame, move)
    if frame.is_pv and frame.move_count == 1:
        return _descend_full(searcher, frame, depth)
    frame.mode = NULL_WINDOW
    return descend(searcher, frame, -alpha - 1, -alpha, depth, 1 - frame.cut_node)


@leaf
def search_again(searcher, frame, value):
    """Phase of another search of frame.move if `value` is more than its reduced depth or narrow window allowed for.

    NEXT_MOVE means that the value stands.
    """
    alpha = frame.alpha
    depth = frame.depth - 1 + frame.extension
    if frame.mode == REDUCED and value > alpha:
        # Deeper or shallower by how well it did.
        new_depth = depth + int64(value > frame.best_value + 60) - int64(value < frame.best_value + 9)
        if new_depth > depth - frame.reduction:
            frame.mode = NULL_WINDOW
            return descend(searcher, frame, -alpha - 1, -alpha, new_depth, 1 - frame.cut_node)
    if frame.mode != FULL and frame.is_pv and value > alpha:
        return _descend_full(searcher, frame, depth)
    return NEXT_MOVE


@leaf
def child_returned(searcher, histories):
    frame = top_frame(searcher)
    value = -searcher.value
    phase = search_again(searcher, frame, value)
    if phase != NEXT_MOVE:
        return phase
    take_back(searcher, frame)
    if value > frame.best_value:
        frame.best_value = value
        if value > frame.alpha:
            frame.best_move = frame.move
            if frame.is_pv:
                extend_pv(searcher, frame.move)
            if value >= frame.beta:
                return _finish(searcher, histories, frame)
            frame.alpha = value
            if 3 < frame.depth < 11:
                frame.depth -= 2
    if frame.move != frame.best_move:
        note_searched(frame, searcher.position, frame.move)
    return NEXT_MOVE


@leaf
def _finish(searcher, histories, frame):
    """All moves are done, or one failed high."""
    if frame.move_count == 0:
        value = frame.alpha if frame.excluded != NO_MOVE else mated_in(searcher.ply)
        return leave(searcher, frame, value)
    if frame.best_move != NO_MOVE:
        reward_best(histories, frame, searcher.position, frame.depth)
    if frame.excluded == NO_MOVE:
        if frame.best_value >= frame.beta:
            bound = LOWER
        elif frame.is_pv and frame.best_move != NO_MOVE:
            bound = EXACT
        else:
            bound = UPPER
        store_node(searcher, frame, bound, frame.depth)
    return leave(searcher, frame, frame.best_value)
