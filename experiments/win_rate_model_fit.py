"""The win-rate model that fits the results of many positions best.

A position with score v, from the side to move's view, is expected to be won with w = 1 / (1 + exp((a - v) / b)), lost
with l = 1 / (1 + exp((a + v) / b)), else drawn. With s = 1 / b and t = a / b that is an ordered logit: the chance of a
draw is w l (exp(2t) - 1), so the logarithm of the likelihood is a sum of concave functions of s and t.

What is made small is minus that logarithm, plus SQUARES_WEIGHT times the squared errors of the expected score,
w + (1 - w - l) / 2. Games of the same material differ in more than the model knows, so its curve is not quite theirs;
likelihood alone then puts up with wrong expected scores, to be surprised less by results that were all but certain.
Weights from 100 on bring the expected scores of all deciles within 2 %; beyond it the chances to win get worse.
"""

from dataclasses import dataclass

import numpy as np

from games.xiangqi.geometry import KIND_OF, NO_SQUARE, PIECES
from nnue_jax.win_rate import (
    COEFFICIENTS,
    LEAST_MATERIAL,
    MATERIAL_UNIT,
    MODEL_COUNTS,
    MOST_MATERIAL,
    WinRateModel,
)

MAX_SCORE = 3000  # positions further from 0 are left out; nearly all of those are decided
BUCKET = 15  # internal units; odd, so that buckets lie around 0 evenly
SQUARES_WEIGHT = 100
IMAGINARY_POSITIONS = 50  # for each material count
MAX_STEPS = 100
DIGITS = 2  # of coefficients behind the point: so a and b change by less than a tenth of an internal unit

