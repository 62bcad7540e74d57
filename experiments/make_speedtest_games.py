"""Play the games whose positions `speedtest` searches, and write them as the module uci/speedtest_games.py.

    python -m experiments.make_speedtest_games --seed 1 --nodes 100000

The engine plays itself in one thread, from balanced random openings and with a fixed number of nodes a move. A game is
cut at --max-plies or where a mate is in sight; one that ends before --min-plies gives way to one from the next opening.
The games depend on the arguments, the engine and its network alone.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from experiments.openings import MAX_PLIES, MIN_PLIES, Opening, OpeningError, random_opening
from games.xiangqi.game import Game
from games.xiangqi.repetition import judge_game
from nets import DEFAULT_NETWORK
from search.engine import Engine
from search.limits import Limits
from uci.engine import create_engine

OUTPUT = Path(__file__).resolve().parent.parent / "uci" / "speedtest_games.py"
JUDGE_DEPTH = 8
MAX_SCORE_CP = 60
MOVES_PER_LINE = 20


@dataclass(frozen=True)
class Settings:
    """nodes: of each move. Plies are counted from the end of the opening."""

    games: int
    seed: int
    nodes: int
    min_plies: int
    max_plies: int


@dataclass(frozen=True)
class PlayedGame:
    """moves: from the FEN, in UCI text."""

    fen: str
    moves: tuple[str, ...]


def play_games(engine: Engine, settings: Settings) -> list[PlayedGame]:
    """The first games that last long enough; OpeningError if no opening can be found."""
    played: list[PlayedGame] = []
    number = 0
    while len(played) < settings.games:
        opening = random_opening(
            f"{settings.seed}/{number}", MIN_PLIES, MAX_PLIES, lambda moves: _is_balanced(engine, moves)
        )
        number += 1
        game = play_game(engine, opening, settings)
        is_kept = len(game.moves) >= settings.min_plies
        print(f"{opening.seed}: {len(game.moves)} plies{'' if is_kept else ', too short'}", file=sys.stderr)
        if is_kept:
            played.append(game)
    return played


def play_game(engine: Engine, opening: Opening, settings: Settings) -> PlayedGame:
    """A game of the engine against itself from where the opening ends; what happened before is forgotten."""
    game = Game(Game(moves=opening.moves).fen())
    fen = game.fen()
    moves: list[str] = []
    engine.new_game()
    while len(moves) < settings.max_plies and judge_game(game).result == "none":
        engine.set_position(game)
        result = engine.go(Limits(nodes=settings.nodes)).wait()
        if result.report.score.is_mate:
            break
        moves.append(result.best_move)
        game.play(result.best_move)
    return PlayedGame(fen, tuple(moves))


def _is_balanced(engine: Engine, moves: tuple[str, ...]) -> bool:
    engine.new_game()
    engine.set_position(Game(moves=moves))
    score = engine.go(Limits(depth=JUDGE_DEPTH)).wait().report.score
    return not score.is_mate and abs(score.score_cp) <= MAX_SCORE_CP


def module_text(played: list[PlayedGame], settings: Settings) -> str:
    """Source of the module that holds the games."""
    lines = [
        '"""Games of the engine against itself, whose positions `speedtest` searches.',
        "",
        "Each is a FEN and the moves played from it. "
        f"Made with {settings.nodes} nodes a move and the network {DEFAULT_NETWORK.name} by",
        "",
        f"    python -m experiments.make_speedtest_games --games {settings.games} --seed {settings.seed} "
        f"--nodes {settings.nodes} --min-plies {settings.min_plies} --max-plies {settings.max_plies}",
        '"""',
        "",
        "GAMES = (",
    ]
    for game in played:
        lines += ["    (", f'        "{game.fen}",']
        rows = [game.moves[at : at + MOVES_PER_LINE] for at in range(0, len(game.moves), MOVES_PER_LINE)]
        texts = [" ".join(row) for row in rows]
        lines += [f'        "{text} "' for text in texts[:-1]]
        lines += [f'        "{texts[-1]}",', "    ),"]
    return "\n".join([*lines, ")", ""])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Play the games of speedtest, and write uci/speedtest_games.py.")
    parser.add_argument("--games", type=int, default=5, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=100_000, help="of each move (default %(default)s)")
    parser.add_argument("--min-plies", type=int, default=92, help="default %(default)s")
    parser.add_argument("--max-plies", type=int, default=104, help="default %(default)s")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="default: the module of the engine")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    settings = Settings(arguments.games, arguments.seed, arguments.nodes, arguments.min_plies, arguments.max_plies)
    try:
        played = play_games(create_engine(), settings)
    except OpeningError as error:
        print(error, file=sys.stderr)
        return 1
    arguments.output.write_text(module_text(played, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
