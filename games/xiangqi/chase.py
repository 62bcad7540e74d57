"""Threats in the sense of the rule against perpetual chase: which enemy pieces a side could take with profit.

Chasers are rooks, knights, cannons, advisors and elephants. A piece is threatened if a chaser could legally take it and

    it is worth more by its kind (a rook to a knight or cannon; a rook, knight or cannon to an advisor or elephant),
    or the enemy could not legally take back, and it is not of the chaser's own kind and could have taken first.

Kings are never threatened, nor are pawns that have not crossed the river. A chaser that shields its own king counts
only against the pieces that pin it.

Sets of pieces are words with one bit for each identity.
"""

from numba import int64

from games.jit import kernel, leaf, routine
from games.memory import load_i32
from games.xiangqi.attacks import leaves_king_attacked
from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    CANNON,
    EMPTY,
    FILE_OF,
    FILES,
    KIND_OF,
    KING,
    KNIGHT,
    MOVE_SHIFT,
    NO_SQUARE,
    PAWN,
    PIECES_PER_SIDE,
    RANK_OF,
    ROOK,
    SQUARES,
    WHITE,
)
from games.xiangqi.movegen import generate_captures, is_pseudo_legal
from games.xiangqi.position import make_move, origin_of, target_of, unmake_move
from games.xiangqi.tables import KNIGHT_LEG_TOWARDS


@leaf
def _stands_as_sniper(position, piece, king):
    """Whether an enemy rook, cannon or king is in line with the king's square, or a knight a jump from it."""
    square = int64(position.square_of[piece])
    if square == NO_SQUARE:
        return False
    kind = int64(KIND_OF[piece])
    if kind == KNIGHT:
        return KNIGHT_LEG_TOWARDS[king * SQUARES + square] != NO_SQUARE
    if kind == ROOK or kind == CANNON or kind == KING:
        return RANK_OF[square] == RANK_OF[king] or FILE_OF[square] == FILE_OF[king]
    return False


@leaf
def _shields_against(position, sniper, king, transparent):
    """The pieces that keep a sniper from the king, so that one of them may not leave; no set if others do, too."""
    board = position.board
    square = int64(position.square_of[sniper])
    kind = int64(KIND_OF[sniper])
    if kind == KNIGHT:
        leg = int64(board[int64(KNIGHT_LEG_TOWARDS[king * SQUARES + square])])
        return int64(0) if leg == EMPTY else int64(1) << leg & ~transparent
    step = int64(1) if RANK_OF[square] == RANK_OF[king] else int64(FILES)
    shields = int64(0)
    count = 0
    for between in range(min(square, king) + step, max(square, king), step):
        piece = int64(board[between])
        if piece != EMPTY and (kind == CANNON or (transparent >> piece) & 1 == 0):
            shields |= int64(1) << piece
            count += 1
    return shields if count == (2 if kind == CANNON else 1) else int64(0)


@leaf
def _shields_and_pinners(position, side):
    """(shields of the king of `side`, of either side; enemy pieces that pin a piece of `side`)."""
    king = int64(position.square_of[side * PIECES_PER_SIDE])
    enemy = PIECES_PER_SIDE - side * PIECES_PER_SIDE
    transparent = int64(0)
    for piece in range(enemy, enemy + PIECES_PER_SIDE):
        if KIND_OF[piece] != CANNON and _stands_as_sniper(position, piece, king):
            transparent |= int64(1) << piece
    own = int64(0xFFFF) << (side * PIECES_PER_SIDE)
    shields = int64(0)
    pinners = int64(0)
    for piece in range(enemy, enemy + PIECES_PER_SIDE):
        if _stands_as_sniper(position, piece, king):
            found = _shields_against(position, piece, king, transparent)
            shields |= found
            if found & own:
                pinners |= int64(1) << piece
    return shields, pinners


@leaf
def _is_worth_more(kind, victim):
    """Whether a chaser of a kind may take a kind of piece though it is guarded."""
    if kind == KNIGHT or kind == CANNON:
        return victim == ROOK
    if kind == ADVISOR or kind == BISHOP:
        return victim == ROOK or victim == KNIGHT or victim == CANNON
    return False


@leaf
def _is_guarded(position, move, moves, count):
    """Whether the other side could legally take back after the capture `move` of the side to move."""
    target = target_of(move)
    captured = make_move(position, move)
    guarded = False
    end = generate_captures(position, moves, count)
    for i in range(count, end):
        answer = int64(load_i32(moves, i))
        if target_of(answer) == target and not leaves_king_attacked(position, answer):
            guarded = True
            break
    unmake_move(position, move, captured)
    return guarded


@leaf
def _could_take_first(position, move):
    """Whether the piece that `move` captures could, were it its turn, legally capture the capturer."""
    answer = target_of(move) | origin_of(move) << MOVE_SHIFT
    position.side = 1 - position.side
    could = is_pseudo_legal(position, answer) and not leaves_king_attacked(position, answer)
    position.side = 1 - position.side
    return could


@leaf
def _is_threat(position, move, shields, pinners, moves, count):
    """Whether a pseudo-legal capture of the side to move is a threat."""
    piece = int64(position.board[origin_of(move)])
    victim = int64(position.board[target_of(move)])
    kind = int64(KIND_OF[piece])
    victim_kind = int64(KIND_OF[victim])
    if kind == KING or kind == PAWN or victim_kind == KING:
        return False
    if (shields >> piece) & 1:
        if (pinners >> victim) & 1 == 0:
            return False
    elif victim_kind == PAWN:
        has_crossed = (target_of(move) < SQUARES // 2) == (position.side == WHITE)
        if not has_crossed:
            return False
    if leaves_king_attacked(position, move):
        return False
    if _is_worth_more(kind, victim_kind):
        return True
    if _is_guarded(position, move, moves, count):
        return False
    return kind != victim_kind or not _could_take_first(position, move)


@routine
def threatened_by(position, side, moves, count):
    """The set of pieces that `side` threatens, whoever is to move; moves[count:] is scratch."""
    to_move = position.side
    position.side = side
    shields, pinners = _shields_and_pinners(position, side)
    end = generate_captures(position, moves, count)
    threatened = int64(0)
    for i in range(count, end):
        move = int64(load_i32(moves, i))
        if _is_threat(position, move, shields, pinners, moves, end):
            threatened |= int64(1) << int64(position.board[target_of(move)])
    position.side = to_move
    return threatened


@kernel
def threatened_kernel(position, side, moves):
    return threatened_by(position, int64(side), moves, int64(0))
