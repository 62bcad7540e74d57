"""Static exchange evaluation: does a move, with all captures on its target that follow, gain a given value?

The exchange is played on two occupancy words, those of the target's rank and file, and a set of pieces that
are gone. So a piece that captures opens its line for the piece behind it, and changes what is a screen for
the cannons; knights and elephants behind a leg or eye that is gone take part as well. A king guards what stands on
its open file, since the other king may not capture there. Pins are not seen.
"""

import numpy as np
from numba import int64

from games.jit import leaf
from games.xiangqi.attacks import FIRST_KNIGHT, FIRST_ROOK, is_cannon, is_pawn, is_rook
from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    BLACK,
    CANNON,
    EMPTY,
    FILE_OF,
    FILES,
    FIRST_OF_KIND,
    KIND_OF,
    KING,
    KNIGHT,
    NO_SQUARE,
    PAWN,
    PIECES,
    PIECES_PER_SIDE,
    RANK_OF,
    ROOK,
    SQUARES,
    WHITE,
)
from games.xiangqi.position import origin_of, target_of
from games.xiangqi.tables import (
    ADVISOR_LEAPS_BIT,
    BISHOP_LEAPS_BIT,
    FILE_LINES,
    FILE_OCCUPANCIES,
    KING_LEAPS_BIT,
    KNIGHT_LEG_TOWARDS,
    RANK_LINES,
    RANK_OCCUPANCIES,
    SHORT_LEAPS,
)

# Values of the pieces in internal units.
KIND_VALUE = {ROOK: 1305, CANNON: 773, KNIGHT: 720, ADVISOR: 219, BISHOP: 187, PAWN: 144, KING: 0}
# [33] int64, by identity
PIECE_VALUE = np.array([KIND_VALUE.get(int(kind), 0) for kind in KIND_OF], np.int64)
assert PIECE_VALUE[EMPTY] == 0 and PIECE_VALUE.size == PIECES + 1

_FIRST_ADVISOR, _FIRST_BISHOP = FIRST_OF_KIND[ADVISOR], FIRST_OF_KIND[BISHOP]
_NONE = -1


@leaf
def _is_gone(gone, piece):
    return (gone >> piece) & 1 != 0


@leaf
def _is_open(position, square, gone):
    piece = int64(position.board[square])
    return piece == EMPTY or _is_gone(gone, piece)


@leaf
def _leaps_to(position, piece, target, bit, gone):
    """Whether a king, advisor or bishop that is still there stands a step or jump from target."""
    square = int64(position.square_of[piece])
    return (
        square != NO_SQUARE
        and int64(SHORT_LEAPS[target * SQUARES + square]) & bit != 0
        and not _is_gone(gone, piece)
        and (bit != BISHOP_LEAPS_BIT or _is_open(position, (target + square) >> 1, gone))
    )


@leaf
def _defender_attacker(position, target, own, gone):
    """An elephant or advisor that attacks target, or _NONE."""
    for piece in range(own + _FIRST_BISHOP, own + FIRST_KNIGHT):
        if _leaps_to(position, piece, target, int64(BISHOP_LEAPS_BIT), gone):
            return piece
    for piece in range(own + _FIRST_ADVISOR, own + _FIRST_BISHOP):
        if _leaps_to(position, piece, target, int64(ADVISOR_LEAPS_BIT), gone):
            return piece
    return _NONE


@leaf
def _knight_attacker(position, target, own, gone):
    for piece in range(own + FIRST_KNIGHT, own + FIRST_ROOK):
        square = int64(position.square_of[piece])
        if square != NO_SQUARE and not _is_gone(gone, piece):
            leg = int64(KNIGHT_LEG_TOWARDS[target * SQUARES + square])
            if leg != NO_SQUARE and _is_open(position, leg, gone):
                return piece
    return _NONE


