"""Positions in bulk: arrays of PACKED records, 36 bytes each, as they travel to batched evaluators.

PACKED
    square_of   [32] u1   square of each identity, NO_SQUARE for a piece that is gone: the piece list
    side        u1        side to move
    in_check    u1        whether the side to move is in check
    rule60      u2        counter of the 60-move rule
"""

from collections.abc import Iterable

import numpy as np
from numba import int64

from games.jit import kernel, leaf
from games.xiangqi.attacks import king_attacked
from games.xiangqi.fen import ParsedFen, PositionError, parse_fen
from games.xiangqi.geometry import EMPTY, FILE_OF, FILES, NO_SQUARE, PIECES, PIECES_PER_SIDE, RANK_OF, RANKS, SQUARES
from games.xiangqi.movegen import in_check_kernel
from games.xiangqi.position import POSITION
from games.xiangqi.tables import MATERIAL_UNIT

PACKED = np.dtype([("square_of", "u1", (PIECES,)), ("side", "u1"), ("in_check", "u1"), ("rule60", "u2")])


@leaf
def unpack_pieces(packed, position):
    """Set piece list, side and material of a POSITION record, and leave its board and occupancy as they are."""
    material = int64(0)
    for piece in range(PIECES):
        square = packed.square_of[piece]
        position.square_of[piece] = square
        if square != NO_SQUARE:
            material += MATERIAL_UNIT[piece]
    position.side = packed.side
    position.material = material


@leaf
def unpack(packed, position):
    """Set up a POSITION record from a PACKED one, all but its key."""
    board = position.board
    for square in range(SQUARES):
        board[square] = EMPTY
    for rank in range(RANKS):
        position.ranks[rank] = 0
    for file in range(FILES):
        position.files[file] = 0
    for piece in range(PIECES):
        square = int64(packed.square_of[piece])
        if square != NO_SQUARE:
            rank = int64(RANK_OF[square])
            file = int64(FILE_OF[square])
            board[square] = piece
            position.ranks[rank] |= 1 << file
            position.files[file] |= 1 << rank
    unpack_pieces(packed, position)


@kernel
def _find_checks(packed, position):
    """Set in_check of every record; `position` is scratch."""
    for i in range(len(packed)):
        unpack(packed[i], position)
        packed[i].in_check = king_attacked(position, int64(packed[i].side))


def pack(parsed: Iterable[ParsedFen]) -> np.ndarray:
    """[n] PACKED."""
    parsed = list(parsed)
    packed = np.zeros(len(parsed), PACKED)
    for record, one in zip(packed, parsed, strict=True):
        record["square_of"] = one.position["square_of"][0, :PIECES]
        record["side"] = one.position["side"][0]
        record["in_check"] = in_check_kernel(one.position[0])
        record["rule60"] = one.rule60
    return packed


def pack_position(position: np.ndarray, rule60: int = 0) -> np.ndarray:
    """[1] PACKED from a POSITION array [1]."""
    packed = np.zeros(1, PACKED)
    packed["square_of"] = position["square_of"][:, :PIECES]
    packed["side"] = position["side"]
    packed["in_check"] = in_check_kernel(position[0])
    packed["rule60"] = rule60
    return packed


def pack_fens(fens: Iterable[str], first_number: int = 0) -> np.ndarray:
    """[n] PACKED from FENs; PositionError, which names its number, for the first that is refused."""
    parsed = []
    for number, fen in enumerate(fens, first_number):
        try:
            parsed.append(parse_fen(fen))
        except PositionError as error:
            raise PositionError(f"Position {number}, '{fen}': {error}") from error
    return pack(parsed)


def pack_piece_lists(square_of: np.ndarray, side: np.ndarray, rule60: np.ndarray | int = 0) -> np.ndarray:
    """[n] PACKED from piece lists: [n, 32] squares by identity, NO_SQUARE for none, [n] sides to move, [n] counters.

    The lists must describe legal positions. Both kings are looked for, and every square must be one; the other rules
    of a FEN are not checked.
    """
    square_of = np.asarray(square_of)
    if square_of.ndim != 2 or square_of.shape[1] != PIECES:
        raise PositionError(f"The piece lists have shape {square_of.shape}; expected [n, {PIECES}].")
    if ((square_of >= SQUARES) & (square_of != NO_SQUARE)).any():
        raise PositionError(f"A piece list names a square above {SQUARES - 1} that is not {NO_SQUARE}, for none.")
    if (square_of[:, ::PIECES_PER_SIDE] == NO_SQUARE).any():
        raise PositionError("A piece list has no king; expected identities 0 and 16 on the board.")
    packed = np.zeros(len(square_of), PACKED)
    packed["square_of"] = square_of
    packed["side"] = side
    packed["rule60"] = rule60
    _find_checks(packed, np.zeros(1, POSITION)[0])
    return packed


def position_of(packed) -> np.ndarray:
    """A POSITION array [1] from a PACKED record, without its key."""
    position = np.zeros(1, POSITION)
    position["square_of"] = NO_SQUARE
    _unpack_one(packed, position[0])
    return position


@kernel
def _unpack_one(packed, position):
    unpack(packed, position)
