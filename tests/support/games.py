"""Random games, as a source of positions that no test was written for."""

import random
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np

from games.xiangqi import START_FEN, Game
from games.xiangqi.geometry import move_text
from tests.support.golden import all_fens

FULL_GAME_PLIES = 200
CONTINUATION_PLIES = 30


def play_random_moves(game: Game, rng: random.Random, plies: int) -> Iterator[Game]:
    """Play up to `plies` random moves, and yield the game before the first and after each."""
    yield game
    for _ in range(plies):
        moves = game.legal_moves()
        if not moves:
            return
        game.play(move_text(rng.choice(moves)))
        yield game


def random_games(seed: int) -> Iterator[Iterator[Game]]:
    """Games without end: whole ones from the start alternate with short ones from recorded positions."""
    rng = random.Random(seed)
    fens = all_fens()
    rng.shuffle(fens)
    for fen in cycle(fens):
        yield play_random_moves(Game(START_FEN), rng, FULL_GAME_PLIES)
        for _ in range(FULL_GAME_PLIES // CONTINUATION_PLIES):
            yield play_random_moves(Game(fen), rng, CONTINUATION_PLIES)


def random_walk(seed: int, count: int) -> Iterator[Game]:
    """`count` stops of random games; the game goes on from the one to the next."""
    return islice((game for moments in random_games(seed) for game in moments), count)


def random_positions(seed: int, count: int) -> list[np.ndarray]:
    """`count` POSITION arrays [1]."""
    return [game.position.copy() for game in random_walk(seed, count)]
