"""The move picker: pseudo-legal moves of a node, best first, generated as late as possible.

A node without check: the table's move, captures that do not lose material, quiet moves, losing captures. In
check: the table's move, then all other evasions in one stage. In quiescence: captures only.

Moves lie in the searcher's buffer from frame.begin on. Beside them lie their ranks, score << RANK_SHIFT | move in
32 bits, from which the best is picked; frame.next is the first that was not picked. Losing captures are kept at
the front of the ranks, in begin ... bad_end - 1.
"""

from numba import int64

from games.jit import leaf
from games.memory import load_i32, store_i32
from games.xiangqi.attacks import gives_check
from games.xiangqi.geometry import EMPTY, NO_MOVE
from games.xiangqi.movegen import generate_captures, generate_evasions, generate_quiets, is_pseudo_legal
from games.xiangqi.position import target_of
from nnue_jax.simd import greatest_lane, keep_first_lanes, lane_of, load_i32x16, maximum
from search.history import (
    BUTTERFLY_LIMIT,
    CAPTURE_LIMIT,
    CONTINUATION_LIMIT,
    capture_index,
    continuation_context,
    quiet_score,
)
from search.see import PIECE_VALUE, see_at_least

(
    STAGE_TABLE_MOVE,
    STAGE_CAPTURES,
    STAGE_PICK_CAPTURES,
    STAGE_QUIETS,
    STAGE_PICK_QUIETS,
    STAGE_BAD_CAPTURES,
    STAGE_EVASIONS,
    STAGE_PICK_EVASIONS,
    STAGE_QUIESCENCE_TABLE_MOVE,
    STAGE_QUIESCENCE,
    STAGE_PICK_QUIESCENCE,
    STAGE_DONE,
) = range(12)

RANK_SHIFT = 14
RANK_MOVE = (1 << RANK_SHIFT) - 1
LEAST_RANK = -(1 << 31)
LANES = 16  # ranks in a vector
MAX_SCORE = (1 << (31 - RANK_SHIFT)) - 1

# Odd numbers that make a hash of a position, a searcher and a move.
NOISE_OF_VARIANT, NOISE_OF_MOVE, NOISE_FACTOR = 0x5851F42D4C957F2D, 0x2545F4914F6CDD1D, 0x369DEA0F31A53F85

CHECK_BONUS = 16384  # for quiet moves that give check, and lose no more by it than
CHECK_SEE_MARGIN = -75

_MAX_QUIET_SCORE = 2 * BUTTERFLY_LIMIT + 5 * CONTINUATION_LIMIT // 2
_CAPTURE_FIRST = _MAX_QUIET_SCORE + CAPTURE_LIMIT  # evasions: captures before quiet moves
assert _MAX_QUIET_SCORE + CHECK_BONUS <= MAX_SCORE
assert _CAPTURE_FIRST + 7 * int(PIECE_VALUE.max()) + CAPTURE_LIMIT <= MAX_SCORE


@leaf
def _capture_score(position, histories, move):
    """Most valuable victim first; the history of such captures decides between like victims."""
    victim = PIECE_VALUE[int64(position.board[target_of(move)])]
    return 7 * victim + int64(histories.captures[capture_index(position, move)])


@leaf
def _rank(searcher, place, move, score):
    store_i32(searcher.ranks, place, score << RANK_SHIFT | move)


@leaf
def _score_captures(searcher, histories, frame):
    for i in range(frame.next, frame.end):
        move = int64(load_i32(searcher.moves, i))
        _rank(searcher, i, move, _capture_score(searcher.position, histories, move))


@leaf
def _score_quiets(searcher, histories, frame):
    position = searcher.position
    moves = searcher.moves
    context = continuation_context(frame)
    for i in range(frame.next, frame.end):
        move = int64(load_i32(moves, i))
        score = quiet_score(position, histories, context, move)
        if gives_check(position, move) and see_at_least(position, move, int64(CHECK_SEE_MARGIN)):
            score += CHECK_BONUS
        _rank(searcher, i, move, score)


@leaf
def _disturb(searcher, frame):
    """Add noise to the scores of quiet moves; the same each time a searcher comes to a position."""
    seed = searcher.position.key ^ searcher.variant * NOISE_OF_VARIANT
    for i in range(frame.next, frame.end):
        rank = int64(load_i32(searcher.ranks, i))
        move = rank & RANK_MOVE
        noise = ((seed ^ move * NOISE_OF_MOVE) * NOISE_FACTOR >> 40) & 0xFFFF
        score = (rank >> RANK_SHIFT) + (noise * searcher.order_noise >> 16)
        _rank(searcher, i, move, min(score, MAX_SCORE))


@leaf
def _score_evasions(searcher, histories, frame):
    position = searcher.position
    context = continuation_context(frame)
    for i in range(frame.next, frame.end):
        move = int64(load_i32(searcher.moves, i))
        if position.board[target_of(move)] == EMPTY:
            score = quiet_score(position, histories, context, move)
        else:
            score = _CAPTURE_FIRST + _capture_score(position, histories, move)
        _rank(searcher, i, move, score)


