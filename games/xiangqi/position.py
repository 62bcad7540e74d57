"""The position record, and the kernels that change it: make and unmake a move, pass, set up.

POSITION
    board      [90] u1   identity of the piece on each square, EMPTY for none
    square_of  [33] u1   square of each identity, NO_SQUARE once captured; entry EMPTY is scratch
    ranks      [10] u2   occupancy of each rank, bit = file
    files      [9]  u2   occupancy of each file, bit = rank
    side       u1        side to move
    key        i8        Zobrist key of placement and side to move
    material   i8        number of pieces, four bits for each side and kind: `piece_count`

The record holds what a move generator needs and no history: counters and past keys belong to whoever walks
a line of moves (the search, or a Game).
"""

import numpy as np
from numba import int64

from games.jit import leaf
from games.xiangqi.geometry import (
    CANNON,
    EMPTY,
    FILE_OF,
    FILES,
    KINDS,
    KNIGHT,
    MOVE_SHIFT,
    NO_SQUARE,
    PIECES,
    RANK_OF,
    RANKS,
    ROOK,
    SQUARE_MASK,
    SQUARES,
)
from games.xiangqi.tables import MATERIAL_BITS, MATERIAL_UNIT, ZOBRIST, ZOBRIST_SIDE

POSITION = np.dtype(
    [
        ("board", "u1", (SQUARES,)),
        ("square_of", "u1", (PIECES + 1,)),
        ("ranks", "u2", (RANKS,)),
        ("files", "u2", (FILES,)),
        ("side", "u1"),
        ("key", "i8"),
        ("material", "i8"),
    ],
    align=True,
)


def set_up(pieces: dict[int, int], side: int) -> np.ndarray:
    """A POSITION record array of shape [1] from a mapping of identity to square."""
    position = np.zeros(1, POSITION)
    record = position[0]
    record["board"] = EMPTY
    record["square_of"] = NO_SQUARE
    for piece, square in pieces.items():
        record["board"][square] = piece
        record["square_of"][piece] = square
        record["ranks"][square // FILES] |= 1 << (square % FILES)
        record["files"][square % FILES] |= 1 << (square // FILES)
        record["material"] += MATERIAL_UNIT[piece]
        record["key"] ^= ZOBRIST[piece * SQUARES + square]
    record["side"] = side
    if side:
        record["key"] ^= ZOBRIST_SIDE
    return position


@leaf
def origin_of(move):
    """Square from which a move goes. The mask tells the compiler that no index made of it is negative."""
    return move & SQUARE_MASK


@leaf
def target_of(move):
    return (move >> MOVE_SHIFT) & SQUARE_MASK


@leaf
def count_in(material, side, kind):
    """Number of pieces of one side and kind, from the material word."""
    return (material >> (MATERIAL_BITS * (side * KINDS + kind))) & ((1 << MATERIAL_BITS) - 1)


@leaf
def piece_count(position, side, kind):
    return count_in(position.material, side, kind)


@leaf
def rook_count(position, side):
    return piece_count(position, side, int64(ROOK))


@leaf
def minor_count(position, side):
    """Number of knights and cannons of one side."""
    return piece_count(position, side, int64(KNIGHT)) + piece_count(position, side, int64(CANNON))


@leaf
def move_piece(position, move):
    """Move a piece without touching key, material or side; returns the identity captured, or EMPTY."""
    origin = origin_of(move)
    target = target_of(move)
    board = position.board
    piece = int64(board[origin])
    captured = int64(board[target])
    board[origin] = EMPTY
    board[target] = piece
    position.square_of[captured] = NO_SQUARE
    position.square_of[piece] = target
    origin_file = int64(FILE_OF[origin])
    origin_rank = int64(RANK_OF[origin])
    target_file = int64(FILE_OF[target])
    target_rank = int64(RANK_OF[target])
    position.ranks[origin_rank] ^= 1 << origin_file
    position.files[origin_file] ^= 1 << origin_rank
    position.ranks[target_rank] |= 1 << target_file
    position.files[target_file] |= 1 << target_rank
    return captured


@leaf
def unmove_piece(position, move, captured):
    """Inverse of `move_piece`."""
    origin = origin_of(move)
    target = target_of(move)
    board = position.board
    piece = int64(board[target])
    board[origin] = piece
    board[target] = captured
    position.square_of[piece] = origin
    position.square_of[captured] = target
    origin_file = int64(FILE_OF[origin])
    origin_rank = int64(RANK_OF[origin])
    position.ranks[origin_rank] |= 1 << origin_file
    position.files[origin_file] |= 1 << origin_rank
    if captured == EMPTY:
        target_file = int64(FILE_OF[target])
        target_rank = int64(RANK_OF[target])
        position.ranks[target_rank] ^= 1 << target_file
        position.files[target_file] ^= 1 << target_rank


@leaf
def move_key(piece, captured, move):
    """What a move changes in the Zobrist key, apart from the side to move."""
    origin = origin_of(move)
    target = target_of(move)
    return ZOBRIST[piece * SQUARES + origin] ^ ZOBRIST[piece * SQUARES + target] ^ ZOBRIST[captured * SQUARES + target]


@leaf
def key_after(position, move):
    """Zobrist key of the position after a pseudo-legal move."""
    piece = int64(position.board[origin_of(move)])
    captured = int64(position.board[target_of(move)])
    return position.key ^ move_key(piece, captured, move) ^ ZOBRIST_SIDE


@leaf
def make_move(position, move):
    """Play a pseudo-legal move; returns the identity captured, or EMPTY."""
    piece = int64(position.board[origin_of(move)])
    captured = move_piece(position, move)
    position.key ^= move_key(piece, captured, move) ^ ZOBRIST_SIDE
    position.material -= MATERIAL_UNIT[captured]
    position.side = 1 - position.side
    return captured


@leaf
def unmake_move(position, move, captured):
    """Take back a move that `make_move` played and answered with `captured`."""
    piece = int64(position.board[target_of(move)])
    unmove_piece(position, move, captured)
    position.key ^= move_key(piece, captured, move) ^ ZOBRIST_SIDE
    position.material += MATERIAL_UNIT[captured]
    position.side = 1 - position.side


@leaf
def pass_move(position):
    """Give the move to the other side; its own inverse."""
    position.key ^= ZOBRIST_SIDE
    position.side = 1 - position.side
