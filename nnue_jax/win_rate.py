"""From values to centipawns and expected results: the win-rate model of a network.

The chance to win with value v is 1 / (1 + exp((a - v) / b)): a is the value that wins half of all games, b the
spread around it. Both are cubic polynomials of the material on the board. What they are depends on the network and
on how the engine plays with it, so a network carries its own in its description, which then is JSON:

    {"win_rate": {"a": [c3, c2, c1, c0], "b": [c3, c2, c1, c0]}, ...}

The polynomials are in m, a count of the material divided by 65. A network that says nothing has those of Pikafish's.
"""

import json
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from games.xiangqi.geometry import ADVISOR, BISHOP, BLACK, CANNON, KNIGHT, PAWN, ROOK, WHITE
from games.xiangqi.position import count_in

# Weights of the material count.
MODEL_COUNTS = {ROOK: 10, KNIGHT: 5, CANNON: 5, BISHOP: 3, ADVISOR: 2, PAWN: 1}
LEAST_MATERIAL, MOST_MATERIAL = 17, 110  # counts beyond are taken for these
MATERIAL_UNIT = 65
COEFFICIENTS = 4

KEY = "win_rate"


class WinRateError(ValueError):
    """A description whose win-rate model is none; the message is a sentence."""


def model_material(position) -> int:
    """Material count of the win-rate model, from a POSITION record."""
    material = int(position["material"])
    return sum(
        weight * count_in.py_func(material, side, kind)
        for kind, weight in MODEL_COUNTS.items()
        for side in (WHITE, BLACK)
    )


@dataclass(frozen=True)
class WinRate:
    """The model at one material count; a and b are in internal units."""

    a: float
    b: float

    def centipawns(self, value: int) -> int:
        """Displayed score: 100 where half of all games are won; halves are rounded away from zero."""
        score = 100 * value / self.a
        return int(math.copysign(math.floor(abs(score) + 0.5), score))

    def win_draw_loss(self, value: int) -> tuple[int, int, int]:
        """Expected results per thousand games."""
        win, loss = self._wins(value), self._wins(-value)
        return win, 1000 - win - loss, loss

    def _wins(self, value: int) -> int:
        exponent = min((self.a - value) / self.b, 700.0)  # beyond that e ** x overflows, and nobody wins
        return int(0.5 + 1000 / (1 + math.exp(exponent)))


@dataclass(frozen=True)
class WinRateModel:
    """Coefficients of both polynomials, that of the highest power first."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    def at(self, material: int) -> WinRate:
        """The model for a count as `model_material` gives it."""
        m = max(LEAST_MATERIAL, min(MOST_MATERIAL, material)) / MATERIAL_UNIT
        return WinRate(_polynomial(self.a, m), _polynomial(self.b, m))

    @cache  # noqa: B019 - models are few
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """a and b, float64, by material count from 0 to MOST_MATERIAL."""
        rates = [self.at(material) for material in range(MOST_MATERIAL + 1)]
        return np.array([rate.a for rate in rates]), np.array([rate.b for rate in rates])

    def check(self) -> None:
        """WinRateError unless both parameters are above zero for every material."""
        for material in range(LEAST_MATERIAL, MOST_MATERIAL + 1):
            rate = self.at(material)
            if not (0 < rate.a < math.inf and 0 < rate.b < math.inf):
                raise WinRateError(
                    f"its win-rate model gives a = {rate.a:g} and b = {rate.b:g} at a material count of {material}; "
                    "expected numbers above zero."
                )


def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


PIKAFISH_MODEL = WinRateModel(
    a=(220.59891365, -810.35730430, 928.68185198, 79.83955423),
    b=(61.99287416, -233.72674182, 325.85508322, -68.72720854),
)


def model_of(description: bytes) -> WinRateModel:
    """The model that a network's description carries, else Pikafish's; WinRateError if it is broken."""
    try:
        facts = json.loads(description)
    except ValueError:
        return PIKAFISH_MODEL  # plain words
    if not isinstance(facts, dict) or KEY not in facts:
        return PIKAFISH_MODEL
    model = WinRateModel(*(_coefficients(facts[KEY], name) for name in ("a", "b")))
    model.check()
    return model


def _coefficients(parameters, name: str) -> tuple[float, ...]:
    numbers = parameters.get(name) if isinstance(parameters, dict) else None
    if not isinstance(numbers, list) or len(numbers) != COEFFICIENTS or not all(map(_is_number, numbers)):
        raise WinRateError(f"its win-rate model has '{name}': {numbers}; expected a list of {COEFFICIENTS} numbers.")
    return tuple(map(float, numbers))


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
