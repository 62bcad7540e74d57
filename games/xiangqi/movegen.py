"""Pseudo-legal and legal moves, and perft.

`moves` is the address of an int32 buffer. Moves are appended from index `count` on, and every generator returns
the new end. A side has fewer than MAX_MOVES pseudo-legal moves. Candidates are written first and counted only if
they are moves, because a branch that cannot be foreseen costs more than a store.
"""

import numpy as np
from numba import int64

from games.jit import kernel, leaf, routine
from games.memory import address_of, load_i32, store_i32
from games.xiangqi.attacks import (
    evasion_squares,
    file_line,
    high_bit,
    is_among,
    is_legal,
    king_attacked,
    low_bit,
    rank_line,
)
from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    CANNON,
    EMPTY,
    FILE_OF,
    FILES,
    FIRST_OF_KIND,
    KIND_OF,
    KNIGHT,
    MOVE_SHIFT,
    NO_SQUARE,
    PAWN,
    PIECES_PER_SIDE,
    RANK_OF,
    RANKS,
    ROOK,
    SQUARE_MASK,
    SQUARES,
)
from games.xiangqi.position import make_move, origin_of, pass_move, target_of, unmake_move
from games.xiangqi.tables import (
    ADVISOR_LEAPS,
    ADVISOR_ROWS,
    BISHOP_LEAPS,
    BISHOP_ROWS,
    KING_LEAPS,
    KING_ROWS,
    KNIGHT_LEAPS,
    KNIGHT_ROW,
    KNIGHT_ROWS,
    LEAP_BLOCKERS,
    LEAP_TARGET_SETS,
    LEAP_TARGETS,
    PAWN_LEAPS,
    PAWN_LEAPS_OF_SIDE,
    PAWN_ROW,
    PAWN_ROWS,
    SHORT_ROW,
)

# Two rooks and two cannons 17 each, knights 8, elephants, advisors and the king 4, pawns 3: 119. Generators may write
# up to nine words more than they count.
MAX_MOVES = 128
MAX_PERFT_DEPTH = 64

ALL, CAPTURES, QUIETS = range(3)

_SIDE_BITS = 48  # of an identity: 0 White, 16 Black, 32 EMPTY
_FIRST_ADVISOR, _FIRST_BISHOP, _FIRST_KNIGHT = FIRST_OF_KIND[ADVISOR], FIRST_OF_KIND[BISHOP], FIRST_OF_KIND[KNIGHT]
_FIRST_ROOK, _FIRST_CANNON, _FIRST_PAWN = FIRST_OF_KIND[ROOK], FIRST_OF_KIND[CANNON], FIRST_OF_KIND[PAWN]


@leaf
def _wanted(occupant, own, which):
    """Whether a target square that holds identity `occupant` makes a move of the wanted sort."""
    bits = int64(occupant) & _SIDE_BITS
    if which == CAPTURES:
        return bits == PIECES_PER_SIDE - own
    if which == QUIETS:
        return bits == EMPTY
    return bits != own


@leaf
def _generate_steps(position, origin, row, width, own, which, moves, count):
    """Moves of a king, advisor or pawn on `origin`, whose targets start at LEAP_TARGETS[row]."""
    for i in range(row, row + width):
        target = int64(LEAP_TARGETS[i])
        store_i32(moves, count, origin | target << MOVE_SHIFT)
        count += int64(_wanted(position.board[target], own, which))
    return count


@leaf
def _generate_jumps(position, origin, row, width, own, which, moves, count):
    """Moves of a bishop or knight on `origin`, whose targets start at LEAP_TARGETS[row]."""
    for i in range(row, row + width):
        target = int64(LEAP_TARGETS[i])
        is_open = position.board[int64(LEAP_BLOCKERS[i])] == EMPTY
        store_i32(moves, count, origin | target << MOVE_SHIFT)
        count += int64(is_open & _wanted(position.board[target], own, which))
    return count


@leaf
def _append_capture(position, origin, target, own, moves, count):
    store_i32(moves, count, origin | target << MOVE_SHIFT)
    return count + int64((int64(position.board[target]) & _SIDE_BITS) == PIECES_PER_SIDE - own)


