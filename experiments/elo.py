"""Elo from games played in pairs: each opening twice, colours swapped.

The two games of a pair are not independent (an opening that is good for White is so twice), so the variance is
that of the pairs' points: 0, 0.5, 1, 1.5 or 2 (the pentanomial model). With n pairs of mean score s a game,

    standard error = sqrt(sample variance of the pairs' mean scores / n)
    interval       = Elo(s - 1.96 standard errors) to Elo(s + 1.96 standard errors)
    LOS            = probability that a normal variable with this mean and error is above one half
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

PAIR_POINTS = (0.0, 0.5, 1.0, 1.5, 2.0)
CONFIDENCE_95 = 1.959964  # standard errors on either side that hold 95 % of a normal distribution
# Added to the count of each outcome before the variance is taken, lest equal pairs look like certainty. Hundreds of
# pairs do not notice it.
PRIOR_COUNT = 0.1


def elo_difference(score: float) -> float:
    """The Elo difference at which `score` points a game are expected; infinite for 0 and 1."""
    if score <= 0:
        return -math.inf
    if score >= 1:
        return math.inf
    return 400 * math.log10(score / (1 - score))


def expected_score(elo: float) -> float:
    """Points a game that are expected at this Elo difference."""
    return 1 / (1 + 10 ** (-elo / 400))


@dataclass(frozen=True)
class PairStatistics:
    """counts: pairs that brought 0, 0.5, 1, 1.5 and 2 points."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, points: Iterable[float]) -> "PairStatistics":
        points = list(points)
        return cls(tuple(points.count(value) for value in PAIR_POINTS))

    @property
    def pairs(self) -> int:
        return sum(self.counts)

    @property
    def score(self) -> float:
        """Points a game, from 0 to 1."""
        return _mean(self.counts)

    def variance(self, prior_count: float = PRIOR_COUNT) -> float:
        """Of the pairs' mean scores, with prior_count added to each count."""
        counts = [count + prior_count for count in self.counts]
        mean = _mean(counts)
        squares = sum(count * (value / 2 - mean) ** 2 for count, value in zip(counts, PAIR_POINTS, strict=True))
        return squares / sum(counts)

    @property
    def standard_error(self) -> float:
        """Of the score."""
        return math.sqrt(self.variance() / max(1, self.pairs - 1))

    @property
    def elo(self) -> float:
        return elo_difference(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval."""
        reach = CONFIDENCE_95 * self.standard_error
        return elo_difference(self.score - reach), elo_difference(self.score + reach)

    @property
    def los(self) -> float:
        """Likelihood of superiority."""
        return 0.5 * (1 + math.erf((self.score - 0.5) / (self.standard_error * math.sqrt(2))))

    def text(self) -> str:
        if not self.pairs:
            return "no complete pair yet"
        low, high = self.elo_interval
        return f"Elo {self.elo:+.1f} (95 %: {low:+.1f} to {high:+.1f})  LOS {100 * self.los:.1f} %"

    def counts_text(self) -> str:
        return f"pairs of 0 ½ 1 1½ 2 points: {' '.join(map(str, self.counts))}"


def _mean(counts: Iterable[float]) -> float:
    """Points a game of pairs with these counts."""
    counts = list(counts)
    return sum(count * value for count, value in zip(counts, PAIR_POINTS, strict=True)) / (2 * sum(counts))