@leaf
def _take_best(searcher, frame):
    """Rank of the best of the moves left, which are not none; the first of them takes its place.

    The ranks are looked at by sixteens, with up to fifteen words after the last that count for nothing.
    """
    ranks = searcher.ranks
    first = frame.next
    end = frame.end
    greatest = keep_first_lanes(load_i32x16(ranks, first), end - first, LEAST_RANK)
    for i in range(first + LANES, end, LANES):
        greatest = maximum(greatest, keep_first_lanes(load_i32x16(ranks, i), end - i, LEAST_RANK))
    best = greatest_lane(greatest)
    place = first
    lane = lane_of(load_i32x16(ranks, place), best)
    while lane == LANES:
        place += LANES
        lane = lane_of(load_i32x16(ranks, place), best)
    place += lane
    store_i32(ranks, place, load_i32(ranks, first))
    frame.next = first + 1
    return int64(best)


@leaf
def _next_capture(searcher, frame):
    """Next capture that does not lose material, or NO_MOVE; losing ones go to the front."""
    while frame.next < frame.end:
        rank = _take_best(searcher, frame)
        move = rank & RANK_MOVE
        if move == frame.tt_move:
            continue
        if see_at_least(searcher.position, move, -(rank >> RANK_SHIFT) // 18):
            return move
        store_i32(searcher.ranks, frame.bad_end, rank)
        frame.bad_end += 1
    return NO_MOVE


@leaf
def _next_other(searcher, frame):
    """Next move by score that is not the table's, or NO_MOVE."""
    while frame.next < frame.end:
        move = _take_best(searcher, frame) & RANK_MOVE
        if move != frame.tt_move:
            return move
    return NO_MOVE


@leaf
def _next_bad_capture(searcher, frame):
    if frame.next == frame.bad_end:
        return NO_MOVE
    frame.next += 1
    return int64(load_i32(searcher.ranks, frame.next - 1)) & RANK_MOVE


@leaf
def begin_main(searcher, frame):
    """Start picking at a node of the main search."""
    frame.stage = STAGE_TABLE_MOVE
    _begin(searcher, frame)


@leaf
def begin_quiescence(searcher, frame):
    """Start picking at a node of the quiescence search."""
    if frame.in_check:
        frame.stage = STAGE_TABLE_MOVE
    else:
        frame.stage = STAGE_QUIESCENCE_TABLE_MOVE
    _begin(searcher, frame)


@leaf
def _begin(searcher, frame):
    frame.next = frame.begin
    frame.end = frame.begin
    frame.bad_end = frame.begin
    frame.skip_quiets = 0
    if frame.tt_move != NO_MOVE and not is_pseudo_legal(searcher.position, frame.tt_move):
        frame.tt_move = NO_MOVE


@leaf
def next_move(searcher, histories, frame):
    """Next pseudo-legal move, or NO_MOVE after the last."""
    if frame.stage == STAGE_TABLE_MOVE:
        frame.stage = STAGE_EVASIONS if frame.in_check else STAGE_CAPTURES
        if frame.tt_move != NO_MOVE:
            return frame.tt_move
    if frame.stage == STAGE_CAPTURES:
        frame.next = frame.end
        frame.end = generate_captures(searcher.position, searcher.moves, frame.end)
        _score_captures(searcher, histories, frame)
        frame.stage = STAGE_PICK_CAPTURES
    if frame.stage == STAGE_PICK_CAPTURES:
        move = _next_capture(searcher, frame)
        if move != NO_MOVE:
            return move
        frame.stage = STAGE_QUIETS
    if frame.stage == STAGE_QUIETS:
        if not frame.skip_quiets:
            frame.next = frame.end
            frame.end = generate_quiets(searcher.position, searcher.moves, frame.end)
            _score_quiets(searcher, histories, frame)
            if searcher.order_noise:
                _disturb(searcher, frame)
        frame.stage = STAGE_PICK_QUIETS
    if frame.stage == STAGE_PICK_QUIETS:
        if not frame.skip_quiets:
            move = _next_other(searcher, frame)
            if move != NO_MOVE:
                return move
        frame.stage = STAGE_BAD_CAPTURES
        frame.next = frame.begin
        frame.end = frame.bad_end
    if frame.stage == STAGE_BAD_CAPTURES:
        return _next_bad_capture(searcher, frame)
    if frame.stage == STAGE_EVASIONS:
        frame.next = frame.end
        frame.end = generate_evasions(searcher.position, searcher.moves, frame.end)
        _score_evasions(searcher, histories, frame)
        frame.stage = STAGE_PICK_EVASIONS
    return _next_other(searcher, frame)


@leaf
def next_quiescence_move(searcher, histories, frame):
    """Next pseudo-legal capture, or evasion when in check; NO_MOVE after the last."""
    if frame.stage == STAGE_TABLE_MOVE:
        frame.stage = STAGE_EVASIONS
        if frame.tt_move != NO_MOVE:
            return frame.tt_move
    if frame.stage == STAGE_EVASIONS:
        frame.next = frame.end
        frame.end = generate_evasions(searcher.position, searcher.moves, frame.end)
        _score_evasions(searcher, histories, frame)
        frame.stage = STAGE_PICK_EVASIONS
    if frame.stage == STAGE_QUIESCENCE_TABLE_MOVE:
        frame.stage = STAGE_QUIESCENCE
        if frame.tt_move != NO_MOVE and searcher.position.board[target_of(frame.tt_move)] != EMPTY:
            return frame.tt_move
    if frame.stage == STAGE_QUIESCENCE:
        frame.next = frame.end
        frame.end = generate_captures(searcher.position, searcher.moves, frame.end)
        _score_captures(searcher, histories, frame)
        frame.stage = STAGE_PICK_QUIESCENCE
    return _next_other(searcher, frame)
