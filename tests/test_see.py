"""Static exchange evaluation against the exchange played on a board."""

import numpy as np
import pytest

from games.jit import kernel
from games.memory import address_of
from games.xiangqi import Game
from games.xiangqi.geometry import parse_move
from games.xiangqi.movegen import MAX_MOVES, generate_all
from search.see import see_at_least
from tests.random_games import random_fens
from tests.reference.exchange import board_of, exchange_value


@kernel
def see_kernel(position, move, threshold):
    return see_at_least(position, move, threshold)


@kernel
def pseudo_legal_kernel(position, moves):
    return generate_all(position, moves, 0)


def pseudo_legal_moves(position) -> list[int]:
    moves = np.zeros(MAX_MOVES, np.int32)
    return moves[: pseudo_legal_kernel(position, address_of(moves))].tolist()


def test_equals_the_played_exchange():
    captures = 0
    for fen in random_fens(150, seed=3):
        game = Game(fen)
        position = game.position[0]
        board = board_of(position)
        for move in pseudo_legal_moves(position):
            value = exchange_value(board, game.side, move)
            if value < -5000:
                continue  # a king that captures what is guarded: not legal, so any answer will do
            captures += value > 0
            assert see_kernel(position, move, value), (fen, move, value)
            assert not see_kernel(position, move, value + 1), (fen, move, value)
    assert captures > 100


@pytest.mark.parametrize(
    ("fen", "move", "value"),
    [
        ("3k5/9/9/9/9/p8/9/9/9/R3K4 w - - 0 1", "a0a4", 144),  # a pawn for nothing
        ("3k5/9/9/9/r8/p8/9/9/9/R3K4 w - - 0 1", "a0a4", 144 - 1305),  # guarded from behind
        ("3k5/9/9/r8/9/p8/P8/9/9/C3K4 w - - 0 1", "a0a4", 144),  # over a screen that deters the recapture
        ("3k5/9/r8/9/9/n8/9/R8/R8/4K4 w - - 0 1", "a2a4", 720),  # doubled rooks win the exchange
        ("4k4/9/9/9/9/9/9/9/3R5/3K5 w - - 0 1", "d1d9", 0),  # the king behind it guards the rook
        ("4k4/9/9/9/9/9/9/9/3R5/5K3 w - - 0 1", "d1d9", -1305),  # from another file it does not
    ],
)
def test_known_exchanges(fen, move, value):
    position = Game(fen).position[0]
    assert see_kernel(position, parse_move(move), value)
    assert not see_kernel(position, parse_move(move), value + 1)
