"""Play two UCI engines against each other, and say how far apart they are.

    python -m experiments.match --games 200 --time 100 --output match.jsonl \\
        --engine name=new,cmd=jaxfish,option.Hash=16 \\
        --engine name=fairy,cmd=fairy-stockfish,ranks=1,option.UCI_Variant=xiangqi,option.Hash=16

Every opening is played twice, colours swapped. Every game is one line of the output file; the same command with
the same file goes on where it was interrupted, and more --games prolong a match. `engine_spec` explains how
engines are described, `rulebook` how games end, `elo` what the table's numbers mean.
"""

import argparse
import queue
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.engine_spec import EngineSpec, SpecError, parse_engine_spec
from experiments.match_log import RESULTS, GameRecord, LogError, MatchLog, summary_lines, table_line
from experiments.openings import (
    Opening,
    OpeningError,
    OpeningSettings,
    add_opening_arguments,
    make_openings,
    opening_settings,
)
from experiments.play import GameOutcome, Player, play_game
from experiments.rulebook import DEFAULT_MAX_PLIES, Repetitions, RuledGame, Rules
from experiments.time_control import TimeControlError, parse_time_control
from experiments.uci_client import EngineFailure

DEFAULT_TIME = "100"
DEFAULT_MARGIN_MS = 100.0
INTERRUPT_POLL_S = 0.5  # how often the main thread looks for Ctrl-C while it waits for games


@dataclass(frozen=True)
class MatchSettings:
    """What makes two logs belong to the same match. time: as `time_control` spells it."""

    engines: tuple[EngineSpec, EngineSpec]
    time: str
    margin_ms: float
    rules: Rules
    openings: OpeningSettings

    @property
    def names(self) -> tuple[str, str]:
        return self.engines[0].name, self.engines[1].name

    def settings(self) -> dict:
        """All of it as JSON knows it."""
        return {
            "engines": [engine.settings() for engine in self.engines],
            "time": self.time,
            "margin_ms": self.margin_ms,
            "repetitions": self.rules.repetitions,
            "max_plies": self.rules.max_plies,
            "openings": self.openings.settings(),
        }


class Match:
    """Plays the games that the log does not have yet, on `concurrency` threads with two engines each."""

    def __init__(self, settings: MatchSettings, log: MatchLog, concurrency: int):
        self._settings = settings
        self._log = log
        self._todo: queue.SimpleQueue = queue.SimpleQueue()
        self._done: queue.SimpleQueue = queue.SimpleQueue()  # records, and the failure of a worker
        self._stopping = threading.Event()
        self._teams = [self._create_team() for _ in range(concurrency)]

    def run(self, games: int) -> None:
        """Play until the log holds this many games."""
        finished = {record.game for record in self._log.records}
        missing = [game for game in range(games) if game not in finished]
        openings = make_openings(self._settings.openings, sorted({game // 2 for game in missing}))
        for game in missing:
            self._todo.put((game, openings[game // 2]))
        workers = [threading.Thread(target=self._work, args=(team,), daemon=True) for team in self._teams]
        for worker in workers:
            worker.start()
        try:
            for _ in missing:
                self._log.add(self._next_record())
                print(self._progress(games), flush=True)
        finally:
            self._stop(workers)

    def _create_team(self) -> tuple[Player, Player]:
        settings = self._settings
        first, second = (
            Player(engine.create_client(), parse_time_control(engine.time or settings.time, settings.margin_ms))
            for engine in settings.engines
        )
        return first, second

    def _work(self, team: tuple[Player, Player]) -> None:
        """Body of a worker: play games until none is left."""
        try:
            while not self._stopping.is_set():
                try:
                    number, opening = self._todo.get_nowait()
                except queue.Empty:
                    break
                self._done.put(self._play(team, number, opening))
        except BaseException as error:
            self._done.put(error)

    def _play(self, team: tuple[Player, Player], number: int, opening: Opening) -> GameRecord:
        """Even game numbers give White to the first engine."""
        white, black = team if number % 2 == 0 else reversed(team)
        for player in team:
            player.prepare()
        game = RuledGame(moves=opening.moves, rules=self._settings.rules)
        outcome = play_game(white, black, game)
        return _record(number, opening, (white.name, black.name), game, outcome)

    def _next_record(self) -> GameRecord:
        while True:
            try:
                item = self._done.get(timeout=INTERRUPT_POLL_S)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            return item

    def _progress(self, games: int) -> str:
        records = self._log.records
        last = records[-1]
        return (
            f"{len(records)}/{games}  {table_line(records, self._settings.names)}  "
            f"[game {last.game}: {last.white} - {last.black} {last.result}, {last.reason}, {last.plies} plies]"
        )

    def _stop(self, workers: Iterable[threading.Thread]) -> None:
        """End the engines, and with them whatever games still run."""
        self._stopping.set()
        for worker in workers:
            while worker.is_alive():  # it may just have started an engine
                self._kill_engines()
                worker.join(INTERRUPT_POLL_S)
        self._kill_engines()

    def _kill_engines(self) -> None:
        for team in self._teams:
            for player in team:
                player.client.kill()


def _record(number: int, opening: Opening, names: tuple[str, str], game: RuledGame, outcome: GameOutcome) -> GameRecord:
    return GameRecord(
        game=number,
        pair=number // 2,
        seed=opening.seed,
        white=names[0],
        black=names[1],
        result=RESULTS[outcome.white_points],
        reason=outcome.reason,
        plies=len(game.moves),
        opening_plies=len(opening.moves),
        slowest_ms=dict(zip(names, outcome.slowest_ms, strict=True)),
        moves=" ".join(game.moves),
        detail=outcome.detail,
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Play two UCI engines against each other.")
    parser.add_argument("--engine", action="append", type=parse_engine_spec, metavar="SPEC", required=True)
    parser.add_argument("--games", type=int, default=100, help="an even number (default %(default)s)")
    parser.add_argument("--time", default=DEFAULT_TIME, help="ms a move, or a clock as 1000+10 (default %(default)s)")
    parser.add_argument(
        "--margin", type=float, default=DEFAULT_MARGIN_MS, help="ms above it that lose (default %(default)s)"
    )
    parser.add_argument("--concurrency", type=int, default=1, help="games at a time (default %(default)s)")
    parser.add_argument("--output", type=Path, help="log of the games; an existing one is taken up")
    parser.add_argument("--repetitions", type=Repetitions, choices=list(Repetitions), default=Repetitions.JUDGED)
    parser.add_argument("--game-plies", type=int, default=DEFAULT_MAX_PLIES, help="then a draw (default %(default)s)")
    add_opening_arguments(parser)
    arguments = parser.parse_args()
    names = [engine.name for engine in arguments.engine]
    if len(names) != 2 or names[0] == names[1]:
        parser.error(f"The engines are {names}; expected two with different names.")
    if arguments.games < 2 or arguments.games % 2:
        parser.error(f"--games is {arguments.games}; expected an even number, as every opening is played twice.")
    if arguments.concurrency < 1:
        parser.error(f"--concurrency is {arguments.concurrency}; expected at least 1.")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    try:
        settings = MatchSettings(
            tuple(arguments.engine),
            str(parse_time_control(arguments.time)),
            arguments.margin,
            Rules(arguments.repetitions, arguments.game_plies),
            opening_settings(arguments),
        )
        log = MatchLog(arguments.output, settings.settings())
        Match(settings, log, arguments.concurrency).run(arguments.games)
    except (SpecError, TimeControlError, LogError, OpeningError, EngineFailure) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on with the match.", file=sys.stderr)
        return 130
    print("\n".join(summary_lines(log.records, settings.names)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
