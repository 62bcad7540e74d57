"""Games that the match runner ends because both engines agree."""

from math import inf

import pytest

from experiments.adjudication import (
    ADJUDICATED_DRAW,
    ADJUDICATED_WIN,
    NO_ADJUDICATION,
    Adjudication,
    AdjudicationError,
    DrawRule,
    ResignRule,
    agreed_winner,
    is_agreed_draw,
    parse_draw_rule,
    parse_resign_rule,
    white_score,
)
from experiments.rulebook import BLACK_WINS, DRAW, WHITE_WINS, Verdict
from experiments.uci_client import InfoLine

RESIGN = ResignRule(score_cp=500, moves=2)
DRAWN = DrawRule(score_cp=10, moves=2, from_ply=20)


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        ([500, 500, 500, 500], WHITE_WINS),
        ([-500, -900, -inf, -500], BLACK_WINS),
        ([0, 600, 600, 600, inf], WHITE_WINS),
        ([600, 600, 600], None),  # too few
        ([600, 600, 499, 600], None),
        ([600, 600, -600, 600], None),
        ([600, 600, 600, 600, 0], None),
        ([600, 600, None, 600, 600], None),
        ([-499, -600, -600, -600], None),
    ],
)
def test_a_game_is_lost_once_both_agree_for_long_enough(scores, winner):
    assert agreed_winner(scores, RESIGN) == winner


@pytest.mark.parametrize(
    ("scores", "plies", "drawn"),
    [
        ([10, -10, 0, 5], 20, True),
        ([300, 10, -10, 0, 5], 21, True),
        ([10, -10, 0, 5], 19, False),
        ([-10, 0, 5], 20, False),
        ([10, -11, 0, 5], 20, False),
        ([0, 0, 0, 11], 20, False),
        ([0, None, 0, 0], 20, False),
        ([0, inf, 0, 0], 20, False),
    ],
)
def test_a_game_is_drawn_once_both_agree_for_long_enough_and_late_enough(scores, plies, drawn):
    assert is_agreed_draw(scores, plies, DRAWN) == drawn


def test_rules_act_only_where_they_are_in_force():
    won, drawn = [900.0] * 4, [0.0] * 4
    both = Adjudication(RESIGN, DRAWN)
    assert both.verdict(won, 30) == Verdict(WHITE_WINS, ADJUDICATED_WIN)
    assert both.verdict(drawn, 30) == Verdict(DRAW, ADJUDICATED_DRAW)
    assert both.verdict([50.0] * 4, 30) is None
    assert Adjudication(resign=RESIGN).verdict(drawn, 30) is None
    assert Adjudication(draw=DRAWN).verdict(won, 30) is None
    assert NO_ADJUDICATION.verdict(won, 30) is NO_ADJUDICATION.verdict(drawn, 30) is None


@pytest.mark.parametrize(
    ("info", "for_white"),
    [
        (None, None),
        (InfoLine("info score cp 30", score_cp=30), 30),
        (InfoLine("info score mate 3", mate_moves=3), inf),
        (InfoLine("info score mate -2", mate_moves=-2), -inf),
        (InfoLine("info score mate 0", mate_moves=0), -inf),
        (InfoLine("info depth 3"), None),
    ],
)
def test_scores_are_turned_to_white(info, for_white):
    assert white_score(info, white_to_move=True) == for_white
    assert white_score(info, white_to_move=False) == (None if for_white is None else -for_white)


def test_rules_are_read():
    assert parse_resign_rule("800,4") == ResignRule(800, 4)
    assert parse_draw_rule("10,8,80") == DrawRule(10, 8, 80)


@pytest.mark.parametrize("text", ["", "800", "800,4,1", "800;4", "-800,4", "800,x"])
def test_what_is_no_rule_to_resign_is_named(text):
    with pytest.raises(AdjudicationError, match=f"'{text}' is no rule to resign; expected SCORE_CP,MOVES"):
        parse_resign_rule(text)


def test_numbers_that_make_no_sense_are_named():
    with pytest.raises(AdjudicationError, match="SCORE_CP is 0 in '0,4'"):
        parse_resign_rule("0,4")
    with pytest.raises(AdjudicationError, match="MOVES is 0 in '10,0,80'"):
        parse_draw_rule("10,0,80")
    with pytest.raises(AdjudicationError, match="rule for draws; expected SCORE_CP,MOVES,FROM_PLY"):
        parse_draw_rule("10,8")