@leaf
def _generate_slides(position, origin, is_cannon, own, which, moves, count):
    """Moves of a rook or cannon on `origin`."""
    rank = int64(RANK_OF[origin])
    file = int64(FILE_OF[origin])
    start = rank * FILES
    along_rank = rank_line(position, origin)
    along_file = file_line(position, origin)
    if which != CAPTURES:
        # The quiet targets are all from the lowest to the highest but the origin, at most as many as the line has
        # squares less one; that many are written, because loops of known length run on vectors.
        lowest = (along_rank >> 16) & 15
        for k in range(FILES - 1):
            to_file = lowest + k + int64(lowest + k >= file)
            store_i32(moves, count + k, origin | (start + to_file) << MOVE_SHIFT)
        count += ((along_rank >> 20) & 15) - lowest
        lowest = (along_file >> 16) & 15
        for k in range(RANKS - 1):
            to_rank = lowest + k + int64(lowest + k >= rank)
            store_i32(moves, count + k, origin | (to_rank * FILES + file) << MOVE_SHIFT)
        count += ((along_file >> 20) & 15) - lowest
    if which != QUIETS:
        shift = 8 if is_cannon else 0  # a cannon takes the second piece on the line
        along_rank >>= shift
        along_file >>= shift
        count = _append_capture(position, origin, start + (along_rank & 15), own, moves, count)
        count = _append_capture(position, origin, start + ((along_rank >> 4) & 15), own, moves, count)
        count = _append_capture(position, origin, (along_file & 15) * FILES + file, own, moves, count)
        count = _append_capture(position, origin, ((along_file >> 4) & 15) * FILES + file, own, moves, count)
    return count


@leaf
def _may_leap(which, row, low, high):
    """Whether a row of leaps may hold wanted moves; for captures, the set is that of the enemy's squares."""
    return which != CAPTURES or (LEAP_TARGET_SETS[2 * row] & low) | (LEAP_TARGET_SETS[2 * row + 1] & high) != 0


@leaf
def _pieces_of(position, first):
    """The set of squares, in two words, of the side whose first identity is given."""
    low = int64(0)
    high = int64(0)
    for piece in range(first, first + PIECES_PER_SIDE):
        square = int64(position.square_of[piece])
        low |= low_bit(square)
        high |= high_bit(square)
    return low, high


@leaf
def _generate(position, which, moves, count):
    """Append the pseudo-legal moves of the side to move; `which` is ALL, CAPTURES or QUIETS."""
    own = position.side * PIECES_PER_SIDE
    square_of = position.square_of
    # Most leapers have nothing to capture, and a set of squares tells at once.
    low = int64(0)
    high = int64(0)
    if which == CAPTURES:
        low, high = _pieces_of(position, PIECES_PER_SIDE - own)
    square = int64(square_of[own])
    if _may_leap(which, KING_ROWS + square, low, high):
        row = KING_LEAPS + square * SHORT_ROW
        count = _generate_steps(position, square, row, int64(SHORT_ROW), own, which, moves, count)
    for piece in range(own + _FIRST_ADVISOR, own + _FIRST_BISHOP):
        square = int64(square_of[piece])
        if square != NO_SQUARE and _may_leap(which, ADVISOR_ROWS + square, low, high):
            row = ADVISOR_LEAPS + square * SHORT_ROW
            count = _generate_steps(position, square, row, int64(SHORT_ROW), own, which, moves, count)
    for piece in range(own + _FIRST_BISHOP, own + _FIRST_KNIGHT):
        square = int64(square_of[piece])
        if square != NO_SQUARE and _may_leap(which, BISHOP_ROWS + square, low, high):
            row = BISHOP_LEAPS + square * SHORT_ROW
            count = _generate_jumps(position, square, row, int64(SHORT_ROW), own, which, moves, count)
    for piece in range(own + _FIRST_KNIGHT, own + _FIRST_ROOK):
        square = int64(square_of[piece])
        if square != NO_SQUARE and _may_leap(which, KNIGHT_ROWS + square, low, high):
            row = KNIGHT_LEAPS + square * KNIGHT_ROW
            count = _generate_jumps(position, square, row, int64(KNIGHT_ROW), own, which, moves, count)
    for piece in range(own + _FIRST_ROOK, own + _FIRST_PAWN):
        square = int64(square_of[piece])
        if square != NO_SQUARE:
            is_cannon = piece >= own + _FIRST_CANNON
            count = _generate_slides(position, square, is_cannon, own, which, moves, count)
    for piece in range(own + _FIRST_PAWN, own + PIECES_PER_SIDE):
        square = int64(square_of[piece])
        if square != NO_SQUARE and _may_leap(which, PAWN_ROWS + position.side * SQUARES + square, low, high):
            row = PAWN_LEAPS + position.side * PAWN_LEAPS_OF_SIDE + square * PAWN_ROW
            count = _generate_steps(position, square, row, int64(PAWN_ROW), own, which, moves, count)
    return count


