"""Which threat features exist: a piece that attacks a square on which another stands, seen from a perspective.

A threat is (attacker, from, to, victim), pieces and squares oriented as in `features`. Both pieces may belong to
either side: an attack on a piece of one's own side defends it. No feature has the own king as attacker, and none
an attack on the king of the other side.

Of two pieces of one kind that attack each other only the threat from the higher square has a feature, since the other
is implied: "twins". Of pawns only those are twins that always attack each other: opposing ones on a file, and own ones
on a rank.

Features are numbered by attacker, from, victim, to: pieces in the order of features.ORDER, own ones first, squares
ascending.
"""

from functools import cache

import numpy as np

from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    CANNON,
    FILE_OF,
    FILES,
    KIND_LETTERS,
    KINDS,
    KING,
    KNIGHT,
    PAWN,
    RANK_OF,
    ROOK,
    SQUARES,
    WHITE,
)
from games.xiangqi.tables import (
    ADVISOR_ROWS,
    BISHOP_ROWS,
    KING_ROWS,
    KNIGHT_ROWS,
    LEAP_TARGET_SETS,
    PAWN_ROWS,
    SQUARE_SET_SPLIT,
)
from nnue_jax.architecture import THREAT_FEATURES
from nnue_jax.features import ORDER, feature_squares

# Victims of an own attacker (capital key) and of an opposing one; capital victims are own pieces.
VICTIMS = {
    **dict.fromkeys("RCN", "RACPNBKracpnb"),
    "A": "RACNrcpn",
    "P": "CPNBacpnb",
    "B": "RCPNBKrcpn",
    "K": "",
    **dict.fromkeys("rcn", "RACPNBracpnbk"),
    "a": "RCPNracnk",
    "p": "ACPNBcpnb",
    "b": "RCPNrcpnbk",
    "k": "CPNacnb",
}
PIECE_CODES = 2 * KINDS  # kind, and KINDS more for an opposing piece
NO_FEATURE = THREAT_FEATURES


def oriented_code(own: bool, kind: int) -> int:
    """Number 0 ... 13 of an oriented piece."""
    return kind if own else KINDS + kind


def _letter(code: int) -> str:
    letter = KIND_LETTERS[code % KINDS]
    return letter if code < KINDS else letter.lower()


def _leaps(row: int) -> set[int]:
    low, high = (int(word) & (1 << 64) - 1 for word in LEAP_TARGET_SETS[2 * row : 2 * row + 2])
    bits = low | high << SQUARE_SET_SPLIT
    return {square for square in range(SQUARES) if bits >> square & 1}


def reach(code: int, square: int) -> set[int]:
    """Squares that an oriented piece attacks from `square` with some other pieces on the board."""
    kind = code % KINDS
    if kind in (ROOK, CANNON):
        least = 1 if kind == ROOK else 2
        file, rank = square % FILES, square // FILES
        return {s for s in range(SQUARES) if s % FILES == file and abs(s // FILES - rank) >= least} | {
            s for s in range(SQUARES) if s // FILES == rank and abs(s % FILES - file) >= least
        }
    side = WHITE if code < KINDS else 1 - WHITE
    rows = {
        KING: KING_ROWS,
        ADVISOR: ADVISOR_ROWS,
        BISHOP: BISHOP_ROWS,
        KNIGHT: KNIGHT_ROWS,
        PAWN: PAWN_ROWS + side * SQUARES,
    }
    return _leaps(rows[kind] + square)


def is_twin(attacker: int, victim: int, origin: int, target: int) -> bool:
    """Whether the same threat exists in the other direction."""
    kind = attacker % KINDS
    if kind != victim % KINDS or kind == KNIGHT:
        return False
    if kind != PAWN:
        return True
    same_side = attacker == victim
    return RANK_OF[origin] == RANK_OF[target] if same_side else FILE_OF[origin] == FILE_OF[target]


def _codes_in_order() -> list[int]:
    return [oriented_code(own, kind) for own in (True, False) for kind in ORDER]


@cache
def threat_indices() -> dict[tuple[int, int, int, int], int]:
    """(attacker, from, to, victim), oriented, -> 0 ... T - 1; threats without a feature are missing."""
    squares = {code: feature_squares(code < KINDS, code % KINDS) for code in range(PIECE_CODES)}
    indices: dict[tuple[int, int, int, int], int] = {}
    for attacker in _codes_in_order():
        for origin in squares[attacker]:
            reached = reach(attacker, origin)
            for victim in _codes_in_order():
                if _letter(victim) not in VICTIMS[_letter(attacker)]:
                    continue
                for target in squares[victim]:
                    if target not in reached:
                        continue
                    if is_twin(attacker, victim, origin, target) and origin <= target:
                        continue
                    indices[attacker, origin, target, victim] = len(indices)
    assert len(indices) == THREAT_FEATURES
    return indices


@cache
def threat_table() -> np.ndarray:
    """[14, 90, 90, 14] uint16: `threat_indices` by attacker, from, to, victim; NO_FEATURE where there is none."""
    table = np.full((PIECE_CODES, SQUARES, SQUARES, PIECE_CODES), NO_FEATURE, np.uint16)
    indices = threat_indices()
    table[tuple(np.array(list(indices)).T)] = list(indices.values())
    return table