_MATERIALS = np.arange(LEAST_MATERIAL, MOST_MATERIAL + 1)
_SCORES = np.arange(-(MAX_SCORE // BUCKET), MAX_SCORE // BUCKET + 1) * float(BUCKET)
_SHAPE = (len(_MATERIALS), len(_SCORES), 3)
_COUNT_OF_PIECE = np.array([MODEL_COUNTS.get(int(kind), 0) for kind in KIND_OF[:PIECES]])


class FitError(ValueError):
    """Games that no model can be fitted to; the message is a sentence."""


def material_of(packed: np.ndarray) -> np.ndarray:
    """[n] int64, material count of [n] PACKED; the slow twin is `model_material`."""
    return (packed["square_of"] != NO_SQUARE) @ _COUNT_OF_PIECE


def is_counted(records: np.ndarray) -> np.ndarray:
    """[n] bool, whether the score of each of [n] RECORD is one that the model is to explain."""
    return np.abs(records["score"].astype(np.int64)) <= MAX_SCORE


def no_results() -> np.ndarray:
    return np.zeros(_SHAPE, np.int64)


def count_results(records: np.ndarray) -> np.ndarray:
    """[materials, buckets, 3] int64: positions by material, score and result + 1, from [n] RECORD."""
    records = records[is_counted(records)]
    material = np.clip(material_of(records["packed"]), LEAST_MATERIAL, MOST_MATERIAL) - LEAST_MATERIAL
    bucket = (records["score"].astype(np.int64) + BUCKET // 2) // BUCKET + len(_SCORES) // 2
    cell = (material * len(_SCORES) + bucket) * 3 + records["result"] + 1
    return np.bincount(cell, minlength=int(np.prod(_SHAPE))).reshape(_SHAPE)


def _chance(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(np.minimum(-x, 700.0)))  # beyond that e ** x overflows


@dataclass(frozen=True)
class _Aim:
    """What is to be small, given a and b for each material count."""

    results: np.ndarray  # [materials, buckets, 3] number of positions, by result + 1

    def cost(self, a: np.ndarray, b: np.ndarray) -> float:
        """Infinite where a model makes no sense."""
        if min(a.min(), b.min()) <= 0:
            return np.inf
        t, x = (a / b)[:, None], _SCORES / b[:, None]
        lost, drawn, won = np.moveaxis(self.results, 2, 0)
        of_draws = 2 * t + np.log(-np.expm1(-2 * t))  # log(exp(2t) - 1)
        surprise = (won + drawn) * np.logaddexp(0, t - x) + (lost + drawn) * np.logaddexp(0, t + x) - drawn * of_draws
        expected = (1 + _chance(x - t) - _chance(-x - t)) / 2
        squares = won * (1 - expected) ** 2 + drawn * (0.5 - expected) ** 2 + lost * expected**2
        return float((surprise + SQUARES_WEIGHT * squares).sum())

    def slopes(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(gradient [materials, 2], curvature [materials, 2, 2]) of the cost by a and b.

        The curvature lacks what might be negative: that of the squares' expected score, and of s and t by a and b. So
        it always shows a way down.
        """
        s, t = (1 / b)[:, None], (a / b)[:, None]
        win, loss = _chance(s * _SCORES - t), _chance(-s * _SCORES - t)
        win_slope, loss_slope = win * (1 - win), loss * (1 - loss)
        lost, drawn, won = np.moveaxis(self.results, 2, 0)
        positions = lost + drawn + won
        by_win, by_loss = (won + drawn) * (1 - win), (lost + drawn) * (1 - loss)
        rest = -np.expm1(-2 * t)
        error = SQUARES_WEIGHT * (positions * (1 + win - loss) - 2 * won - drawn)
        error_by_t, error_by_s = (loss_slope - win_slope) / 2, (loss_slope + win_slope) / 2 * _SCORES
        gradient = [
            by_win + by_loss - 2 * drawn / rest + error * error_by_t,
            (by_loss - by_win) * _SCORES + error * error_by_s,
        ]
        p, q, weight = by_win * win, by_loss * loss, 2 * SQUARES_WEIGHT * positions
        mixed = (q - p) * _SCORES + weight * error_by_t * error_by_s
        curvature = [
            [p + q + 4 * drawn * np.exp(-2 * t) / rest**2 + weight * error_by_t**2, mixed],
            [mixed, (p + q) * _SCORES**2 + weight * error_by_s**2],
        ]
        change = np.array([[1 / b, -a / b**2], [np.zeros_like(a), -1 / b**2]])  # of (t, s) by (a, b)
        return (
            np.einsum("im,ijm->mj", np.sum(gradient, axis=2), change),
            np.einsum("kim,klm,ljm->mij", change, np.sum(curvature, axis=3), change),
        )


def _best(counts: np.ndarray, degree: int, start: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of a and b, that of the highest power first, by damped Gauss-Newton steps from constants."""
    aim = _Aim(counts)
    powers = np.vander(_MATERIALS / MATERIAL_UNIT, degree + 1)
    basis, triangle = np.linalg.qr(powers)  # powers are so alike that steps along them would lose digits
    found = np.array([basis.T @ np.full(len(basis), value) for value in start])
    cost = aim.cost(*(found @ basis.T))
    for _ in range(MAX_STEPS):
        gradient, curvature = aim.slopes(*(found @ basis.T))
        slope = (gradient.T @ basis).ravel()
        bend = np.einsum("mij,mk,ml->ikjl", curvature, basis, basis).reshape(slope.size, slope.size)
        step = -np.linalg.lstsq(bend, slope, rcond=1e-12)[0].reshape(found.shape)
        gain = 0.0
        while gain <= 0 and np.abs(step).max() > 1e-9:
            better = found + step
            gain = cost - aim.cost(*(better @ basis.T))
            step = step / 2
        if gain > 0:
            found, cost = better, cost - gain
        if gain <= 1e-12 * cost:
            return tuple(np.linalg.solve(triangle, row) for row in found)
    raise FitError(f"The best win-rate model was not found in {MAX_STEPS} steps; expected a few to do.")


def fit_constant(counts: np.ndarray) -> WinRateModel:
    """The model whose a and b are the same for all material, from counts as `count_results` makes them."""
    results = counts.sum(axis=(0, 1))
    if results.min() == 0:
        raise FitError(
            f"There are {results[2]:,} positions of games that the side to move won, {results[1]:,} of drawn games and "
            f"{results[0]:,} of lost ones; expected some of each."
        )
    spread = float(np.sqrt((counts.sum(axis=(0, 2)) * np.square(_SCORES)).sum() / counts.sum()))
    a, b = _best(counts, 0, (max(spread, 1.0),) * 2)
    if b[-1] < BUCKET:
        raise FitError(
            f"The scores tell nearly all results, as b = {b[-1]:.2f} for all material; expected {BUCKET} or more."
        )
    return _rounded(a, b)


def fit(counts: np.ndarray, constant: WinRateModel) -> WinRateModel:
    """The model with cubic polynomials of the material; WinRateError if it is impossible.

    Each material count also gets IMAGINARY_POSITIONS with the scores of all data, and results as the constant model
    expects them. So a count that hardly occurs has a say, and says what is true on the average.
    """
    rate = constant.at(MOST_MATERIAL)
    win, loss = (_chance((sign * _SCORES - rate.a) / rate.b) for sign in (1, -1))
    share = counts.sum(axis=(0, 2)) / counts.sum()
    imaginary = IMAGINARY_POSITIONS * share[:, None] * np.stack([loss, 1 - win - loss, win], axis=1)
    return _rounded(*_best(counts + imaginary, COEFFICIENTS - 1, (rate.a, rate.b)))


def _rounded(*parameters: np.ndarray) -> WinRateModel:
    padded = (np.concatenate([np.zeros(COEFFICIENTS - len(row)), row]) for row in parameters)
    model = WinRateModel(*(tuple(np.round(row, DIGITS).tolist()) for row in padded))
    model.check()
    return model