@leaf
def generate_all(position, moves, count):
    """Append all pseudo-legal moves of the side to move."""
    return _generate(position, int64(ALL), moves, count)


@leaf
def generate_captures(position, moves, count):
    return _generate(position, int64(CAPTURES), moves, count)


@leaf
def generate_quiets(position, moves, count):
    """Append the pseudo-legal moves that capture nothing."""
    return _generate(position, int64(QUIETS), moves, count)


@leaf
def _keep_evasions(position, moves, start, end):
    """Keep those of the moves start ... end - 1 that may end a check; returns the new end."""
    low, high, screen = evasion_squares(position)
    king = int64(position.square_of[position.side * PIECES_PER_SIDE])
    for i in range(start, end):
        move = int64(load_i32(moves, i))
        origin = origin_of(move)
        store_i32(moves, start, move)
        start += int64((origin == king) | (origin == screen) | is_among(low, high, target_of(move)))
    return start


@leaf
def generate_evasions(position, moves, count):
    """Append, for a side in check, the pseudo-legal moves that may end it: all legal moves and few others."""
    return _keep_evasions(position, moves, count, generate_all(position, moves, count))


@leaf
def _steps_to(row, width, target):
    for i in range(row, row + width):
        if int64(LEAP_TARGETS[i]) == target:
            return True
    return False


@leaf
def _jumps_to(position, row, width, target):
    for i in range(row, row + width):
        if int64(LEAP_TARGETS[i]) == target:
            return position.board[int64(LEAP_BLOCKERS[i])] == EMPTY
    return False


@leaf
def _slides_to(position, is_cannon, origin, target):
    """Whether a rook or cannon moves from origin to target."""
    if RANK_OF[origin] == RANK_OF[target]:
        line = rank_line(position, origin)
        coordinate = int64(FILE_OF[target])
    elif FILE_OF[origin] == FILE_OF[target]:
        line = file_line(position, origin)
        coordinate = int64(RANK_OF[target])
    else:
        return False
    if position.board[target] == EMPTY:
        return ((line >> 16) & 15) <= coordinate <= ((line >> 20) & 15)
    if is_cannon:
        line >>= 8
    return coordinate == (line & 15) or coordinate == ((line >> 4) & 15)


@leaf
def is_pseudo_legal(position, move):
    """Whether any word whatever, such as a move from a hash table, is a pseudo-legal move here."""
    origin = origin_of(move)
    target = target_of(move)
    if move >> (2 * MOVE_SHIFT) != 0 or origin == target or origin >= SQUARES or target >= SQUARES:
        return False
    own = position.side * PIECES_PER_SIDE
    piece = int64(position.board[origin]) - own
    if piece < 0 or piece >= PIECES_PER_SIDE:
        return False
    if (int64(position.board[target]) & _SIDE_BITS) == own:
        return False
    kind = int64(KIND_OF[piece])
    if kind == ROOK or kind == CANNON:
        return _slides_to(position, kind == CANNON, origin, target)
    if kind == KNIGHT:
        return _jumps_to(position, KNIGHT_LEAPS + origin * KNIGHT_ROW, int64(KNIGHT_ROW), target)
    if kind == PAWN:
        row = PAWN_LEAPS + position.side * PAWN_LEAPS_OF_SIDE + origin * PAWN_ROW
        return _steps_to(row, int64(PAWN_ROW), target)
    if kind == BISHOP:
        return _jumps_to(position, BISHOP_LEAPS + origin * SHORT_ROW, int64(SHORT_ROW), target)
    if kind == ADVISOR:
        return _steps_to(ADVISOR_LEAPS + origin * SHORT_ROW, int64(SHORT_ROW), target)
    return _steps_to(KING_LEAPS + origin * SHORT_ROW, int64(SHORT_ROW), target)


