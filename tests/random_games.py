"""Positions and games for tests, the same in every run."""

import random
from collections.abc import Iterator

from games.xiangqi import Game
from games.xiangqi.geometry import move_text


def random_game(seed: int, plies: int) -> Iterator[Game]:
    """The positions of one random game, as the same Game object after each move, start position included."""
    chooser = random.Random(seed)
    game = Game()
    yield game
    for _ in range(plies):
        moves = game.legal_moves()
        if not moves or game.rule60 > 110:
            return
        game.play(move_text(chooser.choice(moves)))
        yield game


def random_fens(count: int, seed: int = 0, plies: int = 120, stride: int = 7) -> list[str]:
    """FENs from random games, openings and bare endings among them."""
    fens: list[str] = []
    while len(fens) < count:
        fens += [game.fen() for ply, game in enumerate(random_game(seed, plies)) if ply % stride == 3]
        seed += 1
    return fens[:count]
