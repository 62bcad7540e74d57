"""Static exchange by playing it: captures on one square, cheapest capturer first, on a real board.

The twin of search.see, which plays the same exchange on occupancy words. Pins are ignored, except that a king
may not capture what is guarded, by the other king too.
"""

from games.xiangqi.geometry import EMPTY, FILES, KIND_OF, KING, MOVE_SHIFT, PIECES_PER_SIDE, SQUARE_MASK, SQUARES
from search.see import KIND_VALUE
from tests.reference.pieces import attackers


def value_of(piece: int) -> int:
    return 0 if piece == EMPTY else KIND_VALUE[int(KIND_OF[piece])]


def exchange_value(board: dict[int, int], side: int, move: int) -> int:
    """What `side` gains by `move` and the captures that follow, if each side may stop whenever it likes."""
    origin, target = move & SQUARE_MASK, move >> MOVE_SHIFT
    after = dict(board)
    mover = after.pop(origin)
    gain = value_of(after.get(target, EMPTY))
    after[target] = mover
    if KIND_OF[mover] == KING and is_guarded(after, 1 - side, target):
        return gain - 10_000  # not a capture that a king can make
    return gain - best_recapture(after, 1 - side, target)


def best_recapture(board: dict[int, int], side: int, target: int) -> int:
    """Best result for `side`, not below zero, of capturing on target with its cheapest piece."""
    capturers = attackers(board, side, target)
    if not capturers:
        return 0
    origin = capturers[0]
    after = dict(board)
    capturer = after.pop(origin)
    gain = value_of(after[target])
    after[target] = capturer
    if KIND_OF[capturer] == KING and is_guarded(after, 1 - side, target):
        return 0
    return max(0, gain - best_recapture(after, 1 - side, target))


def is_guarded(board: dict[int, int], side: int, target: int) -> bool:
    """Whether a king on target could be captured by `side`, were it only by its king along an open file."""
    king = side * PIECES_PER_SIDE
    return bool(attackers(board, side, target)) or king in (first_on_file(board, target, step) for step in (1, -1))


def first_on_file(board: dict[int, int], square: int, step: int) -> int:
    """The first piece that stands on the same file in one direction, EMPTY if there is none."""
    square += step * FILES
    while 0 <= square < SQUARES and square not in board:
        square += step * FILES
    return board.get(square, EMPTY)


def board_of(position) -> dict[int, int]:
    """Square to identity, from a POSITION record."""
    return {square: piece for square, piece in enumerate(position["board"].tolist()) if piece != EMPTY}


def side_of(piece: int) -> int:
    return piece // PIECES_PER_SIDE
