"""The clocks of the games that scripts play."""

import pytest

from experiments.time_control import TimeControlError, Timer, go_text, parse_time_control


@pytest.mark.parametrize("text", ["100", "1000+10", "60000+0", "20000n"])
def test_a_time_control_is_written_as_it_is_read(text):
    assert str(parse_time_control(text)) == text


@pytest.mark.parametrize("text", ["", "0", "soon", "1000+", "+10", "-5", "1000+1.5", "0n", "n", "-1n"])
def test_what_is_no_time_control_is_named(text):
    with pytest.raises(TimeControlError, match="expected milliseconds"):
        parse_time_control(text)


def test_a_clock_runs_down_and_gains_its_increment():
    timer = Timer(parse_time_control("1000+10"))
    assert timer.charge(400)
    assert timer.left_ms == 610
    assert timer.charge(610)
    assert timer.left_ms == 10
    assert not timer.charge(10.5)


def test_a_time_for_each_move_comes_anew_and_forgives_its_margin():
    timer = Timer(parse_time_control("100", margin_ms=50))
    assert timer.charge(149)
    assert timer.charge(149)
    assert not timer.charge(151)


def test_each_player_hears_both_clocks_or_its_own_time():
    white, black = Timer(parse_time_control("1000+10")), Timer(parse_time_control("2000+20"))
    white.charge(100.5)
    assert go_text(black, white, black) == "wtime 909 btime 2000 winc 10 binc 20"
    fixed = Timer(parse_time_control("50"))
    assert go_text(fixed, white, fixed) == "movetime 50"


def test_nodes_take_as_long_as_they_take():
    timer = Timer(parse_time_control("5000n"))
    assert timer.charge(100_000)
    assert go_text(timer, timer, timer) == "nodes 5000"
    clock = Timer(parse_time_control("1000+10"))
    assert go_text(clock, timer, clock) == "wtime 600000 btime 1000 winc 0 binc 10"
