"""From network outputs to the value that the search sees.

Values are in the internal unit of Pikafish's networks, about 400 to 100 centipawns at full material, and from
the side to move's view unless said otherwise. All divisions truncate toward zero, as in C.
"""

from numba import int64

from games.integers import truncated_division
from games.jit import leaf
from games.xiangqi.geometry import CANNON, KNIGHT
from games.xiangqi.position import piece_count, rook_count

MATE_VALUE = 32000
MAX_PLY = 246
# Beyond this a value means a mate at a known distance.
MAX_STATIC_VALUE = MATE_VALUE - MAX_PLY - 1

ROOK_VALUE, CANNON_VALUE, KNIGHT_VALUE = 1305, 773, 720


@leaf
def attacking_material(position):
    """Value of the rooks, cannons and knights of both sides."""
    total = int64(0)
    for side in range(2):
        total += ROOK_VALUE * rook_count(position, side)
        total += CANNON_VALUE * piece_count(position, side, int64(CANNON))
        total += KNIGHT_VALUE * piece_count(position, side, int64(KNIGHT))
    return total


@leaf
def blend(psqt, positional, material):
    """Value of a position from both parts of the network's output and `attacking_material`.

    The parts count less the more they disagree, and all counts more while there is much to attack with.
    """
    complexity = abs(psqt - positional)
    value = psqt + positional
    value -= truncated_division(value * complexity, int64(11743))
    return truncated_division(value * (17380 + material), int64(20582))


@leaf
def damp(value, rule60):
    """`blend`'s value when `rule60` plies have passed without a capture, within the range of static values."""
    value -= truncated_division(value * rule60, int64(253))
    return max(-MAX_STATIC_VALUE, min(MAX_STATIC_VALUE, value))
