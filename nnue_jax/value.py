"""From network outputs to a value, and from values to centipawns and win probabilities.

Values are in the internal unit of Pikafish's networks, about 400 to 100 centipawns at full material, and from
the side to move's view unless said otherwise. All divisions truncate toward zero, as in C.
"""

import math

from numba import int64

from games.integers import truncated_division
from games.jit import leaf
from games.xiangqi.geometry import ADVISOR, BISHOP, BLACK, CANNON, KNIGHT, PAWN, ROOK, WHITE
from games.xiangqi.position import count_in, piece_count, rook_count

MATE_VALUE = 32000
MAX_PLY = 246
# Beyond this a value means a mate at a known distance.
MAX_STATIC_VALUE = MATE_VALUE - MAX_PLY - 1

ROOK_VALUE, CANNON_VALUE, KNIGHT_VALUE = 1305, 773, 720

# Weights of the material count on which the win-rate model depends.
MODEL_COUNTS = {ROOK: 10, KNIGHT: 5, CANNON: 5, BISHOP: 3, ADVISOR: 2, PAWN: 1}


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


def model_material(position) -> int:
    """Material count of the win-rate model, from a POSITION record."""
    material = int(position["material"])
    return sum(
        weight * count_in.py_func(material, side, kind)
        for kind, weight in MODEL_COUNTS.items()
        for side in (WHITE, BLACK)
    )


def win_rate_parameters(material: int) -> tuple[float, float]:
    """(a, b): the value that wins half of all games at this material count, and the spread around it."""
    m = max(17, min(110, material)) / 65
    a = ((220.59891365 * m - 810.35730430) * m + 928.68185198) * m + 79.83955423
    b = ((61.99287416 * m - 233.72674182) * m + 325.85508322) * m - 68.72720854
    return a, b


def centipawns(value: int, material: int) -> int:
    """Displayed score: 100 where half of all games are won; halves are rounded away from zero."""
    score = 100 * value / win_rate_parameters(material)[0]
    return int(math.copysign(math.floor(abs(score) + 0.5), score))


def win_draw_loss(value: int, material: int) -> tuple[int, int, int]:
    """Expected results per thousand games."""
    a, b = win_rate_parameters(material)

    def wins(v: int) -> int:
        exponent = min((a - v) / b, 700.0)  # beyond that e ** x overflows, and nobody wins
        return int(0.5 + 1000 / (1 + math.exp(exponent)))

    win, loss = wins(value), wins(-value)
    return win, 1000 - win - loss, loss
