"""Quiescence: captures, and all evasions in check, until a position is quiet enough for its static value."""

from numba import int64

from games.jit import leaf
from games.xiangqi.attacks import gives_check, is_legal
from games.xiangqi.geometry import EMPTY, NO_MOVE
from games.xiangqi.judge import is_final
from games.xiangqi.movegen import has_legal_move
from games.xiangqi.position import target_of
from nnue_jax.value import damp
from search.layout import INFINITE, MATE_IN_MAX_PLY, MAX_PLY, NO_VALUE
from search.nodes import (
    Q_CHILD_RETURNED,
    Q_EVALUATE,
    Q_EVALUATED,
    Q_NEXT_MOVE,
    descend,
    expect,
    extend_pv,
    final_value,
    leave,
    mated_in,
    narrow_by,
    play,
    store_node,
    take_back,
    take_evaluation,
    top_frame,
)
from search.picker import begin_quiescence, next_quiescence_move
from search.see import PIECE_VALUE, see_at_least
from search.transposition import (
    LOWER,
    UPPER,
    bound_of,
    from_table,
    is_pv_of,
    move_of,
    probe,
    raw_eval_of,
    value_of,
)

FUTILITY_MARGIN = 220
SEE_MARGIN = -106
MAX_TRIED = 2  # moves after which only captures that give check, and captures in check, are searched


@leaf
def q_entered(searcher):
    """The judge has had his say: look into the table, and decide whether to go on."""
    frame = top_frame(searcher)
    ply = searcher.ply
    verdict = searcher.verdict
    if is_final(verdict):
        return leave(searcher, frame, final_value(searcher, verdict, int64(0)))
    narrow_by(frame, verdict, 0)
    if frame.alpha >= frame.beta:
        return leave(searcher, frame, frame.alpha)
    frame.best_move = NO_MOVE
    frame.move_count = 0
    data = probe(searcher.tt_entries, searcher.tt_buckets, frame.table_key)
    frame.tt_hit = int64(data != 0)
    frame.tt_move = NO_MOVE
    frame.tt_pv = 0
    frame.tt_bound = 0
    frame.raw_eval = NO_VALUE
    if data != 0:
        frame.tt_move = move_of(data)
        frame.tt_pv = is_pv_of(data)
        frame.tt_value = from_table(value_of(data), ply, frame.counters.rule60)
        frame.tt_bound = bound_of(data)
        frame.raw_eval = raw_eval_of(data)
        if not frame.is_pv and frame.tt_bound & (LOWER if frame.tt_value >= frame.beta else UPPER):
            return leave(searcher, frame, frame.tt_value)
    if ply >= MAX_PLY - 1:
        # Too deep to go on, in check or not; the accumulators have room for one more evaluation.
        return Q_EVALUATE if frame.raw_eval == NO_VALUE else Q_EVALUATED
    if frame.in_check:
        frame.static_eval = frame.eval_2
        frame.best_value = -INFINITE
        begin_quiescence(searcher, frame)
        return Q_NEXT_MOVE
    return Q_EVALUATE if frame.raw_eval == NO_VALUE else Q_EVALUATED


@leaf
def q_evaluated(searcher):
    """Stand pat."""
    frame = top_frame(searcher)
    if frame.raw_eval == NO_VALUE:
        take_evaluation(searcher, frame)
    value = damp(frame.raw_eval, frame.counters.rule60)
    frame.static_eval = value
    if searcher.ply >= MAX_PLY - 1:
        return leave(searcher, frame, value)
    if frame.tt_bound & (LOWER if frame.tt_value > value else UPPER):
        value = frame.tt_value
    frame.best_value = value
    if value >= frame.beta:
        if not frame.tt_hit:
            store_node(searcher, frame, int64(LOWER), int64(0))
        return leave(searcher, frame, value)
    frame.alpha = max(frame.alpha, value)
    begin_quiescence(searcher, frame)
    return Q_NEXT_MOVE


@leaf
def _is_pruned(searcher, frame, move):
    """Whether a legal move is not worth searching; only when some other move has saved the side from mate."""
    position = searcher.position
    victim = int64(position.board[target_of(move)])
    if frame.in_check:
        return victim == EMPTY and frame.move_count > MAX_TRIED
    if not gives_check(position, move):
        if frame.move_count > MAX_TRIED:
            return True
        optimistic = frame.static_eval + FUTILITY_MARGIN + PIECE_VALUE[victim]
        if optimistic <= frame.alpha:
            frame.best_value = max(frame.best_value, optimistic)
            return True
    return not see_at_least(position, move, int64(SEE_MARGIN))


@leaf
def q_next_move(searcher, histories):
    frame = top_frame(searcher)
    in_check = frame.in_check != 0
    while True:
        move = next_quiescence_move(searcher, histories, frame)
        if move == NO_MOVE:
            return _finish(searcher, frame)
        expect(searcher, frame, move)
        if not is_legal(searcher.position, move, in_check):
            continue
        frame.move_count += 1
        if frame.best_value > -MATE_IN_MAX_PLY and _is_pruned(searcher, frame, move):
            continue
        play(searcher, frame, move)
        frame.return_phase = Q_CHILD_RETURNED
        return descend(searcher, frame, -frame.beta, -frame.alpha, int64(0), int64(0))


@leaf
def q_child_returned(searcher):
    frame = top_frame(searcher)
    value = -searcher.value
    take_back(searcher, frame)
    if value > frame.best_value:
        frame.best_value = value
        if value > frame.alpha:
            frame.best_move = frame.move
            if frame.is_pv:
                extend_pv(searcher, frame.move)
            if value >= frame.beta:
                store_node(searcher, frame, int64(LOWER), int64(0))
                return leave(searcher, frame, value)
            frame.alpha = value
    return Q_NEXT_MOVE


@leaf
def _finish(searcher, frame):
    if frame.move_count == 0:
        # No evasion is mate. No capture may still be stalemate, which loses as well.
        if frame.in_check or not has_legal_move(searcher.position, frame.in_check != 0, searcher.moves, frame.begin):
            return leave(searcher, frame, mated_in(searcher.ply))
    store_node(searcher, frame, int64(UPPER), int64(0))
    return leave(searcher, frame, frame.best_value)
