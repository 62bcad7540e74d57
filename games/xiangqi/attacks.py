"""Attacks on a king: is it in check, does a move leave it in check, does a move give check."""

from numba import int64

from games.jit import leaf
from games.xiangqi.geometry import (
    BLACK,
    CANNON,
    EMPTY,
    FILE_OF,
    FILES,
    FIRST_OF_KIND,
    KING,
    KNIGHT,
    NO_SQUARE,
    PAWN,
    PIECES_PER_SIDE,
    RANK_OF,
    ROOK,
    SQUARES,
    WHITE,
)
from games.xiangqi.position import move_piece, origin_of, target_of, unmove_piece
from games.xiangqi.tables import (
    FILE_LINES,
    FILE_OCCUPANCIES,
    KING_SENSITIVE,
    KNIGHT_LEG_TOWARDS,
    RANK_LINES,
    RANK_OCCUPANCIES,
)

FIRST_KNIGHT = FIRST_OF_KIND[KNIGHT]
FIRST_ROOK = FIRST_OF_KIND[ROOK]
FIRST_CANNON = FIRST_OF_KIND[CANNON]
FIRST_PAWN = FIRST_OF_KIND[PAWN]


@leaf
def is_rook(piece):
    """Of an identity less its side's offset; also false for pieces of the other side and EMPTY."""
    return FIRST_ROOK <= piece < FIRST_CANNON


@leaf
def is_cannon(piece):
    return FIRST_CANNON <= piece < FIRST_PAWN


@leaf
def is_pawn(piece):
    return FIRST_PAWN <= piece < PIECES_PER_SIDE


@leaf
def rank_line(position, square):
    """Fields of RANK_LINES for the rank through `square`; coordinates are files."""
    occupancy = int64(position.ranks[int64(RANK_OF[square])])
    return int64(RANK_LINES[int64(FILE_OF[square]) * RANK_OCCUPANCIES + occupancy])


@leaf
def file_line(position, square):
    """Fields of FILE_LINES for the file through `square`; coordinates are ranks."""
    occupancy = int64(position.files[int64(FILE_OF[square])])
    return int64(FILE_LINES[int64(RANK_OF[square]) * FILE_OCCUPANCIES + occupancy])


@leaf
def attacked_along_rank(position, king, enemy):
    """`enemy` is the first identity of the attacking side, here and below."""
    board = position.board
    line = rank_line(position, king)
    start = int64(RANK_OF[king]) * FILES
    below = start + (line & 15)
    above = start + ((line >> 4) & 15)
    piece = int64(board[below]) - enemy
    if is_rook(piece) or (is_pawn(piece) and below == king - 1):
        return True
    piece = int64(board[above]) - enemy
    if is_rook(piece) or (is_pawn(piece) and above == king + 1):
        return True
    if is_cannon(int64(board[start + ((line >> 8) & 15)]) - enemy):
        return True
    return is_cannon(int64(board[start + ((line >> 12) & 15)]) - enemy)


@leaf
def attacked_along_file(position, king, enemy, side):
    """Facing kings count as an attack."""
    board = position.board
    line = file_line(position, king)
    file = int64(FILE_OF[king])
    below = (line & 15) * FILES + file
    above = ((line >> 4) & 15) * FILES + file
    piece = int64(board[below]) - enemy
    if is_rook(piece) or piece == KING or (side == BLACK and is_pawn(piece) and below == king - FILES):
        return True
    piece = int64(board[above]) - enemy
    if is_rook(piece) or piece == KING or (side == WHITE and is_pawn(piece) and above == king + FILES):
        return True
    if is_cannon(int64(board[((line >> 8) & 15) * FILES + file]) - enemy):
        return True
    return is_cannon(int64(board[((line >> 12) & 15) * FILES + file]) - enemy)


@leaf
def attacked_by_knight(position, king, enemy):
    for knight in (enemy + FIRST_KNIGHT, enemy + FIRST_KNIGHT + 1):
        square = int64(position.square_of[knight])
        if square != NO_SQUARE:
            leg = int64(KNIGHT_LEG_TOWARDS[king * SQUARES + square])
            if leg != NO_SQUARE and position.board[leg] == EMPTY:
                return True
    return False


@leaf
def king_attacked(position, side):
    """Whether the king of `side` is attacked, or faces the other king."""
    king = int64(position.square_of[side * PIECES_PER_SIDE])
    enemy = PIECES_PER_SIDE - side * PIECES_PER_SIDE
    return (
        attacked_along_rank(position, king, enemy)
        or attacked_along_file(position, king, enemy, side)
        or attacked_by_knight(position, king, enemy)
    )


@leaf
def low_bit(square):
    """The bit of one of the squares 0 to 63, in the first word of a set of squares; 0 for all others."""
    return int64(square < 64) << (square & 63)


