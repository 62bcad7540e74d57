"""Reading and writing FEN: `<placement> <side> <ignored> <ignored> <rule60> <fullmove>`.

Everything the rules demand of a position is checked here, so that the kernels may rely on it: pieces stand
where they can stand, no side has more than it started with, each has a king, and the side that is not to
move is not in check.
"""

from dataclasses import dataclass

import numpy as np

from games.xiangqi.geometry import (
    BLACK,
    EMPTY,
    FILES,
    FIRST_OF_KIND,
    KIND_LETTERS,
    KIND_NAMES,
    KIND_OF,
    KINDS,
    MAX_OF_KIND,
    PIECES,
    PIECES_PER_SIDE,
    RANKS,
    WHITE,
    flip_ranks,
    square_name,
    standing_squares,
)
from games.xiangqi.movegen import opponent_in_check_kernel
from games.xiangqi.position import set_up

START_FEN = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1"

MAX_RULE60 = 119
MAX_FULLMOVE = 100_000
SIDE_LETTERS = "wb"
SIDE_NAMES = ("White", "Black")


class PositionError(ValueError):
    """A position or move that is refused; the message is a sentence that says why."""


@dataclass(frozen=True)
class ParsedFen:
    """position: POSITION array [1]. rule60: plies counted by the 60-move rule. game_ply: plies since the game began."""

    position: np.ndarray
    rule60: int
    game_ply: int


def parse_fen(fen: str) -> ParsedFen:
    """Read and check a FEN; the fields after the side to move may be missing."""
    fields = fen.split()
    if not fields:
        raise PositionError("The FEN is empty; expected a placement of ten ranks and a side to move.")
    placement = _parse_placement(fields[0])
    pieces = _assign_identities(placement)
    if len(fields) < 2:
        raise PositionError("The FEN ends after the placement; expected the side to move, w or b.")
    if fields[1] not in ("w", "b"):
        raise PositionError(f"The side to move is '{fields[1]}'; expected w or b.")
    side = SIDE_LETTERS.index(fields[1])
    rule60, fullmove = _parse_counters(fields[4:6])
    position = set_up(pieces, side)
    if opponent_in_check_kernel(position[0]):
        raise PositionError(f"{SIDE_NAMES[1 - side]}'s king can be captured, although {SIDE_NAMES[side]} is to move.")
    return ParsedFen(position, rule60, max(2 * (fullmove - 1), 0) + side)


def _parse_placement(text: str) -> list[tuple[int, int, int]]:
    """(side, kind, square) of every piece, in the order of the FEN."""
    rows = text.split("/")
    if len(rows) != RANKS:
        raise PositionError(f"The placement '{text}' has {len(rows)} ranks; expected {RANKS}.")
    pieces = []
    for rank, row in zip(reversed(range(RANKS)), rows, strict=True):
        file = 0
        for letter in row:
            if letter in "123456789":
                file += int(letter)
                continue
            kind = KIND_LETTERS.find(letter.upper())
            if kind < 0 or not letter.isascii():
                raise PositionError(
                    f"'{letter}' in rank '{row}' is not a piece; expected one of RACPNBK, racpnbk or a digit 1 to 9."
                )
            if file < FILES:
                pieces.append((WHITE if letter.isupper() else BLACK, kind, rank * FILES + file))
            file += 1
        if file != FILES:
            raise PositionError(f"Rank '{row}' describes {file} squares; expected {FILES}.")
    if len(pieces) > PIECES:
        raise PositionError(f"There are {len(pieces)} pieces on the board; expected at most {PIECES}.")
    return pieces


def _assign_identities(placement: list[tuple[int, int, int]]) -> dict[int, int]:
    """Identity to square, after checking the number and the place of all pieces."""
    squares: dict[tuple[int, int], list[int]] = {}
    for side, kind, square in placement:
        squares.setdefault((side, kind), []).append(square)
    for (side, kind), occupied in squares.items():
        if len(occupied) > MAX_OF_KIND[kind]:
            raise PositionError(
                f"{SIDE_NAMES[side]} has {len(occupied)} {KIND_NAMES[kind]}s; expected at most {MAX_OF_KIND[kind]}."
            )
    for side in (WHITE, BLACK):
        if (side, KIND_LETTERS.index("K")) not in squares:
            raise PositionError(f"There is no {SIDE_NAMES[side].lower()} king on the board.")
    identities = {}
    for (side, kind), occupied in squares.items():
        allowed = _ALLOWED[side][kind]
        for number, square in enumerate(occupied):
            if square not in allowed:
                raise PositionError(
                    f"A {SIDE_NAMES[side].lower()} {KIND_NAMES[kind]} cannot stand on {square_name(square)}."
                )
            identities[side * PIECES_PER_SIDE + FIRST_OF_KIND[kind] + number] = square
    return identities


def _allowed_squares(side: int) -> list[frozenset[int]]:
    own = [standing_squares(kind) for kind in range(KINDS)]
    return [frozenset(squares if side == WHITE else map(flip_ranks, squares)) for squares in own]


_ALLOWED = [_allowed_squares(side) for side in (WHITE, BLACK)]


def _parse_counters(fields: list[str]) -> tuple[int, int]:
    """(rule60, fullmove) from FEN fields five and six; absent or unreadable ones are 0, as in other engines."""
    rule60 = fullmove = 0
    try:
        rule60 = int(fields[0])
        fullmove = int(fields[1])
    except (IndexError, ValueError):
        pass
    if not 0 <= rule60 <= MAX_RULE60:
        raise PositionError(f"The 60-move counter is {rule60}; expected 0 to {MAX_RULE60}.")
    if not 0 <= fullmove <= MAX_FULLMOVE:
        raise PositionError(f"The move number is {fullmove}; expected 0 to {MAX_FULLMOVE}.")
    return rule60, fullmove


def piece_letter(piece: int) -> str:
    """FEN letter of an identity."""
    letter = KIND_LETTERS[KIND_OF[piece]]
    return letter if piece < PIECES_PER_SIDE else letter.lower()


def format_fen(position: np.ndarray, rule60: int, game_ply: int) -> str:
    """FEN of a POSITION array [1]; inverse of `parse_fen` up to move numbers below one."""
    board = position["board"][0].reshape(RANKS, FILES)
    rows = []
    for row in board[::-1]:
        text = "".join("." if piece == EMPTY else piece_letter(piece) for piece in row.tolist())
        for run in range(FILES, 0, -1):
            text = text.replace("." * run, str(run))
        rows.append(text)
    side = int(position["side"][0])
    fullmove = 1 + (game_ply - side) // 2
    return f"{'/'.join(rows)} {SIDE_LETTERS[side]} - - {rule60} {fullmove}"
