"""The threat features of a line of moves, and their sums.

All threats of a position are listed anew, which takes little: a few look-ups a piece. The sums are then made from those
of an earlier ply by the difference of the two lists, which is short, or from nothing if the list itself is shorter. It
does not matter what led to the position, so a turned board or a pass needs no special case.

The sums of ply 0 always belong to its list, also when the list is out of date: they are the last resort, and start as
no threats at all.
"""

import numpy as np
from numba import int64

from games.jit import leaf, routine
from games.memory import load_u8, load_u16, store_u8, store_u16
from games.xiangqi.attacks import file_line, rank_line
from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    EMPTY,
    FILE_OF,
    FILES,
    FIRST_OF_KIND,
    KIND_OF,
    KNIGHT,
    NO_SQUARE,
    PAWN,
    PIECES,
    PIECES_PER_SIDE,
    RANK_OF,
    ROOK,
    SQUARES,
    flip_ranks,
)
from games.xiangqi.tables import (
    ADVISOR_LEAPS,
    BISHOP_LEAPS,
    KING_LEAPS,
    KNIGHT_LEAPS,
    KNIGHT_ROW,
    LEAP_BLOCKERS,
    LEAP_TARGETS,
    PAWN_LEAPS,
    PAWN_LEAPS_OF_SIDE,
    PAWN_ROW,
    SHORT_ROW,
)
from nnue_jax.accumulator import MAX_ATTACKS, PLIES
from nnue_jax.architecture import LAYER_STACKS
from nnue_jax.rows import apply_psqt_rows, apply_rows
from nnue_jax.threats import NO_FEATURE, PIECE_CODES, oriented_code

_FIRST_ADVISOR, _FIRST_BISHOP, _FIRST_KNIGHT = FIRST_OF_KIND[ADVISOR], FIRST_OF_KIND[BISHOP], FIRST_OF_KIND[KNIGHT]
_FIRST_ROOK, _FIRST_CANNON, _FIRST_PAWN = FIRST_OF_KIND[ROOK], FIRST_OF_KIND[ROOK + 1], FIRST_OF_KIND[PAWN]

# Number of a list, and of sums that stay zero, behind those of all plies and perspectives.
SPARE_LIST = 2 * PLIES

# An attack in one word: the identities of both pieces, and their squares.
_VICTIM_SHIFT, _FROM_SHIFT, _TO_SHIFT = 5, 10, 17
_PIECE_MASK, _SQUARE_MASK = (1 << 5) - 1, (1 << 7) - 1

