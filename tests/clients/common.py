"""What games under clients share: a referee who knows our rules, opponents, positions, and the end of a process."""

import random
import subprocess
from collections.abc import Callable

from games.xiangqi import START_FEN, Game
from games.xiangqi.geometry import WHITE, move_text
from games.xiangqi.repetition import judge_game

Player = Callable[[Game], str]

MATED = "3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1"
WON_ENDGAME = "3C1a1c1/9/C2kbN3/4P4/9/9/9/9/r4p3/4K4 w - - 0 1"  # White mates in five moves
DEPTH_OF_WIN = 12  # finds it with plies to spare

TIMEOUT_S = 60
PLY_LIMIT = 160
NO_MOVE = "no legal move"
LIMIT = "ply limit"


def play_game(white: Player, black: Player, fen: str = START_FEN, ply_limit: int = PLY_LIMIT) -> tuple[Game, str]:
    """(game, how it ended): NO_MOVE, a kind of verdict, or LIMIT; PositionError for a move that is not legal."""
    game = Game(fen)
    players = (white, black)
    while len(game.moves) < ply_limit:
        ending = _ending(game)
        if ending:
            return game, ending
        game.play(players[game.side](game))
    return game, _ending(game) or LIMIT


def play_random_movers(player: Player, colour: int, games: int) -> list[str]:
    """Games of a player that is told of no history, so that positions may recur; how they ended, each by the rules."""
    endings = []
    for seed in range(games):
        players = (player, random_player(seed))
        game, ending = play_game(*(players if colour == WHITE else players[::-1]))
        assert ending != NO_MOVE or game.side != colour, "mated by a random mover"
        endings.append(ending)
    return endings


def _ending(game: Game) -> str:
    if not game.legal_moves():
        return NO_MOVE
    verdict = judge_game(game)
    return verdict.kind if verdict.final else ""


def random_player(seed: int) -> Player:
    rng = random.Random(seed)
    return lambda game: rng.choice(game.legal_move_texts())


def move_texts(game: Game) -> list[str]:
    """The moves played, as UCI text."""
    return [move_text(move) for move in game.moves]


def short_fen(game: Game) -> str:
    """Placement and side to move: all of a FEN that the libraries of these clients write."""
    return " ".join(game.fen().split()[:2])


def exit_status(process: subprocess.Popen) -> int:
    """How a process ended that was told to; one that stays is killed, and is an error."""
    try:
        return process.wait(TIMEOUT_S)
    finally:
        process.kill()
