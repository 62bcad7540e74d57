"""`Game.flipped`: the same position with the colours exchanged."""

import pytest

from games.xiangqi import START_FEN, Game
from games.xiangqi.geometry import MOVE_SHIFT, SQUARE_MASK, flip_ranks
from games.xiangqi.movegen import perft
from nnue_jax.numba_evaluator import NumbaEvaluator
from tests.support.games import random_walk
from tests.support.networks import random_network


def flipped_move(move: int) -> int:
    return flip_ranks(move & SQUARE_MASK) | flip_ranks(move >> MOVE_SHIFT) << MOVE_SHIFT


@pytest.mark.parametrize(
    ("fen", "expected"),
    [
        (START_FEN, START_FEN.replace(" w ", " b ")),
        ("2bak4/4a4/4R3b/7P1/6p2/p8/8r/3NB4/4A4/1c1AK4 w - - 15 49",
         "1C1ak4/4a4/3nb4/8R/P8/6P2/7p1/4r3B/4A4/2BAK4 b - - 15 49"),
        ("3k5/8R/9/9/9/9/9/9/9/R3K4 b - - 119 7", "r3k4/9/9/9/9/9/9/9/8r/3K5 w - - 119 7"),
    ],
)  # fmt: skip
def test_flipped_fens(fen, expected):
    assert Game(fen).flipped().fen() == expected


def test_flipping_twice_changes_nothing():
    for game in random_walk(seed=51, count=1500):
        flipped = game.flipped()
        assert flipped.side == 1 - game.side
        assert (flipped.rule60, flipped.in_check) == (game.rule60, game.in_check)
        assert flipped.flipped().fen() == game.fen() != flipped.fen()
        assert flipped.flipped().key == game.key


def test_flipped_moves_are_the_legal_ones():
    for game in random_walk(seed=52, count=1500):
        assert sorted(map(flipped_move, game.legal_moves())) == sorted(game.flipped().legal_moves())
    for game in random_walk(seed=53, count=40):
        assert perft(game.flipped().position, 2) == perft(game.position, 2)


@pytest.mark.parametrize("threats", [False, True])
def test_the_evaluation_does_not_change(threats):
    evaluator = NumbaEvaluator(random_network(32, threats=threats))
    for game in random_walk(seed=54, count=1500):
        assert evaluator.evaluate(game.flipped().position) == evaluator.evaluate(game.position), game.fen()


def test_the_history_is_dropped_and_the_game_stays():
    game = Game(moves=["h2e2", "h9g7", "h0g2", "i9h9"])
    before = game.fen()
    flipped = game.flipped()
    assert flipped.moves == flipped.past_keys == []
    assert flipped.checks == (0, 0)
    assert (game.fen(), len(game.moves)) == (before, 4)
    flipped.play("b9c7")
    assert flipped.fen() == "r1bakab1r/9/1cn1c1n2/p1p1p1p1p/9/9/P1P1P1P1P/1C4NC1/9/RNBAKABR1 w - - 5 4"


def test_a_counter_beyond_what_a_fen_may_say():
    game = Game("3k5/9/9/9/9/9/9/9/9/R3K4 w - - 118 100000", ["a0a1", "d9d8", "a1a2", "d8d9"])
    flipped = game.flipped()
    assert flipped.fen() == "4k4/9/r8/9/9/9/9/9/9/3K5 b - - 122 100002"
    assert flipped.game_ply == game.game_ply + 1
    assert flipped.flipped().fen() == game.fen()
