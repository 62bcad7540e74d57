"""Openings for matches: a few random moves from the start position, the same for the same seed."""

import random

from games.xiangqi import Game
from games.xiangqi.geometry import move_text
from search.engine import Engine
from search.limits import Limits

MIN_PLIES, MAX_PLIES = 6, 10
MAX_IMBALANCE_CP = 60
JUDGING_NODES = 20_000


def random_opening(seed: int) -> Game:
    chooser = random.Random(seed)
    game = Game()
    for _ in range(chooser.randint(MIN_PLIES, MAX_PLIES)):
        game.play(move_text(chooser.choice(game.legal_moves())))
    return game


def is_balanced(engine: Engine, game: Game) -> bool:
    engine.new_game()
    engine.set_position(game)
    score = engine.go(Limits(nodes=JUDGING_NODES)).wait().report.score
    return not score.is_mate and abs(score.score_cp) <= MAX_IMBALANCE_CP


def balanced_openings(engine: Engine, count: int, seed: int) -> list[str]:
    """FENs of `count` different openings that a short search calls even."""
    fens: list[str] = []
    while len(fens) < count:
        game = random_opening(seed)
        seed += 1
        if not game.in_check and game.legal_moves() and is_balanced(engine, game) and game.fen() not in fens:
            fens.append(game.fen())
    return fens