@leaf
def _least_attacker(position, target, side, rank_word, file_word, gone):
    """Identity of the least valuable piece of `side` that attacks target, or _NONE."""
    board = position.board
    own = side * PIECES_PER_SIDE
    file = int64(FILE_OF[target])
    rank = int64(RANK_OF[target])
    start = target - file
    along_rank = int64(RANK_LINES[file * RANK_OCCUPANCIES + rank_word])
    along_file = int64(FILE_LINES[rank * FILE_OCCUPANCIES + file_word])
    left_square = start + (along_rank & 15)
    right_square = start + ((along_rank >> 4) & 15)
    down_square = (along_file & 15) * FILES + file
    up_square = ((along_file >> 4) & 15) * FILES + file
    # A line without a piece names the target itself, which no capturer may be taken for.
    left = int64(board[left_square]) - own if left_square != target else _NONE
    right = int64(board[right_square]) - own if right_square != target else _NONE
    down = int64(board[down_square]) - own if down_square != target else _NONE
    up = int64(board[up_square]) - own if up_square != target else _NONE
    # A pawn attacks forward, and sideways once it has crossed the river.
    if side == WHITE and is_pawn(down) and down_square == target - FILES:
        return own + down
    if side == BLACK and is_pawn(up) and up_square == target + FILES:
        return own + up
    if (rank >= 5) == (side == WHITE):
        if is_pawn(left) and left_square == target - 1:
            return own + left
        if is_pawn(right) and right_square == target + 1:
            return own + right
    if (rank < 5) == (side == WHITE):
        piece = _defender_attacker(position, target, own, gone)
        if piece != _NONE:
            return piece
    piece = _knight_attacker(position, target, own, gone)
    if piece != _NONE:
        return piece
    piece = _cannon_attacker(position, target, own, along_rank, along_file)
    if piece != _NONE:
        return piece
    if is_rook(left):
        return own + left
    if is_rook(right):
        return own + right
    if is_rook(down):
        return own + down
    if is_rook(up):
        return own + up
    other_king = (1 - side) * PIECES_PER_SIDE
    if int64(board[down_square]) != other_king and int64(board[up_square]) != other_king:  # it may not face the other
        if _leaps_to(position, own, target, int64(KING_LEAPS_BIT), gone):
            return own
    return _NONE


@leaf
def _cannon_attacker(position, target, own, along_rank, along_file):
    board = position.board
    file = int64(FILE_OF[target])
    start = target - file
    square = start + ((along_rank >> 8) & 15)
    if square != target and is_cannon(int64(board[square]) - own):
        return int64(board[square])
    square = start + ((along_rank >> 12) & 15)
    if square != target and is_cannon(int64(board[square]) - own):
        return int64(board[square])
    square = ((along_file >> 8) & 15) * FILES + file
    if square != target and is_cannon(int64(board[square]) - own):
        return int64(board[square])
    square = ((along_file >> 12) & 15) * FILES + file
    if square != target and is_cannon(int64(board[square]) - own):
        return int64(board[square])
    return _NONE


@leaf
def see_at_least(position, move, threshold):
    """Whether the exchange that `move`, a pseudo-legal one, starts on its target is worth `threshold` or more."""
    origin = origin_of(move)
    target = target_of(move)
    board = position.board
    mover = int64(board[origin])
    balance = PIECE_VALUE[int64(board[target])] - threshold
    if balance < 0:
        return False
    balance = PIECE_VALUE[mover] - balance
    if balance <= 0:
        return True
    rank = int64(RANK_OF[target])
    file = int64(FILE_OF[target])
    rank_word = int64(position.ranks[rank]) | 1 << file
    file_word = int64(position.files[file]) | 1 << rank
    gone = int64(0)
    side = position.side
    piece = mover
    wins = True
    while True:
        # `piece` has just captured on the target: it leaves its square.
        gone |= 1 << piece
        square = int64(position.square_of[piece])
        if int64(RANK_OF[square]) == rank:
            rank_word &= ~(1 << int64(FILE_OF[square]))
        if int64(FILE_OF[square]) == file:
            file_word &= ~(1 << int64(RANK_OF[square]))
        previous = piece
        side = 1 - side
        piece = _least_attacker(position, target, side, rank_word, file_word, gone)
        if piece == _NONE:
            break
        wins = not wins
        if previous == (1 - side) * PIECES_PER_SIDE:
            break  # a king cannot capture what is guarded
        if piece != side * PIECES_PER_SIDE:
            balance = PIECE_VALUE[piece] - balance
            if balance < int64(wins):
                break
    return wins
