"""The sequential test of matches."""

import math
import random
import statistics
from itertools import pairwise

import pytest

from experiments.elo import PAIR_POINTS, PairStatistics, elo_difference, expected_score
from experiments.sprt import PRIOR_COUNT, Hypothesis, Sprt, SprtError, parse_sprt

SCORES = [points / 2 for points in PAIR_POINTS]

# From a public statistics page of a testing framework: pairs of 0 to 2 points, and the LLR of logistic Elo 0 and
# 2.716 by the exact multinomial likelihood and by the normal approximation.
PUBLISHED_COUNTS = (13, 37, 50, 25, 3)
PUBLISHED_TEST = Sprt(0, 2.716)
PUBLISHED_EXACT_LLR, PUBLISHED_NORMAL_LLR = -0.53772, -0.55961


def llr_by_densities(test: Sprt, counts: tuple[int, ...]) -> float:
    """The sum over pairs of the log-density ratio of two normal distributions; the variance from a list of scores."""
    assert PRIOR_COUNT == 0.5
    halves = [score for score, count in zip(SCORES, counts, strict=True) for _ in range(2 * count + 1)]
    deviation = statistics.pstdev(halves)
    under0, under1 = (statistics.NormalDist(expected_score(elo), deviation) for elo in (test.elo0, test.elo1))
    pairs = [score for score, count in zip(SCORES, counts, strict=True) for _ in range(count)]
    return sum(math.log(under1.pdf(score) / under0.pdf(score)) for score in pairs)


def llr_by_likelihood(test: Sprt, counts: tuple[int, ...]) -> float:
    """The logarithm of the ratio of the greatest multinomial likelihoods with either mean."""
    return _greatest_log_likelihood(counts, expected_score(test.elo1)) - _greatest_log_likelihood(
        counts, expected_score(test.elo0)
    )


def _greatest_log_likelihood(counts: tuple[int, ...], mean: float) -> float:
    """The probabilities n_i / (N (1 + t (x_i - mean))) are the likeliest with this mean, for the t that makes it so."""
    low, high = -1 / (1 - mean) + 1e-12, 1 / mean - 1e-12
    for _ in range(200):
        middle = (low + high) / 2
        excess = sum(n * (x - mean) / (1 + middle * (x - mean)) for n, x in zip(counts, SCORES, strict=True))
        low, high = (middle, high) if excess > 0 else (low, middle)
    return sum(n * -math.log(1 + low * (x - mean)) for n, x in zip(counts, SCORES, strict=True))


@pytest.mark.parametrize("counts", [(13, 37, 50, 25, 3), (0, 0, 1, 0, 0), (0, 0, 0, 0, 7), (2, 9, 40, 31, 18)])
@pytest.mark.parametrize("test", [Sprt(0, 5), Sprt(-10, 0), Sprt(20, 120)])
def test_the_llr_is_the_sum_of_log_density_ratios(test, counts):
    assert test.llr(PairStatistics(counts)) == pytest.approx(llr_by_densities(test, counts))


def test_the_llr_is_near_the_exact_one_and_the_published_ones():
    llr = PUBLISHED_TEST.llr(PairStatistics(PUBLISHED_COUNTS))
    assert llr_by_likelihood(PUBLISHED_TEST, PUBLISHED_COUNTS) == pytest.approx(PUBLISHED_EXACT_LLR, rel=1e-3)
    assert llr == pytest.approx(PUBLISHED_NORMAL_LLR, rel=0.03)  # the prior counts make the difference
    counts = (40, 210, 480, 226, 44)
    assert Sprt(0, 5).llr(PairStatistics(counts)) == pytest.approx(llr_by_likelihood(Sprt(0, 5), counts), rel=0.02)


def test_no_pairs_tell_nothing():
    assert Sprt(0, 5).llr(PairStatistics((0, 0, 0, 0, 0))) == 0


def test_bounds_follow_the_error_probabilities():
    assert Sprt(0, 5).upper == -Sprt(0, 5).lower == pytest.approx(math.log(19))
    uneven = Sprt(0, 5, alpha=0.01, beta=0.1)
    assert (uneven.lower, uneven.upper) == pytest.approx((math.log(0.1 / 0.99), math.log(90)))
    assert [uneven.decision(llr) for llr in (uneven.lower, -2.28, 4.49, uneven.upper)] == [
        Hypothesis.H0,
        None,
        None,
        Hypothesis.H1,
    ]


def test_expected_scores_are_those_of_elo_differences():
    for low, high in pairwise((-300, -20, 0, 7.5, 150)):
        assert expected_score(low) < expected_score(high)
        assert elo_difference(expected_score(high)) == pytest.approx(high, abs=1e-9)


def tilted_probabilities(elo: float) -> list[float]:
    """Probabilities of the five results of a pair such that the difference is `elo`."""
    low, high = -20.0, 20.0
    for _ in range(100):
        tilt = (low + high) / 2
        weights = [base * math.exp(tilt * score) for base, score in zip((1, 4, 10, 4, 1), SCORES, strict=True)]
        probabilities = [weight / sum(weights) for weight in weights]
        mean = sum(map(math.prod, zip(probabilities, SCORES, strict=True)))
        low, high = (tilt, high) if mean < expected_score(elo) else (low, tilt)
    return probabilities


def simulated_end(test: Sprt, probabilities: list[float], rng: random.Random) -> Hypothesis:
    counts = [0] * len(SCORES)
    while True:
        for at in rng.choices(range(len(SCORES)), probabilities, k=50):
            counts[at] += 1
            accepted = test.decision(test.llr(PairStatistics(tuple(counts))))
            if accepted is not None:
                return accepted


@pytest.mark.parametrize(("truth", "wrong"), [(0, Hypothesis.H1), (50, Hypothesis.H0)])
def test_errors_are_as_rare_as_promised(truth, wrong):
    rng = random.Random(1)
    runs = 800
    probabilities = tilted_probabilities(truth)
    errors = sum(simulated_end(Sprt(0, 50), probabilities, rng) == wrong for _ in range(runs))
    assert 0.035 < errors / runs < 0.065  # standard error 0.008


def test_a_test_is_read_with_and_without_error_probabilities():
    assert parse_sprt("0,5") == Sprt(0, 5, 0.05, 0.05)
    assert parse_sprt("-5,0.5,0.01,0.1") == Sprt(-5, 0.5, 0.01, 0.1)


@pytest.mark.parametrize("text", ["", "5", "0,5,0.05", "0;5", "0,nan", "5,0", "5,5", "0,5,0,0.05", "0,5,0.05,0.5"])
def test_what_is_no_test_is_named(text):
    with pytest.raises(SprtError, match=f"'{text}' describes no SPRT; expected"):
        parse_sprt(text)
