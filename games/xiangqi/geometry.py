"""The board and the pieces in numbers: squares, sides, piece kinds and identities, moves.

        a  b  c  d  e  f  g  h  i
    9  81 82 83 84 85 86 87 88 89    Black's back rank
    8  72 73 74 75 76 77 78 79 80
    7  63 64 65 66 67 68 69 70 71
    6  54 55 56 57 58 59 60 61 62
    5  45 46 47 48 49 50 51 52 53    --- river
    4  36 37 38 39 40 41 42 43 44
    3  27 28 29 30 31 32 33 34 35
    2  18 19 20 21 22 23 24 25 26
    1   9 10 11 12 13 14 15 16 17
    0   0  1  2  3  4  5  6  7  8    White's (Red's) back rank

A square is rank * 9 + file. Every piece on the board has an identity of its own, which it keeps as
it moves: White's are 0 to 15, Black's 16 to 31, in the order K A A B B N N R R C C P P P P P.
An empty square holds the identity EMPTY, and a captured piece stands on NO_SQUARE.

A move is origin | target << 7. NO_MOVE, a piece that stays where it is, means "none".
"""

import numpy as np

FILES, RANKS = 9, 10
SQUARES = FILES * RANKS
NO_SQUARE = 255

WHITE, BLACK = 0, 1

KING, ADVISOR, BISHOP, KNIGHT, ROOK, CANNON, PAWN = range(7)
KINDS = 7
KIND_LETTERS = "KABNRCP"
KIND_NAMES = ("king", "advisor", "bishop", "knight", "rook", "cannon", "pawn")

PIECES_PER_SIDE = 16
PIECES = 2 * PIECES_PER_SIDE
EMPTY = PIECES
# First identity of each kind, before the side's offset, and one past the last kind's.
FIRST_OF_KIND = (0, 1, 3, 5, 7, 9, 11, PIECES_PER_SIDE)
MAX_OF_KIND = tuple(FIRST_OF_KIND[kind + 1] - FIRST_OF_KIND[kind] for kind in range(KINDS))
NO_KIND = KINDS

_KINDS_OF_ONE_SIDE = np.repeat(np.arange(KINDS), MAX_OF_KIND)
# [33] uint8: kind of each identity; NO_KIND for EMPTY.
KIND_OF = np.concatenate([_KINDS_OF_ONE_SIDE, _KINDS_OF_ONE_SIDE, [NO_KIND]]).astype(np.uint8)

# [90] uint8
RANK_OF = (np.arange(SQUARES) // FILES).astype(np.uint8)
FILE_OF = (np.arange(SQUARES) % FILES).astype(np.uint8)

MOVE_SHIFT = 7
SQUARE_MASK = (1 << MOVE_SHIFT) - 1
NO_MOVE = 0

FILE_LETTERS = "abcdefghi"


def square_name(square: int) -> str:
    """`a0` ... `i9`."""
    return f"{FILE_LETTERS[square % FILES]}{square // FILES}"


def parse_square(name: str) -> int:
    """Inverse of `square_name`; ValueError for anything but `a0` ... `i9`."""
    if len(name) != 2 or name[0] not in FILE_LETTERS or name[1] not in "0123456789":
        raise ValueError(f"'{name}' is not a square; expected a file a to i and a rank 0 to 9.")
    return int(name[1]) * FILES + FILE_LETTERS.index(name[0])


def move_text(move: int) -> str:
    """UCI text of a move, such as `h2e2`; `(none)` for NO_MOVE."""
    if move == NO_MOVE:
        return "(none)"
    return square_name(move & SQUARE_MASK) + square_name(move >> MOVE_SHIFT)


def parse_move(text: str) -> int:
    """The move that `text`, such as `h2e2`, spells; ValueError if it spells none."""
    if len(text) != 4:
        raise ValueError(f"'{text}' is not a move; expected two squares, such as h2e2.")
    return parse_square(text[:2]) | parse_square(text[2:]) << MOVE_SHIFT


def standing_squares(kind: int) -> list[int]:
    """Squares, ascending, on which a white piece of this kind can ever stand."""
    if kind == KING:
        return [rank * FILES + file for rank in range(3) for file in range(3, 6)]
    if kind == ADVISOR:
        return [parse_square(name) for name in ("d0", "f0", "e1", "d2", "f2")]
    if kind == BISHOP:
        return [parse_square(name) for name in ("c0", "g0", "a2", "e2", "i2", "c4", "g4")]
    if kind == PAWN:
        return [s for s in range(SQUARES) if s // FILES >= 5 or (s // FILES >= 3 and s % FILES % 2 == 0)]
    return list(range(SQUARES))


def flip_ranks(square: int) -> int:
    """The square as the other side sees it: ranks mirrored, files kept."""
    return (RANKS - 1 - square // FILES) * FILES + square % FILES
