"""Making an engine ready to play: the default network, and every kernel compiled before it is needed."""

import os
from pathlib import Path

from games.xiangqi.game import Game
from games.xiangqi.movegen import checkers, perft
from nets import DEFAULT_NETWORK
from nnue_jax.network_file import read_network
from search.engine import Engine
from search.limits import Limits

WARM_UP_MOVES = ("h2e2",)


def create_engine(network_file: str | os.PathLike = "") -> Engine:
    """An engine whose kernels are all loaded or compiled; NetworkError if there is no such network."""
    engine = Engine(read_network(find_network(os.fspath(network_file))))
    game = Game(moves=WARM_UP_MOVES)
    perft(game.position, 2)
    checkers(game.position)
    warm_up(engine)
    return engine


def warm_up(engine: Engine) -> None:
    """Load or compile what a search needs, with the backend that the engine has."""
    game = engine.game
    engine.set_position(Game(moves=WARM_UP_MOVES))
    engine.go(Limits(depth=1)).wait()  # a line of one move also asks the table for a reply
    engine.set_position(game)
    engine.new_game()


def find_network(name: str) -> Path:
    """The file that a user means: the default for an empty name, else as named, else beside the networks we ship."""
    if not name:
        return DEFAULT_NETWORK
    path = Path(name)
    shipped = DEFAULT_NETWORK.parent / path.name
    return shipped if not path.exists() and path.name == name and shipped.exists() else path
