"""Budgets from clocks: within the clock, and growing with what there is to spend."""

import pytest

from search.layout import MATE
from search.limits import Limits
from search.time_management import Clock, ClockSettings, IterationSummary, allot


def budget(time_ms, increment_ms=0, movestogo=None, overhead_ms=10, game_ply=20):
    return allot(time_ms, increment_ms, movestogo, game_ply, overhead_ms, None)[0]


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
    white, black = (Clock().begin(limits, side, 20, ClockSettings()) for side in range(2))
    assert white.maximum_ms > 10 * black.maximum_ms


def test_pondering_gives_more_of_the_clock_but_no_higher_maximum():
    limits = Limits(time_ms=(60_000, 60_000))
    plain = Clock().begin(limits, 0, 20, ClockSettings())
    pondering = Clock().begin(limits, 0, 20, ClockSettings(ponders=True))
    assert pondering.optimum_ms == 1.25 * plain.optimum_ms
    assert pondering.maximum_ms == plain.maximum_ms


def test_a_clock_of_nodes_ignores_the_time_that_is_sent():
    """It starts from the first time of the game; then what was used goes, and the increment comes."""
    clock, settings = Clock(), ClockSettings(nodes_per_ms=100)
    first = clock.begin(Limits(time_ms=(10_000, None), increment_ms=(100, 0)), 0, 0, settings)
    clock.end(spent_ms=4_000)
    second = clock.begin(Limits(time_ms=(99_000, None), increment_ms=(100, 0)), 0, 2, settings)
    clock.end(spent_ms=50_000)
    third = clock.begin(Limits(time_ms=(99_000, None), increment_ms=(100, 0)), 0, 4, settings)
    assert first.maximum_ms > second.maximum_ms > third.maximum_ms == 1


def summary(depth, best_move=1, score=0, effort=0.5, changes=0.0):
    return IterationSummary(depth, best_move, score, score, score, changes, 1, effort)


def targets(summaries, previous_score=0):
    """Target after each iteration, on the second move of a game whose first scored `previous_score`."""
    clock = Clock()
    limits = Limits(time_ms=(60_000, 60_000))
    clock.begin(limits, 0, 20, ClockSettings())
    clock.target_ms(summary(1, score=previous_score))
    clock.end(1000)
    clock.begin(limits, 0, 22, ClockSettings())
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


@pytest.mark.parametrize(
    ("score", "last_score", "is_decided"),
    [
        (MATE - 3, MATE - 3, True),
        (MATE - 1, 200, False),
        (MATE - 5, MATE - 5, False),
        (2 - MATE, 2 - MATE, True),
        (0, 0, False),
    ],
)
def test_what_is_decided_needs_no_more_thought(score, last_score, is_decided):
    assert IterationSummary(5, 1, score, last_score, score, 0, 1, 0.5).is_decided == is_decided