@leaf
def high_bit(square):
    """The bit of one of the squares 64 to 89, in the second word; a bit that is no square's for NO_SQUARE."""
    return int64(square >= 64) << (square & 63)


@leaf
def is_among(low, high, square):
    """Whether the set of squares in the two words holds the square."""
    return ((low if square < 64 else high) >> (square & 63)) & 1 != 0


@leaf
def _checker_on_line(position, king, enemy, is_file):
    """(square of a checker on the king's file or rank, square of its screen), NO_SQUARE for none."""
    board = position.board
    line = file_line(position, king) if is_file else rank_line(position, king)
    step = FILES if is_file else 1
    start = king - (int64(RANK_OF[king]) * FILES if is_file else int64(FILE_OF[king]))
    pawns_above = position.side == WHITE
    for is_above in range(2):
        nearest = start + ((line >> 4 * is_above) & 15) * step
        piece = int64(board[nearest]) - enemy
        is_next = nearest == king + (step if is_above else -step)
        if (
            is_rook(piece)
            or (is_file and piece == KING)
            or (is_next and is_pawn(piece) and (not is_file or pawns_above == (is_above == 1)))
        ):
            return nearest, int64(NO_SQUARE)
        second = start + ((line >> (8 + 4 * is_above)) & 15) * step
        if is_cannon(int64(board[second]) - enemy):
            return second, nearest
    return int64(NO_SQUARE), int64(NO_SQUARE)


@leaf
def evasion_squares(position):
    """(low, high, screen) for one piece that gives check to the side to move, which stands in check.

    Only a move of the king, a move to one of the squares of the bits `low` and `high`, or a move from `screen` can
    end that check.
    """
    king = int64(position.square_of[position.side * PIECES_PER_SIDE])
    enemy = PIECES_PER_SIDE - position.side * PIECES_PER_SIDE
    for knight in (enemy + FIRST_KNIGHT, enemy + FIRST_KNIGHT + 1):
        square = int64(position.square_of[knight])
        if square != NO_SQUARE:
            leg = int64(KNIGHT_LEG_TOWARDS[king * SQUARES + square])
            if leg != NO_SQUARE and position.board[leg] == EMPTY:
                return low_bit(square) | low_bit(leg), high_bit(square) | high_bit(leg), int64(NO_SQUARE)
    step = 1
    checker, screen = _checker_on_line(position, king, enemy, False)
    if checker == NO_SQUARE:
        step = FILES
        checker, screen = _checker_on_line(position, king, enemy, True)
    if checker < king:
        step = -step
    low = int64(0)
    high = int64(0)
    for square in range(king + step, checker + step, step):
        low |= low_bit(square)
        high |= high_bit(square)
    return low, high, screen


@leaf
def touches_king(king, move):
    """Whether a move that is not the king's own can open or close an attack on a king on `king`."""
    return (KING_SENSITIVE[king * SQUARES + origin_of(move)] | KING_SENSITIVE[king * SQUARES + target_of(move)]) != 0


@leaf
def leaves_king_attacked(position, move):
    """Whether the side to move would stand in check after its pseudo-legal move."""
    side = position.side
    captured = move_piece(position, move)
    attacked = king_attacked(position, side)
    unmove_piece(position, move, captured)
    return attacked


@leaf
def needs_legality_test(position, move, in_check):
    """Whether a pseudo-legal move of the side to move may be illegal at all."""
    king = int64(position.square_of[position.side * PIECES_PER_SIDE])
    return in_check or origin_of(move) == king or touches_king(king, move)


@leaf
def is_legal(position, move, in_check):
    """Whether a pseudo-legal move of the side to move is legal; `in_check` of the position before it."""
    return not (needs_legality_test(position, move, in_check) and leaves_king_attacked(position, move))


@leaf
def may_give_check(king, piece, move):
    """Whether a move of `piece` can attack a king on `king` at all, by itself or by discovery."""
    if touches_king(king, move):
        return True
    if KNIGHT_LEG_TOWARDS[king * SQUARES + target_of(move)] == NO_SQUARE:
        return False
    return FIRST_KNIGHT <= piece & (PIECES_PER_SIDE - 1) < FIRST_ROOK


@leaf
def gives_check(position, move):
    """Whether a legal move of the side to move attacks the other king."""
    other = 1 - position.side
    king = int64(position.square_of[other * PIECES_PER_SIDE])
    if not may_give_check(king, int64(position.board[origin_of(move)]), move):
        return False
    captured = move_piece(position, move)
    check = king_attacked(position, other)
    unmove_piece(position, move, captured)
    return check


@leaf
def gave_check(position, piece, move):
    """Whether the move of `piece` just made, from a position in which it was legal, attacks the side to move."""
    king = int64(position.square_of[position.side * PIECES_PER_SIDE])
    return may_give_check(king, piece, move) and king_attacked(position, position.side)
