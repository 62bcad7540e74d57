"""The judge's verdicts from Python: perpetual check and chase, repetition, the 60-move rule, dead material."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from games.jit import kernel
from games.memory import address_of
from games.xiangqi.chase import threatened_kernel
from games.xiangqi.fen import SIDE_LETTERS, PositionError, parse_fen
from games.xiangqi.game import Game
from games.xiangqi.geometry import PIECES, square_name
from games.xiangqi.judge import FINAL, KINDS_OF_VERDICT, judge, kind_of_verdict, result_of, victims_of
from games.xiangqi.movegen import MAX_MOVES

MATE_VALUE = 32000
RESULTS = ("none", "draw", "win", "loss")
# A move list, the answers to one of its moves, and the answers to those.
_SCRATCH_MOVES = 3 * MAX_MOVES


@dataclass(frozen=True)
class Verdict:
    """The judge's opinion of a position, for the side to move.

    result    "none", "draw", "win" or "loss"
    final     False for a win or loss that the offender can still avoid by deviating
    score     None without a result, otherwise in internal units: 0, or a mate value less the plies from the root
    kind      what happened, one of judge.KINDS_OF_VERDICT
    victims   squares, in words, on which the perpetually chased pieces stand
    """

    result: str
    final: bool
    score: int | None
    kind: str
    victims: tuple[str, ...] = ()


@kernel
def _judge_kernel(position, line, last, ply, counters, moves):
    return judge(position, line, last, ply, counters, moves, 0)


def judge_game(game: Game, ply: int = 0) -> Verdict:
    """Judge the present position of a game, `ply` plies from the root of a search."""
    moves = np.zeros(_SCRATCH_MOVES, np.int32)
    word = int(_judge_kernel(game.position[0], game.line[0], game.last, ply, game.counters[0], address_of(moves)))
    result = RESULTS[result_of.py_func(word)]
    score = {"none": None, "draw": 0, "win": MATE_VALUE - ply, "loss": ply - MATE_VALUE}[result]
    victims = _squares_of(game.position, victims_of.py_func(word))
    return Verdict(result, word & FINAL != 0, score, KINDS_OF_VERDICT[kind_of_verdict.py_func(word)], victims)


def adjudicate(fen: str, moves: Iterable[str] = (), ply: int = 0) -> Verdict:
    """Judge the position after `moves` from `fen`, `ply` plies from the root of a search.

    With ply 0 only a third occurrence counts; in a search, a second one after the root does, too. PositionError for a
    FEN or move that is refused.
    """
    return judge_game(Game(fen, moves), ply)


def threatened(fen: str, color: str) -> list[str]:
    """Sorted squares of the enemy pieces that the side "w" or "b" threatens in the sense of the chase rule."""
    if color not in tuple(SIDE_LETTERS):
        raise PositionError(f"The side is '{color}'; expected w or b.")
    position = parse_fen(fen).position
    moves = np.zeros(_SCRATCH_MOVES, np.int32)
    pieces = threatened_kernel(position[0], SIDE_LETTERS.index(color), address_of(moves))
    return list(_squares_of(position, int(pieces)))


def _squares_of(position: np.ndarray, pieces: int) -> tuple[str, ...]:
    squares = position["square_of"][0]
    return tuple(sorted(square_name(int(squares[piece])) for piece in range(PIECES) if pieces >> piece & 1))
