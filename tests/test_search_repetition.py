"""The search and the judge: who can win, save himself, or lose by a repetition does what the rules make right.

The positions stand one move before a recorded verdict; each is searched as it is and with colours changed.
"""

import random
from collections import Counter

import pytest

from games.xiangqi import Game, adjudicate
from games.xiangqi.repetition import judge_game
from search.layout import MATE
from search.limits import Limits
from tests.reference import judge as twin
from tests.support.golden import rows
from tests.test_judge import turned

NODES = 200_000
MAX_PLIES = 150
AT_THE_ROOT = [row for row in rows("rules") if row["moves"] and row["final"] and row["ply"] == 0]
DECIDED = [row for row in AT_THE_ROOT if row["kind"].startswith("perpetual")]
WINNING = [row for row in DECIDED if row["judgement"] == "loss"]  # for the side that answers the last move
LOSING = [row for row in DECIDED if row["judgement"] == "win"]
DRAWN = [row for row in AT_THE_ROOT if row["kind"] in ("repetition", "mutual-chase", "mutual-perpetual-check")]
MUCH = 300  # internal units


def with_colours_changed(row) -> tuple[str, list[str]]:
    placement, side, *rest = row["fen"].split()
    flipped = "/".join(reversed(placement.split("/"))).swapcase()
    return " ".join([flipped, "b" if side == "w" else "w", *rest]), [turned(move) for move in row["moves"]]


def as_recorded(row) -> tuple[str, list[str]]:
    return row["fen"], row["moves"]


def search(engine, fen: str, moves: list[str]):
    engine.new_game()
    engine.set_position(Game(fen, moves))
    return engine.go(Limits(nodes=NODES)).wait()


VIEWS = pytest.mark.parametrize("view", [as_recorded, with_colours_changed])


@VIEWS
@pytest.mark.parametrize("row", WINNING, ids=lambda row: row["id"])
def test_a_win_by_repetition_is_claimed(engine, row, view):
    """The other side has checked or chased all the time: to complete the repetition wins at once."""
    fen, moves = view(row)
    result = search(engine, fen, moves[:-1])
    assert result.report.score.value == MATE - 1
    assert result.report.score.mate_moves == 1
    after = Game(fen, [*moves[:-1], result.best_move])
    assert adjudicate(fen, [*moves[:-1], result.best_move]).result == "loss" or not after.legal_moves()


@VIEWS
@pytest.mark.parametrize("row", LOSING, ids=lambda row: row["id"])
def test_a_forbidden_repetition_is_avoided(engine, row, view):
    """The side to move has checked or chased all the time: to go on loses at once, so it deviates if it can."""
    fen, moves = view(row)
    game = Game(fen, moves[:-1])
    result = search(engine, fen, moves[:-1])
    if len(game.legal_moves()) > 1:
        assert result.best_move != moves[-1]
        assert adjudicate(fen, [*moves[:-1], result.best_move]).result != "win"
    else:
        assert result.report.score.value == -MATE + 1
    engine.set_position(game)
    forced = engine.go(Limits(nodes=2000, root_moves=(moves[-1],))).wait()
    assert forced.report.score.value == -MATE + 1, "at the root the repetition is scored as what it is"


@VIEWS
@pytest.mark.parametrize("row", DRAWN, ids=lambda row: row["id"])
def test_a_draw_by_repetition_saves(engine, row, view):
    """Whoever has nothing better takes the draw that is at hand."""
    fen, moves = view(row)
    game = Game(fen, moves[:-1])
    others = tuple(move for move in game.legal_move_texts() if move != moves[-1])
    forced = engine.set_position(game) or engine.go(Limits(nodes=2000, root_moves=(moves[-1],))).wait()
    assert abs(forced.report.score.value) <= 1
    result = search(engine, fen, moves[:-1])
    assert result.report.score.value >= -1
    if others and engine.go(Limits(nodes=NODES, root_moves=others)).wait().report.score.value < -MUCH:
        assert result.best_move == moves[-1]
        assert abs(result.report.score.value) <= 1


def play_out(engine, fen: str, moves: list[str]) -> tuple[list[str], str]:
    """(all moves, how it ended) of a game that the engine plays against itself from the end of a line."""
    played = list(moves)
    while len(played) < len(moves) + MAX_PLIES:
        game = Game(fen, played)
        verdict = judge_game(game)
        if verdict.final:
            return played, verdict.kind
        if not game.legal_moves():
            return played, "no move"
        engine.set_position(game)
        played.append(engine.go(Limits(nodes=1000)).wait().best_move)
    return played, "length"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_games_end_with_verdicts_that_the_twin_confirms(engine):
    """200 games from lines that lead into repetitions; no verdict comes too early, too late, or against the twin's."""
    rng = random.Random(71)
    endings: Counter = Counter()
    for number in range(200):
        row = rng.choice(AT_THE_ROOT)
        fen, moves = rng.choice([as_recorded, with_colours_changed])(row)
        engine.new_game()
        begun = moves[: rng.randrange(len(moves))]
        played, ending = play_out(engine, fen, begun)
        verdict = twin.adjudicate(fen, played)
        assert (verdict[3] if verdict[1] else ending) == ending, (number, fen, played)
        assert verdict[1] == (ending not in ("no move", "length")), (number, fen, played)
        assert len(played) == len(begun) or not twin.adjudicate(fen, played[:-1])[1], (number, fen, played)
        endings[ending] += 1
    assert endings.keys() >= {"repetition", "perpetual-check", "perpetual-chase"}, endings
