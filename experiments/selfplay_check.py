"""Games of the engine against itself, with every move and every line checked by an independent rule book.

    python -m experiments.selfplay_check --games 100 --time 50
    python -m experiments.selfplay_check --games 200 --time 1000+10

Of every search it checks that

    the best move, the ponder move after it, and every line of every info line are legal,
    the best move is the first of the last line about the best line of play,
    the answer came within the time of the move and a margin of sending `go`, or before the flag fell,

and that no process failed. An illegal move is printed with the commands that led to it. Ends with status 1 if
there was any fault.

A late answer may be the machine's doing. So with it comes for how long, since the move before, some process had
to wait for a processor, where the system tells (Linux does): on an idle machine that is next to nothing.
"""

import argparse
import math
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from experiments.engine_spec import EngineSpec, parse_engine_spec
from experiments.openings import Opening, OpeningError, add_opening_arguments, make_openings, opening_settings
from experiments.play import FORFEITS, Player, play_game, root_position
from experiments.rulebook import DEFAULT_MAX_PLIES, Repetitions, RuledGame, Rules, first_illegal, is_legal_line
from experiments.time_control import TimeControl, parse_time_control
from experiments.uci_client import START_POSITION, EngineFailure, SearchOutcome

DEFAULT_GAMES = 100
DEFAULT_TIME = "50"
DEFAULT_MARGIN_MS = 50.0
PRESSURE_FILE = Path("/proc/pressure/cpu")  # Linux: time in which processes waited for a processor, in microseconds


@dataclass
class Inspection:
    """Observes searches, and collects what it saw and what was wrong.

    overruns_ms: beyond the time of each move, where it has one.
    """

    control: TimeControl
    searches: int = 0
    lines: int = 0
    line_moves: int = 0
    overruns_ms: list[float] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    game_name: str = ""
    _waited_ms: float | None = None

    def observe(self, game: RuledGame, player: Player, outcome: SearchOutcome) -> None:
        self.searches += 1
        for fault in self._line_faults(game, outcome):
            self.add_fault(f"{fault}: {_commands(game)}")
        if self.control.movetime_ms:
            self._note_overrun(game, outcome.elapsed_ms - self.control.movetime_ms)
        self._waited_ms = processor_wait_ms()

    def _note_overrun(self, game: RuledGame, overrun_ms: float) -> None:
        self.overruns_ms.append(overrun_ms)
        if overrun_ms > self.control.margin_ms:
            self.add_fault(f"{overrun_ms:.1f} ms late at ply {len(game.moves)} of {self.game_name}{self._excuse()}")

    def _excuse(self) -> str:
        """What the machine was doing since the search before."""
        now_ms = processor_wait_ms()
        if now_ms is None or self._waited_ms is None:
            return ""
        return f", while processes waited {now_ms - self._waited_ms:.1f} ms for a processor"

    def add_fault(self, text: str) -> None:
        self.faults.append(text)
        print(f"FAULT {text}", flush=True)

    def _line_faults(self, game: RuledGame, outcome: SearchOutcome) -> list[str]:
        """Illegal moves in what the engine said; lines that were already checked are not checked again."""
        faults = []
        answer = tuple(move for move in (outcome.best_move, outcome.ponder_move) if move)
        lines = {info.pv: info.text for info in outcome.infos if info.pv}
        for line, text in {answer: "bestmove " + " ponder ".join(answer), **lines}.items():
            self.lines += 1
            self.line_moves += len(line)
            if not is_legal_line(game.fen, line):
                at = first_illegal(game.fen, line)
                faults.append(f"illegal move {'(none)' if at is None else line[at]} in '{text}'")
        if outcome.best_move is None:
            faults.append("no best move although there are legal moves")
        last = outcome.last_scored
        if last is None or last.pv[:1] != answer[:1]:
            faults.append(f"best move {outcome.best_move} does not begin the last line '{last and last.text}'")
        return faults

    def summary(self, games: int) -> str:
        overruns = sorted(self.overruns_ms) or [0.0]
        late = sum(overrun > self.control.margin_ms for overrun in self.overruns_ms)
        endings = ", ".join(f"{count} {reason}" for reason, count in self.endings.most_common())
        return (
            f"{games} games: {endings}\n"
            f"{self.searches} searches, {self.lines} different lines with {self.line_moves} moves\n"
            f"overrun in ms: mean {mean(overruns):.1f}, 99 % below {overruns[int(0.99 * len(overruns))]:.1f}, "
            f"worst {overruns[-1]:.1f}, {late} above {self.control.margin_ms:g}\n"
            f"{len(self.faults)} faults"
        )