# [2 * 32] uint8, perspective * 32 + piece: `oriented_code` of an identity.
_CODES = np.array(
    [
        oriented_code(piece // PIECES_PER_SIDE == perspective, int(KIND_OF[piece]))
        for perspective in range(2)
        for piece in range(PIECES)
    ],
    np.uint8,
)
# [2 * 2 * 90] uint8, (perspective * 2 + mirrored) * 90 + square: the oriented square.
_SQUARES = np.array(
    [
        seen + FILES - 1 - 2 * (seen % FILES) if mirrored else seen
        for perspective in range(2)
        for mirrored in range(2)
        for seen in (flip_ranks(square) if perspective else square for square in range(SQUARES))
    ],
    np.uint8,
)


@leaf
def _note(evaluator, position, count, piece, origin, target, is_attack):
    """Write an attack on whatever stands on target; it counts if `is_attack`."""
    victim = int64(position.board[target])
    evaluator.attacks[count] = (
        piece | (victim & _PIECE_MASK) << _VICTIM_SHIFT | origin << _FROM_SHIFT | target << _TO_SHIFT
    )
    return count + int64(is_attack & (victim != EMPTY))


@leaf
def _leaps(evaluator, position, count, piece, origin, row, width, is_blocked):
    """Attacks of a piece that leaps; a row is filled up with the origin, which is no attack."""
    for i in range(row, row + width):
        target = int64(LEAP_TARGETS[i])
        is_attack = target != origin
        if is_blocked:
            is_attack &= position.board[int64(LEAP_BLOCKERS[i])] == EMPTY
        count = _note(evaluator, position, count, piece, origin, target, is_attack)
    return count


@leaf
def _slides(evaluator, position, count, piece, origin, is_cannon):
    """Attacks of a rook on the nearest, of a cannon on the second piece of each line."""
    shift = 8 if is_cannon else 0
    along_rank = rank_line(position, origin) >> shift
    along_file = file_line(position, origin) >> shift
    file = int64(FILE_OF[origin])
    start = int64(RANK_OF[origin]) * FILES
    for k in range(0, 8, 4):
        target = start + ((along_rank >> k) & 15)
        count = _note(evaluator, position, count, piece, origin, target, target != origin)
        target = ((along_file >> k) & 15) * FILES + file
        count = _note(evaluator, position, count, piece, origin, target, target != origin)
    return count


@leaf
def _list_attacks_of(evaluator, position, count, side):
    own = side * PIECES_PER_SIDE
    square_of = position.square_of
    square = int64(square_of[own])
    row = KING_LEAPS + square * SHORT_ROW
    count = _leaps(evaluator, position, count, own, square, row, SHORT_ROW, False)
    for piece in range(own + _FIRST_ADVISOR, own + _FIRST_BISHOP):
        square = int64(square_of[piece])
        if square != NO_SQUARE:
            row = ADVISOR_LEAPS + square * SHORT_ROW
            count = _leaps(evaluator, position, count, piece, square, row, SHORT_ROW, False)
    for piece in range(own + _FIRST_BISHOP, own + _FIRST_KNIGHT):
        square = int64(square_of[piece])
        if square != NO_SQUARE:
            row = BISHOP_LEAPS + square * SHORT_ROW
            count = _leaps(evaluator, position, count, piece, square, row, SHORT_ROW, True)
    for piece in range(own + _FIRST_KNIGHT, own + _FIRST_ROOK):
        square = int64(square_of[piece])
        if square != NO_SQUARE:
            row = KNIGHT_LEAPS + square * KNIGHT_ROW
            count = _leaps(evaluator, position, count, piece, square, row, KNIGHT_ROW, True)
    for piece in range(own + _FIRST_ROOK, own + _FIRST_PAWN):
        square = int64(square_of[piece])
        if square != NO_SQUARE:
            count = _slides(evaluator, position, count, piece, square, piece >= own + _FIRST_CANNON)
    for piece in range(own + _FIRST_PAWN, own + PIECES_PER_SIDE):
        square = int64(square_of[piece])
        if square != NO_SQUARE:
            row = PAWN_LEAPS + side * PAWN_LEAPS_OF_SIDE + square * PAWN_ROW
            count = _leaps(evaluator, position, count, piece, square, row, PAWN_ROW, False)
    return count


@leaf
def _features(evaluator, attack_count, perspective, mirrored, place):
    """Write the threat features of the listed attacks to the list at `place`; returns their number."""
    count = 0
    codes = perspective * PIECES
    squares = (perspective * 2 + mirrored) * SQUARES
    for i in range(attack_count):
        attack = int64(evaluator.attacks[i])
        attacker = int64(_CODES[codes + (attack & _PIECE_MASK)])
        victim = int64(_CODES[codes + ((attack >> _VICTIM_SHIFT) & _PIECE_MASK)])
        origin = int64(_SQUARES[squares + ((attack >> _FROM_SHIFT) & _SQUARE_MASK)])
        target = int64(_SQUARES[squares + ((attack >> _TO_SHIFT) & _SQUARE_MASK)])
        index = ((attacker * SQUARES + origin) * SQUARES + target) * PIECE_CODES + victim
        feature = int64(load_u16(evaluator.threat_table, index))
        store_u16(evaluator.threat_lists, place + count, feature)
        count += int64(feature != NO_FEATURE)
    return count


@leaf
def _difference(evaluator, old, old_count, new, new_count):
    """(number of features to add, number to remove) between two lists; both are left in `changed_threats`.

    The latter start at index MAX_ATTACKS.
    """
    lists = evaluator.threat_lists
    marks = evaluator.threat_marks
    for i in range(old_count):
        store_u8(marks, int64(load_u16(lists, old + i)), 1)
    added = 0
    for i in range(new_count):
        feature = int64(load_u16(lists, new + i))
        evaluator.changed_threats[added] = feature
        added += int64(load_u8(marks, feature) == 0)
        store_u8(marks, feature, 0)
    removed = 0
    for i in range(old_count):
        feature = int64(load_u16(lists, old + i))
        evaluator.changed_threats[MAX_ATTACKS + removed] = feature
        removed += int64(load_u8(marks, feature))
        store_u8(marks, feature, 0)
    return added, removed


@leaf
def _update(evaluator, attack_count, perspective, ply):
    """Bring list and sums of one perspective up to date."""
    states = evaluator.states
    known = ply
    while known > 0 and states[known].threats_computed[perspective] == 0:
        known -= 1
    old = (known * 2 + perspective) * MAX_ATTACKS
    place = (ply * 2 + perspective) * MAX_ATTACKS
    spare = SPARE_LIST * MAX_ATTACKS  # ply 0 is its own predecessor
    mirrored = int64(states[ply].orientation[perspective]) & 1
    count = _features(evaluator, attack_count, perspective, mirrored, spare)
    added, removed = _difference(evaluator, old, int64(states[known].threat_count[perspective]), spare, count)
    for i in range(count):
        store_u16(evaluator.threat_lists, place + i, int64(load_u16(evaluator.threat_lists, spare + i)))
    rows = evaluator.changed_threats
    source, target = known * 2 + perspective, ply * 2 + perspective
    if added + removed > count:
        source = SPARE_LIST
        added, removed = count, 0
        for i in range(count):
            rows[i] = load_u16(evaluator.threat_lists, spare + i)
    width = evaluator.width
    sums = evaluator.threat_accumulators
    apply_rows(
        evaluator.threat_weight, width, rows, added, MAX_ATTACKS, removed, sums, source * width, sums, target * width
    )
    sums = evaluator.threat_psqt_sums
    start, place = source * LAYER_STACKS, target * LAYER_STACKS
    apply_psqt_rows(evaluator.threat_psqt, rows, added, MAX_ATTACKS, removed, sums, start, sums, place)
    states[ply].threat_count[perspective] = count
    states[ply].threats_computed[perspective] = 1


@routine
def bring_threats_up_to_date(evaluator, position, ply):
    """Make the threat sums of `ply`, which is the present position, for both perspectives."""
    if evaluator.states[ply].threats_computed[0]:
        return
    count = _list_attacks_of(evaluator, position, int64(0), int64(0))
    count = _list_attacks_of(evaluator, position, count, int64(1))
    for perspective in range(2):
        _update(evaluator, count, perspective, ply)
