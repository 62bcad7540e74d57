"""How well expected scores come true: predicted against observed, by deciles, as a table and as a plot.

A position counts with the points its game brought: 1, 0.5 or 0. Positions of one game share their result, so the
standard error of a mean is taken over whole games: n positions of few games say less than n of many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnue_jax.win_rate import LEAST_MATERIAL, MOST_MATERIAL, WinRateModel

DECILES = 10
HEADING = f"{'':>10}{'positions':>11}{'predicted':>11}{'observed':>10}{'difference':>12}{'std. error':>12}"


@dataclass(frozen=True)
class Predictions:
    """Arrays [n]. expected: score that was predicted, 0 to 1. points: what came. material: as `model_material` counts.

    game: number of the game, from 0.
    """

    expected: np.ndarray
    points: np.ndarray
    material: np.ndarray
    game: np.ndarray

    def __len__(self) -> int:
        return len(self.expected)

    def take(self, indices: np.ndarray) -> "Predictions":
        return Predictions(*(getattr(self, name)[indices] for name in self.__dataclass_fields__))

    def seen_by_white(self, black_moves: np.ndarray) -> "Predictions":
        """The same with all scores from White's view. black_moves: [n] bool."""
        expected, points = (np.where(black_moves, 1 - x, x) for x in (self.expected, self.points))
        return Predictions(expected, points, self.material, self.game)


def joined(parts: Sequence[Predictions]) -> Predictions:
    """Predictions for the games of all parts, which are numbered anew."""
    fields = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in Predictions.__dataclass_fields__
    }
    firsts = np.cumsum([0, *(int(part.game.max(initial=-1)) + 1 for part in parts[:-1])])
    fields["game"] += np.repeat(firsts, [len(part) for part in parts])
    return Predictions(**fields)


@dataclass(frozen=True)
class Row:
    """Means over a group of positions; the error is that of the difference."""

    positions: int
    predicted: float
    observed: float
    standard_error: float

    @property
    def difference(self) -> float:
        return self.observed - self.predicted

    def line(self, name: str) -> str:
        return (
            f"{name:>10}{self.positions:>11,}{self.predicted:>11.4f}{self.observed:>10.4f}{self.difference:>+12.4f}"
            f"{self.standard_error:>12.4f}"
        )


def row_of(predictions: Predictions) -> Row:
    surprise = predictions.points - predictions.expected
    sums = np.bincount(predictions.game, surprise - surprise.mean())
    return Row(
        positions=len(predictions),
        predicted=float(predictions.expected.mean()),
        observed=float(predictions.points.mean()),
        standard_error=float(np.sqrt(np.square(sums).sum()) / len(predictions)),
    )


def deciles(predictions: Predictions) -> list[Row]:
    """Ten groups of equally many positions, those with the lowest expected score first."""
    if len(predictions) < DECILES:
        raise ValueError(f"There are {len(predictions)} positions; expected at least {DECILES}, one for each decile.")
    order = np.argsort(predictions.expected, kind="stable")
    return [row_of(predictions.take(indices)) for indices in np.array_split(order, DECILES)]


def largest_difference(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: abs(row.difference))


def material_thirds(predictions: Predictions) -> list[tuple[str, Predictions]]:
    """(name, positions) of three ranges of material that hold about equally many, the least material first."""
    first, second = np.quantile(predictions.material, [1 / 3, 2 / 3], method="nearest").tolist()
    ranges = [(0, first), (first + 1, second), (second + 1, MOST_MATERIAL)]
    thirds = []
    for least, most in ranges:
        indices = np.flatnonzero((least <= predictions.material) & (predictions.material <= most))
        if len(indices) >= DECILES:
            thirds.append((f"material {least} to {most}", predictions.take(indices)))
    return thirds


def table(predictions: Predictions) -> list[str]:
    """A line for each decile, and one for all positions."""
    rows = [(str(i + 1), row) for i, row in enumerate(deciles(predictions))]
    return [HEADING, *(row.line(name) for name, row in [*rows, ("all", row_of(predictions))])]


def summary(name: str, predictions: Predictions) -> str:
    """The differences of all deciles in a line."""
    rows = deciles(predictions)
    differences = "".join(f"{row.difference:>+8.3f}" for row in rows)
    errors = f"errors {min(row.standard_error for row in rows):.3f} to {max(row.standard_error for row in rows):.3f}"
    return f"{name:<20}{differences}   largest {largest_difference(rows).difference:+.4f}, {errors}"


def plot(output: Path, views: dict[str, Predictions], model: WinRateModel, constant: WinRateModel) -> None:
    """Draw predicted against observed, and the model over material, as PNG; ImportError without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    scores, parameters = figure.subplots(1, 2)
    scores.plot([0, 1], [0, 1], color="gray", linewidth=1)
    for (name, predictions), marker in zip(views.items(), "os", strict=False):
        rows = deciles(predictions)
        scores.errorbar(
            [row.predicted for row in rows],
            [row.observed for row in rows],
            yerr=[2 * row.standard_error for row in rows],
            fmt=marker, markersize=4, capsize=2, label=f"{name}, ± 2 standard errors",
        )  # fmt: skip
    scores.set(xlabel="predicted score", ylabel="observed score", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    materials = range(LEAST_MATERIAL, MOST_MATERIAL + 1)
    for name in ("a", "b"):
        (line,) = parameters.plot(materials, [getattr(model.at(m), name) for m in materials], label=name)
        parameters.axhline(getattr(constant.at(MOST_MATERIAL), name), color=line.get_color(), linestyle=":")
    parameters.set(xlabel="material count (dotted: the same for all)", ylabel="internal units")
    for axes in (scores, parameters):
        axes.grid(alpha=0.3)
        axes.legend()
    FigureCanvasAgg(figure).print_png(str(output))