@leaf
def generate_legal(position, moves, count):
    """Append the legal moves of the side to move."""
    in_check = king_attacked(position, position.side)
    end = generate_all(position, moves, count)
    if in_check:
        end = _keep_evasions(position, moves, count, end)
    for i in range(count, end):
        move = int64(load_i32(moves, i))
        if is_legal(position, move, in_check):
            store_i32(moves, count, move)
            count += 1
    return count


@leaf
def has_legal_move(position, in_check, moves, count):
    """Whether the side to move can move at all; moves[count:] is scratch."""
    end = generate_all(position, moves, count)
    if in_check:
        end = _keep_evasions(position, moves, count, end)
    for i in range(count, end):
        if is_legal(position, int64(load_i32(moves, i)), in_check):
            return True
    return False


@routine
def can_move(position, in_check, moves, count):
    """`has_legal_move`, for callers that are seldom asked."""
    return has_legal_move(position, in_check, moves, count)


@leaf
def _count_legal(position, moves, count):
    end = generate_all(position, moves, count)
    in_check = king_attacked(position, position.side)
    if in_check:
        end = _keep_evasions(position, moves, count, end)
    legal = 0
    for i in range(count, end):
        if is_legal(position, int64(load_i32(moves, i)), in_check):
            legal += 1
    return legal


@kernel
def perft_kernel(position, depth, moves, captured, next_index, end_index):
    """Number of lines of `depth` >= 1 legal moves, the last ply counted without being played.

    Scratch: `moves` with room for depth * MAX_MOVES; captured, next_index, end_index [depth] int64.
    """
    if depth == 1:
        return _count_legal(position, moves, int64(0))
    total = 0
    ply = 0
    next_index[0] = 0
    end_index[0] = generate_all(position, moves, int64(0))
    while ply >= 0:
        if next_index[ply] == end_index[ply]:
            ply -= 1
            if ply >= 0:
                unmake_move(position, int64(load_i32(moves, next_index[ply] - 1)), captured[ply])
            continue
        move = int64(load_i32(moves, next_index[ply]))
        next_index[ply] += 1
        side = position.side
        captured[ply] = make_move(position, move)
        if king_attacked(position, side):
            unmake_move(position, move, captured[ply])
        elif ply + 2 == depth:
            total += _count_legal(position, moves, end_index[ply])
            unmake_move(position, move, captured[ply])
        else:
            ply += 1
            next_index[ply] = end_index[ply - 1]
            end_index[ply] = generate_all(position, moves, end_index[ply - 1])
    return total


@kernel
def legal_moves_kernel(position, moves):
    """Write the legal moves; returns their number."""
    return generate_legal(position, moves, int64(0))


@kernel
def in_check_kernel(position):
    return king_attacked(position, position.side)


@kernel
def enemy_captures_kernel(position, moves):
    """Write the captures that the other side would have if it were to move; returns their number."""
    pass_move(position)
    count = generate_captures(position, moves, int64(0))
    pass_move(position)
    return count


@kernel
def opponent_in_check_kernel(position):
    """Whether the side to move could capture the other king."""
    return king_attacked(position, 1 - position.side)


@kernel
def make_move_kernel(position, move):
    return make_move(position, int64(move))


def perft(position: np.ndarray, depth: int) -> int:
    """Number of lines of `depth` legal moves from a POSITION array of shape [1]."""
    if not 0 <= depth <= MAX_PERFT_DEPTH:
        raise ValueError(f"The perft depth is {depth}; expected 0 to {MAX_PERFT_DEPTH}.")
    if depth == 0:
        return 1
    scratch = [np.zeros(depth, np.int64) for _ in range(3)]
    moves = np.zeros(depth * MAX_MOVES, np.int32)
    return int(perft_kernel(position[0], depth, address_of(moves), *scratch))


def legal_moves(position: np.ndarray) -> list[int]:
    """Legal moves in a POSITION array of shape [1], in generation order."""
    moves = np.zeros(MAX_MOVES, np.int32)
    count = legal_moves_kernel(position[0], address_of(moves))
    return moves[:count].tolist()


def checkers(position: np.ndarray) -> list[int]:
    """Squares, ascending, of the pieces that give check to the side to move of a POSITION array [1]."""
    moves = np.zeros(MAX_MOVES, np.int32)
    count = enemy_captures_kernel(position[0], address_of(moves))
    king = position["square_of"][0, PIECES_PER_SIDE * position["side"][0]]
    return sorted(move & SQUARE_MASK for move in moves[:count].tolist() if move >> MOVE_SHIFT == king)
