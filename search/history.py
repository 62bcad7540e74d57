"""Statistics of past cutoffs, by which moves are ordered and reductions chosen.

Every entry moves toward a bonus or malus b by h += b - h * |b| / limit, so it stays within the limit.
"""

import numpy as np
from numba import int64, uint64

from games.jit import leaf
from games.xiangqi.geometry import EMPTY, KIND_OF, KINDS, PIECES, PIECES_PER_SIDE, SQUARES
from games.xiangqi.position import origin_of, target_of
from search.layout import CONTINUATIONS, NO_CONTINUATION, NOTED_CAPTURES, NOTED_QUIETS

BUTTERFLY_LIMIT = 7183
CAPTURE_LIMIT = 10692
CONTINUATION_LIMIT = 30000

# [33] uint8: side * 7 + kind of each identity
PIECE_CODE = np.array(
    [(piece // PIECES_PER_SIDE) * KINDS + int(KIND_OF[piece]) for piece in range(PIECES)] + [0], np.uint8
)


@leaf
def butterfly_index(side, move):
    return (side * SQUARES + origin_of(move)) * SQUARES + target_of(move)


@leaf
def continuation_index(piece, move):
    """Piece code and target of a move: a slice of the continuation history, and a place in every slice."""
    return int64(PIECE_CODE[piece]) * SQUARES + target_of(move)


@leaf
def capture_index(position, move):
    piece = int64(position.board[origin_of(move)])
    target = target_of(move)
    victim = int64(KIND_OF[int64(position.board[target])])
    return (int64(PIECE_CODE[piece]) * SQUARES + target) * 8 + victim


@leaf
def continuation_context(frame):
    """Where the slices for the moves one, two and four plies before begin; the same for all moves of a node."""
    return (
        frame.continuation_1 * CONTINUATIONS,
        frame.continuation_2 * CONTINUATIONS,
        frame.continuation_4 * CONTINUATIONS,
    )


@leaf
def continuation_score(histories, context, place):
    table = histories.continuation
    return (
        int64(table[uint64(context[0] + place)])
        + int64(table[uint64(context[1] + place)])
        + int64(table[uint64(context[2] + place)]) // 2
    )


@leaf
def quiet_score(position, histories, context, move):
    """Score by which quiet moves are ordered and reduced."""
    piece = int64(position.board[origin_of(move)])
    return 2 * int64(histories.butterfly[uint64(butterfly_index(position.side, move))]) + continuation_score(
        histories, context, continuation_index(piece, move)
    )


@leaf
def _moved(entry, bonus, limit):
    entry = int64(entry)
    return entry + bonus - entry * abs(bonus) // limit


@leaf
def _update_continuation(histories, frame, place, bonus):
    table = histories.continuation
    if frame.continuation_1 != NO_CONTINUATION:
        index = frame.continuation_1 * CONTINUATIONS + place
        table[index] = _moved(table[index], bonus, int64(CONTINUATION_LIMIT))
    if frame.continuation_2 != NO_CONTINUATION:
        index = frame.continuation_2 * CONTINUATIONS + place
        table[index] = _moved(table[index], bonus, int64(CONTINUATION_LIMIT))
    if frame.continuation_4 != NO_CONTINUATION:
        index = frame.continuation_4 * CONTINUATIONS + place
        table[index] = _moved(table[index], bonus // 2, int64(CONTINUATION_LIMIT))


@leaf
def _update_quiet(histories, frame, position, move, bonus):
    index = butterfly_index(position.side, move)
    histories.butterfly[index] = _moved(histories.butterfly[index], bonus, int64(BUTTERFLY_LIMIT))
    piece = int64(position.board[origin_of(move)])
    _update_continuation(histories, frame, continuation_index(piece, move), bonus)


@leaf
def _update_capture(histories, position, move, bonus):
    index = capture_index(position, move)
    histories.captures[index] = _moved(histories.captures[index], bonus, int64(CAPTURE_LIMIT))


@leaf
def note_searched(frame, position, move):
    """Remember that `move` did not raise alpha to beta."""
    if position.board[target_of(move)] == EMPTY:
        if frame.quiet_count < NOTED_QUIETS:
            frame.quiets[frame.quiet_count] = move
            frame.quiet_count += 1
    elif frame.capture_count < NOTED_CAPTURES:
        frame.captures[frame.capture_count] = move
        frame.capture_count += 1


@leaf
def reward_best(histories, frame, position, depth):
    """After a cutoff: the best move gains, the moves tried before it lose."""
    move = frame.best_move
    bonus = min(162 * depth - 87, 1602)
    malus = min(390 * depth - 148, 2000)
    if position.board[target_of(move)] == EMPTY:
        _update_quiet(histories, frame, position, move, bonus)
        for i in range(frame.quiet_count):
            _update_quiet(histories, frame, position, int64(frame.quiets[i]), -malus)
    else:
        _update_capture(histories, position, move, bonus)
    for i in range(frame.capture_count):
        _update_capture(histories, position, int64(frame.captures[i]), -malus)
