"""Look-up tables for the kernels, flat because a flat table costs one multiplication less.

Lines. The occupancy of a rank is a word of 9 bits (bit = file), that of a file a word of 10 bits (bit =
rank). RANK_LINES[file * 512 + occupancy] and FILE_LINES[rank * 1024 + occupancy] describe the line
through a coordinate c in six fields of four bits, all coordinates on that line:

    bits  0-3   nearest piece below c       bits  4-7   nearest piece above c
    bits  8-11  second piece below c        bits 12-15  second piece above c
    bits 16-19  lowest square reached       bits 20-23  highest square reached by quiet moves

A piece that is not there is given as c itself: the square then holds the mover, never an enemy, so one
test covers "no target". The second pieces are what a cannon captures.

Leapers. The moves of kings, advisors, bishops, knights and pawns stand in one table of rows of fixed
length: the row of a king on s starts at KING_LEAPS + s * SHORT_ROW, and so on. A row that is not full is
filled up with s itself, where the mover stands, so that it need not be recognised. LEAP_BLOCKERS holds, at the
same place, the knight's leg or the bishop's eye that must be empty.
"""

import numpy as np

from games.xiangqi.geometry import (
    BLACK,
    EMPTY,
    FILE_OF,
    FILES,
    KIND_OF,
    KINDS,
    NO_SQUARE,
    PIECES,
    PIECES_PER_SIDE,
    RANK_OF,
    RANKS,
    SQUARES,
    WHITE,
)

RANK_OCCUPANCIES = 1 << FILES
FILE_OCCUPANCIES = 1 << RANKS

SHORT_ROW = 4  # king, advisor, bishop
KNIGHT_ROW = 8
PAWN_ROW = 3

_ORTHOGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1))
_DIAGONAL = ((1, 1), (-1, 1), (1, -1), (-1, -1))


def _line_table(length: int) -> np.ndarray:
    """[length * 2**length] uint32, laid out as the head of this file says."""
    occupancy = np.arange(1 << length)
    rows = []
    for origin in range(length):
        below, second_below, lowest = _look(occupancy, origin, range(origin - 1, -1, -1))
        above, second_above, highest = _look(occupancy, origin, range(origin + 1, length))
        fields = (below, above, second_below, second_above, lowest, highest)
        rows.append(sum(field << (4 * place) for place, field in enumerate(fields)))
    return np.concatenate(rows).astype(np.uint32)


def _look(occupancy, origin, coordinates):
    """First and second piece and last empty square met on the way along `coordinates`."""
    first = np.full_like(occupancy, origin)
    second = first.copy()
    reached = first.copy()
    met = np.zeros_like(occupancy)
    for coordinate in coordinates:
        occupied = occupancy >> coordinate & 1
        first[(met == 0) & (occupied == 1)] = coordinate
        second[(met == 1) & (occupied == 1)] = coordinate
        met += occupied
        reached[met == 0] = coordinate
    return first, second, reached


def _rows(width: int, squares_from) -> np.ndarray:
    """[90 * width] uint8: row s holds the list squares_from(s), filled up with s."""
    table = np.repeat(np.arange(SQUARES, dtype=np.uint8)[:, None], width, axis=1)
    for square in range(SQUARES):
        squares = squares_from(square)
        table[square, : len(squares)] = squares
    return table.ravel()


def _in_palace(file: int, rank: int) -> bool:
    return 3 <= file <= 5 and (0 <= rank <= 2 or 7 <= rank <= 9)


def _palace_steps(square: int, steps) -> list[int]:
    file, rank = square % FILES, square // FILES
    if not _in_palace(file, rank):
        return []
    return [(rank + dr) * FILES + file + df for df, dr in steps if _in_palace(file + df, rank + dr)]


def _bishop_jumps(square: int) -> list[tuple[int, int]]:
    """(target, eye) pairs that stay on this side of the river."""
    file, rank = square % FILES, square // FILES
    jumps = []
    for df, dr in _DIAGONAL:
        to_file, to_rank = file + 2 * df, rank + 2 * dr
        if 0 <= to_file < FILES and 0 <= to_rank < RANKS and (to_rank < 5) == (rank < 5):
            jumps.append((to_rank * FILES + to_file, (rank + dr) * FILES + file + df))
    return jumps


def _knight_jumps(square: int) -> list[tuple[int, int]]:
    """(target, leg) pairs; the leg is the square next to the knight."""
    file, rank = square % FILES, square // FILES
    jumps = []
    for df, dr in _ORTHOGONAL:
        for turn in (1, -1):
            to_file, to_rank = file + 2 * df + turn * dr, rank + 2 * dr + turn * df
            if 0 <= to_file < FILES and 0 <= to_rank < RANKS:
                jumps.append((to_rank * FILES + to_file, (rank + dr) * FILES + file + df))
    return jumps


def _pawn_steps(side: int, square: int) -> list[int]:
    file, rank = square % FILES, square // FILES
    forward = 1 if side == WHITE else -1
    steps = [(0, forward)]
    if (rank >= 5) == (side == WHITE):
        steps += [(-1, 0), (1, 0)]
    return [(rank + dr) * FILES + file + df for df, dr in steps if 0 <= file + df < FILES and 0 <= rank + dr < RANKS]


RANK_LINES = _line_table(FILES)
FILE_LINES = _line_table(RANKS)

KING_LEAPS = 0
ADVISOR_LEAPS = KING_LEAPS + SQUARES * SHORT_ROW
BISHOP_LEAPS = ADVISOR_LEAPS + SQUARES * SHORT_ROW
KNIGHT_LEAPS = BISHOP_LEAPS + SQUARES * SHORT_ROW
PAWN_LEAPS = KNIGHT_LEAPS + SQUARES * KNIGHT_ROW  # White's, then Black's
PAWN_LEAPS_OF_SIDE = SQUARES * PAWN_ROW

