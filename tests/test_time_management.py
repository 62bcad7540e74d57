"""Budgets from clocks: within the clock, and growing with what there is to spend."""

import pytest

from search.limits import Limits
from search.time_management import Clock, IterationSummary, allot


def budget(time_ms, increment_ms=0, movestogo=None, overhead_ms=10, game_ply=20):
    limits = Limits(time_ms=(time_ms, time_ms), increment_ms=(increment_ms, increment_ms), movestogo=movestogo)
    return allot(limits, 0, game_ply, overhead_ms, None)[0]


@pytest.mark.parametrize("time_ms", [-500, 0, 1, 5, 50, 500, 999, 1000, 60_000, 7_200_000])
@pytest.mark.parametrize("increment_ms", [0, 10, 1000])
@pytest.mark.parametrize("movestogo", [None, 1, 2, 40, 500])
def test_the_maximum_stays_within_the_clock(time_ms, increment_ms, movestogo):
    for game_ply in (0, 1, 60, 300):
        b = budget(time_ms, increment_ms, movestogo, game_ply=game_ply)
        assert 1 <= b.optimum_ms <= b.maximum_ms
        assert b.maximum_ms <= max(1, 0.8237 * time_ms - 10)


def test_more_time_and_increment_give_more():
    optima = [budget(t).optimum_ms for t in (2_000, 20_000, 200_000)]
    assert optima == sorted(optima)
    assert optima[0] < optima[-1] / 10
    assert budget(20_000, increment_ms=500).optimum_ms > budget(20_000).optimum_ms


def test_fewer_moves_to_the_control_give_more():
    assert budget(60_000, movestogo=2).optimum_ms > budget(60_000, movestogo=40).optimum_ms


def test_overhead_is_taken_off():
    assert budget(5_000, overhead_ms=100).optimum_ms < budget(5_000, overhead_ms=0).optimum_ms


def test_each_side_has_its_own_clock():
    limits = Limits(time_ms=(60_000, 1_000))
    white, _ = allot(limits, 0, 20, 10, None)
    black, _ = allot(limits, 1, 20, 10, None)
    assert white.maximum_ms > 10 * black.maximum_ms


def summary(depth, best_move=1, score=0, effort=0.5, changes=0.0):
    return IterationSummary(depth, best_move, score, score, changes, 1, effort)


def targets(summaries, previous_score=0):
    """Target after each iteration, on the second move of a game whose first scored `previous_score`."""
    clock = Clock()
    limits = Limits(time_ms=(60_000, 60_000))
    clock.begin(limits, 0, 20, 10)
    clock.target_ms(summary(1, score=previous_score))
    clock.end()
    clock.begin(limits, 0, 22, 10)
    return [clock.target_ms(item) for item in summaries]


def test_a_falling_score_takes_longer():
    steady = targets([summary(depth) for depth in range(1, 12)])[-1]
    falling = targets([summary(depth, score=-20 * depth) for depth in range(1, 12)])[-1]
    assert falling > 1.2 * steady


def test_a_stable_best_move_takes_less():
    stable = targets([summary(depth) for depth in range(1, 25)])[-1]
    changing = targets([summary(depth, best_move=depth, changes=1) for depth in range(1, 25)])[-1]
    assert stable < 0.6 * changing


def test_a_move_that_takes_all_effort_is_played_sooner():
    assert targets([summary(5, effort=0.99)])[0] < targets([summary(5, effort=0.5)])[0]
