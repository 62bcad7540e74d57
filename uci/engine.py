"""Making an engine ready to play: the default network, and every kernel compiled before it is needed."""

import os

from games.xiangqi.game import Game
from games.xiangqi.movegen import checkers, perft
from nets import DEFAULT_NETWORK
from nnue_jax.network_file import read_network
from search.engine import Engine
from search.limits import Limits

WARM_UP_MOVES = ("h2e2",)


def create_engine(network_file: str | os.PathLike = DEFAULT_NETWORK) -> Engine:
    """An engine with a network, whose kernels are all loaded or compiled; NetworkError if there is no such network."""
    engine = Engine(read_network(network_file))
    game = Game(moves=WARM_UP_MOVES)
    perft(game.position, 2)
    checkers(game.position)
    engine.set_position(game)
    engine.go(Limits(depth=1)).wait()  # a line of one move also asks the table for a reply
    engine.set_position(Game())
    engine.new_game()
    return engine