LEAP_TARGETS = np.concatenate(
    [
        _rows(SHORT_ROW, lambda s: _palace_steps(s, _ORTHOGONAL)),
        _rows(SHORT_ROW, lambda s: _palace_steps(s, _DIAGONAL)),
        _rows(SHORT_ROW, lambda s: [target for target, _ in _bishop_jumps(s)]),
        _rows(KNIGHT_ROW, lambda s: [target for target, _ in _knight_jumps(s)]),
        _rows(PAWN_ROW, lambda s: _pawn_steps(WHITE, s)),
        _rows(PAWN_ROW, lambda s: _pawn_steps(BLACK, s)),
    ]
)
LEAP_BLOCKERS = LEAP_TARGETS.copy()
LEAP_BLOCKERS[BISHOP_LEAPS:PAWN_LEAPS] = np.concatenate(
    [
        _rows(SHORT_ROW, lambda s: [eye for _, eye in _bishop_jumps(s)]),
        _rows(KNIGHT_ROW, lambda s: [leg for _, leg in _knight_jumps(s)]),
    ]
)

# The squares 0 to 63 are bits of the first word of a set of squares, the others bits of the second.
SQUARE_SET_SPLIT = 64


def _target_sets() -> np.ndarray:
    """[rows * 2] int64: the targets of each row of LEAP_TARGETS as a set, without the square that fills it up."""
    widths = [SHORT_ROW] * 3 + [KNIGHT_ROW] + [PAWN_ROW] * 2
    sets = []
    start = 0
    for width in widths:
        for square in range(SQUARES):
            targets = {int(target) for target in LEAP_TARGETS[start : start + width]} - {square}
            bits = sum(1 << target for target in targets)
            sets += [bits & (1 << SQUARE_SET_SPLIT) - 1, bits >> SQUARE_SET_SPLIT]
            start += width
    return np.array(sets, np.uint64).view(np.int64)


LEAP_TARGET_SETS = _target_sets()
# Numbers of the rows of a king, advisor, bishop, knight, White's pawn on square 0.
KING_ROWS, ADVISOR_ROWS, BISHOP_ROWS, KNIGHT_ROWS, PAWN_ROWS = (place * SQUARES for place in range(5))

# [90 * 90] uint8, target * 90 + knight: leg of a knight that attacks `target`; NO_SQUARE if it is no jump away.
KNIGHT_LEG_TOWARDS = np.full((SQUARES, SQUARES), NO_SQUARE, np.uint8)
# [90 * 90] uint8, king * 90 + square: whether a change on `square` can open or close an attack on `king`: it
# is on the king's rank or file, or diagonally next to it, where the legs of attacking knights stand.
KING_SENSITIVE = np.zeros((SQUARES, SQUARES), np.uint8)

for _square in range(SQUARES):
    for _target, _leg in _knight_jumps(_square):
        KNIGHT_LEG_TOWARDS[_target, _square] = _leg
# [90 * 90] uint8, target * 90 + square: which of king, advisor and bishop on `square` steps or jumps to `target`. The
# bishop's eye is the square halfway, (target + square) / 2.
SHORT_LEAPS = np.zeros((SQUARES, SQUARES), np.uint8)
KING_LEAPS_BIT, ADVISOR_LEAPS_BIT, BISHOP_LEAPS_BIT = 1, 2, 4
for _square in range(SQUARES):
    SHORT_LEAPS[_palace_steps(_square, _ORTHOGONAL), _square] |= KING_LEAPS_BIT
    SHORT_LEAPS[_palace_steps(_square, _DIAGONAL), _square] |= ADVISOR_LEAPS_BIT
    SHORT_LEAPS[[target for target, _ in _bishop_jumps(_square)], _square] |= BISHOP_LEAPS_BIT
SHORT_LEAPS = SHORT_LEAPS.ravel()

_file_distance = np.abs(FILE_OF[:, None].astype(int) - FILE_OF)
_rank_distance = np.abs(RANK_OF[:, None].astype(int) - RANK_OF)
KING_SENSITIVE[(_file_distance == 0) | (_rank_distance == 0)] = 1
KING_SENSITIVE[(_file_distance == 1) & (_rank_distance == 1)] = 1
KNIGHT_LEG_TOWARDS = KNIGHT_LEG_TOWARDS.ravel()
KING_SENSITIVE = KING_SENSITIVE.ravel()

# Zobrist keys [33 * 90] int64, piece * 90 + square: equal for pieces of one side and kind, zero for EMPTY. The
# raw stream of PCG64 is the same in every version of NumPy.
_words = np.random.PCG64(20261130).random_raw(2 * KINDS * SQUARES + 1).view(np.int64)
_by_kind = _words[1:].reshape(2, KINDS, SQUARES)
ZOBRIST_SIDE = int(_words[0])
ZOBRIST = np.zeros((PIECES + 1, SQUARES), np.int64)
for _piece in range(PIECES):
    ZOBRIST[_piece] = _by_kind[_piece // PIECES_PER_SIDE, KIND_OF[_piece]]
ZOBRIST = ZOBRIST.ravel()

# [33] int64: one unit in the material word for each identity; a side's kind has four bits, nothing for EMPTY.
MATERIAL_BITS = 4
MATERIAL_UNIT = np.zeros(PIECES + 1, np.int64)
for _piece in range(PIECES):
    _place = _piece // PIECES_PER_SIDE * KINDS + int(KIND_OF[_piece])
    MATERIAL_UNIT[_piece] = 1 << (MATERIAL_BITS * _place)
assert MATERIAL_UNIT[EMPTY] == 0
