"""Which piece-square features (HalfKAv2_hm) exist, and the buckets that select weights.

Everything is seen from a perspective, one of the two sides. For Black ranks are flipped and colours swapped,
and if the perspective is mirrored files are flipped too; so an oriented piece is "own", going up the board,
or "opposing", and the own king stands on file d or e.

A feature is bucket * 689 + local index of (oriented piece, oriented square). The local index counts the
pairs in the order of ORDER, each with the squares the piece can stand on, ascending.

bucket = 4 * king bucket + attack bucket. The king bucket is 2 * rank of the own king + (it is on the e-file);
the attack bucket is 2 * (own side has a rook) + (own side has a knight or cannon).
"""

import numpy as np

from games.xiangqi.geometry import (
    FILES,
    KIND_LETTERS,
    KING,
    RANKS,
    WHITE,
    flip_ranks,
    standing_squares,
)
from nnue_jax.architecture import PIECE_SQUARES

D_FILE, E_FILE, F_FILE = 3, 4, 5

# Kinds in the order in which features are numbered: R A C P N B K, own pieces first.
ORDER = tuple(KIND_LETTERS.index(letter) for letter in "RACPNBK")

# Mid-mirror. Each side has a 64-bit code that starts from MIRROR_BASE; a piece off the e-file adds its term on
# files a to d and subtracts it on f to i. The term counts the piece and describes its square in two bit fields,
# at the shifts given here. Bit 63 tells whether the king is on the e-file.
MIRROR_BASE = 0xA4A92A74E989D3A7
MIRROR_SHIFTS = {  # kind letter: (count, square)
    "R": (44, 0),
    "C": (47, 7),
    "N": (50, 14),
    "P": (53, 21),
    "B": (57, 29),
    "A": (60, 36),
}
KING_ON_E_FILE = 1 << 63


def feature_squares(own: bool, kind: int) -> list[int]:
    """Oriented squares, ascending, that have a feature for an oriented piece."""
    squares = standing_squares(kind)
    if not own:
        return sorted(map(flip_ranks, squares))
    if kind == KING:
        return [square for square in squares if square % FILES != F_FILE]
    return squares


def local_indices() -> dict[tuple[bool, int, int], int]:
    """(own, kind, oriented square) -> 0 ... 688."""
    triples = [(own, kind, square) for own in (True, False) for kind in ORDER for square in feature_squares(own, kind)]
    assert len(triples) == PIECE_SQUARES
    return {triple: index for index, triple in enumerate(triples)}


def mirror_term(side: int, kind: int, square: int) -> int:
    """What a piece adds to its side's mid-mirror code, modulo 2**64."""
    file = square % FILES
    if kind == KING:
        return 0 if file == E_FILE else KING_ON_E_FILE
    if file == E_FILE:
        return 0
    rank = square // FILES if side == WHITE else RANKS - 1 - square // FILES
    column = min(file, FILES - 1 - file)
    count_shift, square_shift = MIRROR_SHIFTS[KIND_LETTERS[kind]]
    term = (1 << count_shift) + ((3 - column) * RANKS + rank << square_shift)
    return term if file < E_FILE else -term


def layer_stack_of(rooks: tuple[int, int], minors: tuple[int, int]) -> int:
    """Layer stack 0 ... 15 from the numbers of rooks, and of knights and cannons, of (side to move, other)."""
    if rooks[0] == rooks[1]:
        return 4 * rooks[0] + 2 * (sum(minors) >= 4) + (minors[0] == minors[1])
    if rooks == (2, 1):
        return 12
    if rooks == (1, 2):
        return 13
    return 14 if rooks[1] == 0 else 15


def layer_stack_table() -> np.ndarray:
    """[3 * 3 * 5 * 5] int64: layer_stack_of by ((rooks us * 3 + rooks them) * 5 + minors us) * 5 + minors them."""
    return np.array(
        [
            layer_stack_of((rooks_us, rooks_them), (minors_us, minors_them))
            for rooks_us in range(3)
            for rooks_them in range(3)
            for minors_us in range(5)
            for minors_them in range(5)
        ]
    )
