"""Games of the engine against itself, with every move and every line checked by an independent rule book.

    python experiments/selfplay_check.py --games 100 --movetime 50

Ends with status 1 if a move or a line was illegal, an engine failed, or a move was late.
"""

import argparse
import sys
from dataclasses import dataclass, field

from experiments.openings import balanced_openings
from experiments.rulebook import first_illegal, legal_moves, piece_count, verdict
from experiments.uci_client import EngineFailure, EngineSpec, UciClient
from uci.engine import create_engine

SEARCH_TIMEOUT_S = 30


@dataclass
class Tally:
    """What was seen, and what was wrong."""

    games: int = 0
    moves: int = 0
    lines: int = 0
    worst_late_ms: float = 0.0
    late_moves: int = 0
    faults: list[str] = field(default_factory=list)


def check_game(client: UciClient, fen: str, movetime_ms: int, margin_ms: int, tally: Tally) -> str:
    """Play one game; returns the reason for its end."""
    moves: list[str] = []
    quiet_plies = 0
    client.new_game()
    while (end := verdict(fen, moves, quiet_plies)) is None:
        outcome = client.search(fen, moves, f"movetime {movetime_ms}", SEARCH_TIMEOUT_S)
        late_ms = outcome.elapsed_ms - movetime_ms
        tally.worst_late_ms = max(tally.worst_late_ms, late_ms)
        if late_ms > margin_ms:
            tally.late_moves += 1
            tally.faults.append(f"{fen} moves {' '.join(moves)}: {late_ms:.0f} ms late")
        for line in outcome.lines:
            tally.lines += 1
            wrong = first_illegal(fen, moves, line)
            if wrong is not None:
                tally.faults.append(f"{fen} moves {' '.join(moves)}: {line[wrong]} in {' '.join(line)}")
        if outcome.best_move not in legal_moves(fen, moves):
            tally.faults.append(f"{fen} moves {' '.join(moves)}: best move {outcome.best_move}")
            return "illegal move"
        before = piece_count(fen, moves)
        moves.append(outcome.best_move)
        quiet_plies = quiet_plies + 1 if piece_count(fen, moves) == before else 0
        tally.moves += 1
    return end[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--movetime", type=int, default=50, help="milliseconds a move")
    parser.add_argument("--margin", type=int, default=50, help="milliseconds a move may be late")
    parser.add_argument("--seed", type=int, default=1000, help="of the openings")
    args = parser.parse_args()
    tally = Tally()
    client = UciClient(EngineSpec("jaxfish", (sys.executable, "-m", "uci.main")))
    for number, fen in enumerate(balanced_openings(create_engine(), args.games, args.seed), 1):
        try:
            reason = check_game(client, fen, args.movetime, args.margin, tally)
        except EngineFailure as failure:
            tally.faults.append(str(failure))
            break
        tally.games += 1
        print(f"{number:4d} {reason:24s} moves {tally.moves} worst {tally.worst_late_ms:.1f} ms late", flush=True)
    client.quit()
    for fault in tally.faults:
        print(f"FAULT {fault}")
    print(
        f"{tally.games} games, {tally.moves} moves, {tally.lines} lines, {len(tally.faults)} faults, "
        f"worst {tally.worst_late_ms:.1f} ms late"
    )
    return 1 if tally.faults or tally.games < args.games else 0


if __name__ == "__main__":
    sys.exit(main())
