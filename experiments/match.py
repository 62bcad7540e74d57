"""A match between two UCI engines: every opening twice, with colours changed, and a table that grows.

    python experiments/match.py --games 100 --movetime 100 --output match.jsonl \\
        --engine "name=jaxfish,cmd=jaxfish,option.Hash=64" \\
        --engine "name=fairy,cmd=fairy-stockfish,ranks=1,option.UCI_Variant=xiangqi,option.Hash=64"

Each finished game is a line of the output file; the same command goes on where an interrupted one stopped. Legality
and results are judged by pyffish. A move that takes longer than the time and the margin loses the game.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

from experiments.openings import balanced_openings
from experiments.rulebook import legal_moves, piece_count, verdict
from experiments.uci_client import EngineFailure, EngineSpec, UciClient, parse_engine
from uci.engine import create_engine

SEARCH_TIMEOUT_S = 30


def play_game(players: tuple[UciClient, UciClient], fen: str, movetime_ms: int, margin_ms: int) -> dict:
    """One game; players[0] has White. `white` is White's points, `late_ms` the worst overrun of each player."""
    moves: list[str] = []
    late_ms = [0.0, 0.0]
    quiet_plies = 0
    first = 0 if fen.split()[1] == "w" else 1
    pieces = piece_count(fen, moves)
    for player in players:
        player.new_game()
    while True:
        side = (first + len(moves)) % 2
        end = verdict(fen, moves, quiet_plies)
        if end is None:
            try:
                outcome = players[side].search(fen, moves, f"movetime {movetime_ms}", SEARCH_TIMEOUT_S)
            except EngineFailure as failure:
                end = 0.0, str(failure)
            else:
                late_ms[side] = max(late_ms[side], outcome.elapsed_ms - movetime_ms)
                if outcome.best_move not in legal_moves(fen, moves):
                    end = 0.0, f"illegal move {outcome.best_move}"
                elif outcome.elapsed_ms > movetime_ms + margin_ms:
                    end = 0.0, "time"
        if end is not None:
            points, reason = end
            white = points if side == 0 else 1 - points
            return {"fen": fen, "moves": moves, "white": white, "reason": reason, "late_ms": late_ms}
        moves.append(outcome.best_move)
        left = piece_count(fen, moves)
        quiet_plies = quiet_plies + 1 if left == pieces else 0
        pieces = left


def elo(score: float) -> float:
    """Elo difference that expects `score` points a game."""
    score = min(max(score, 1e-6), 1 - 1e-6)
    return -400 * math.log10(1 / score - 1)


def summary(points: list[float], names: tuple[str, str]) -> str:
    """Table line from the first engine's points in each game, games 2k and 2k + 1 sharing an opening."""
    wins, draws, losses = (points.count(value) for value in (1.0, 0.5, 0.0))
    games = len(points)
    mean = sum(points) / games
    pairs = [(points[i] + points[i + 1]) / 2 for i in range(0, games - 1, 2)]
    error = 0.0
    if len(pairs) > 1:
        average = sum(pairs) / len(pairs)
        variance = sum((pair - average) ** 2 for pair in pairs) / (len(pairs) - 1)
        error = 1.96 * math.sqrt(variance / len(pairs))
    low, high = elo(mean - error), elo(mean + error)
    return (
        f"{names[0]} - {names[1]}: {games} games, +{wins} ={draws} -{losses}, {100 * mean:.1f} %, "
        f"Elo {elo(mean):+.0f} [{low:+.0f}, {high:+.0f}]"
    )


def _schedule(fens: list[str], games: int) -> Iterator[tuple[int, str, bool]]:
    """(number, opening, whether the first engine has White)."""
    for number in range(games):
        yield number, fens[number // 2], number % 2 == 0


def run_match(specs: tuple[EngineSpec, EngineSpec], args: argparse.Namespace) -> list[float]:
    """Play what the output file lacks; returns the first engine's points, game by game."""
    names = (specs[0].name, specs[1].name)
    records = [json.loads(line) for line in args.output.read_text().splitlines()] if args.output.exists() else []
    points = [record["points"] for record in records]
    fens = balanced_openings(create_engine(), (args.games + 1) // 2, args.seed)
    clients = [UciClient(spec) for spec in specs]
    with args.output.open("a") as output:
        for number, fen, first_is_white in _schedule(fens, args.games):
            if number < len(points):
                continue
            players = (clients[0], clients[1]) if first_is_white else (clients[1], clients[0])
            game = play_game(players, fen, args.movetime, args.margin)
            if not first_is_white:
                game["late_ms"].reverse()
            points.append(game["white"] if first_is_white else 1 - game["white"])
            output.write(json.dumps(game | {"number": number, "points": points[-1]}) + "\n")
            output.flush()
            print(f"{number + 1:4d} {game['reason']:24s} {summary(points, names)}", flush=True)
    for client in clients:
        client.quit()
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", required=True, type=parse_engine, help="twice")
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--movetime", type=int, default=100, help="milliseconds a move")
    parser.add_argument("--margin", type=int, default=100, help="milliseconds a move may be late")
    parser.add_argument("--seed", type=int, default=1, help="of the openings")
    parser.add_argument("--output", type=Path, required=True, help="JSON Lines, one game each")
    args = parser.parse_args()
    if len(args.engine) != 2:
        parser.error(f"There are {len(args.engine)} engines; expected two.")
    points = run_match(tuple(args.engine), args)
    print(summary(points, (args.engine[0].name, args.engine[1].name)))


if __name__ == "__main__":
    main()