def _commands(game: RuledGame) -> str:
    """The position in which a search was wrong, as an engine is told."""
    root = root_position(game)
    words = ["position", root if root == START_POSITION else f"fen {root}"]
    return " ".join([*words, *(["moves", *game.moves] if game.moves else [])])


def processor_wait_ms() -> float | None:
    """Time since the system started in which some process waited for a processor; None if the system does not tell."""
    try:
        some = PRESSURE_FILE.read_text().splitlines()[0]  # some avg10=0.00 avg60=0.00 avg300=0.00 total=123456
    except OSError:
        return None
    return int(some.rpartition("total=")[2]) / 1000


def check_games(spec: EngineSpec, openings: list[Opening], rules: Rules, inspection: Inspection) -> None:
    """Play one game from each opening; the engine meets itself in two processes.

    A late answer to a fixed time is noted, but loses no game; a fallen flag does.
    """
    control = inspection.control
    if control.movetime_ms:
        control = replace(control, margin_ms=math.inf)
    players = tuple(Player(spec.create_client(), control) for _ in range(2))
    try:
        for number, opening in enumerate(openings, 1):
            for player in players:
                player.prepare()
            game = RuledGame(moves=opening.moves, rules=rules)
            inspection.game_name = f"game {number} (seed {opening.seed})"
            outcome = play_game(*players, game, inspection.observe)
            inspection.endings[outcome.reason] += 1
            if outcome.reason in FORFEITS:
                inspection.add_fault(f"{inspection.game_name}: {outcome.detail}")
            print(f"{number}/{len(openings)}  {outcome.reason}, {len(game.moves)} plies, slowest {outcome.slowest_ms}")
            sys.stdout.flush()
    finally:
        for player in players:
            player.client.quit()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Let an engine play itself, and check all it says.")
    parser.add_argument("--engine", type=parse_engine_spec, metavar="SPEC", default=default_spec())
    parser.add_argument("--games", type=int, default=DEFAULT_GAMES, help="default %(default)s")
    parser.add_argument("--time", default=DEFAULT_TIME, help="ms a move, or a clock as 1000+10 (default %(default)s)")
    parser.add_argument(
        "--margin", type=float, default=DEFAULT_MARGIN_MS, help="ms above it that are a fault (default %(default)s)"
    )
    parser.add_argument("--game-plies", type=int, default=DEFAULT_MAX_PLIES, help="then a draw (default %(default)s)")
    add_opening_arguments(parser)
    return parser.parse_args()


def default_spec() -> EngineSpec:
    """The engine of this environment."""
    return EngineSpec("jaxfish", f"{shlex.quote(sys.executable)} -m uci.main")


def main() -> int:
    arguments = parse_arguments()
    inspection = Inspection(parse_time_control(arguments.time, arguments.margin))
    rules = Rules(Repetitions.JUDGED, arguments.game_plies)
    try:
        openings = make_openings(opening_settings(arguments), list(range(arguments.games)))
        check_games(arguments.engine, list(openings.values()), rules, inspection)
    except (EngineFailure, OpeningError) as error:
        inspection.add_fault(str(error))
    except KeyboardInterrupt:
        inspection.add_fault("interrupted")
    print(inspection.summary(sum(inspection.endings.values())))
    return 1 if inspection.faults else 0


if __name__ == "__main__":
    sys.exit(main())
