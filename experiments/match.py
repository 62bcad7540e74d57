"""Play two UCI engines against each other, and say how far apart they are.

    python -m experiments.match --games 200 --time 100 --output match.jsonl \\
        --engine name=new,cmd=jaxfish,option.Hash=16 \\
        --engine name=fairy,cmd=fairy-stockfish,ranks=1,option.UCI_Variant=xiangqi,option.Hash=16
    python -m experiments.match --sprt 0,10 --resign 800,4 --draw 10,8,80 --pgn match.pgn --output match.jsonl ...

Every opening is played twice, colours swapped. Every game is one line of the output file; the same command with
the same file goes on where it was interrupted, and more --games prolong a match. `engine_spec` explains how
engines are described, `rulebook` how games end, `adjudication` how they may end earlier, `elo` what the table's
numbers mean, and `sprt` the test that may end a match.
"""

import argparse
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from experiments.adjudication import (
    NO_ADJUDICATION,
    Adjudication,
    AdjudicationError,
    parse_draw_rule,
    parse_resign_rule,
)
from experiments.engine_spec import EngineSpec, SpecError, parse_engine_spec
from experiments.game_record import RESULTS, GameRecord
from experiments.live_table import LiveTable
from experiments.match_log import LogError, MatchLog, forfeit_lines
from experiments.openings import (
    Opening,
    OpeningError,
    OpeningSettings,
    add_opening_arguments,
    make_openings,
    opening_settings,
)
from experiments.pgn import PgnError, PgnFile
from experiments.play import GameOutcome, Player, play_game
from experiments.rulebook import DEFAULT_MAX_PLIES, Repetitions, RuledGame, Rules
from experiments.sprt import Sprt, SprtError, parse_sprt
from experiments.standing import Standing
from experiments.time_control import TimeControlError, parse_time_control
from experiments.uci_client import EngineFailure

DEFAULT_GAMES = 100
SPRT_GAMES = 20_000  # the most that are played where the SPRT is to end the match
DEFAULT_TIME = "100"
DEFAULT_MARGIN_MS = 100.0
INTERRUPT_POLL_S = 0.5  # how often the main thread looks for Ctrl-C while it waits for games
ERRORS = (
    SpecError,
    TimeControlError,
    LogError,
    PgnError,
    OpeningError,
    AdjudicationError,
    SprtError,
    EngineFailure,
    OSError,
)


@dataclass(frozen=True)
class MatchSettings:
    """What makes two logs belong to the same match. time: as `time_control` spells it."""

    engines: tuple[EngineSpec, EngineSpec]
    time: str
    margin_ms: float
    rules: Rules
    openings: OpeningSettings
    adjudication: Adjudication = NO_ADJUDICATION
    sprt: Sprt | None = None

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
            **self.adjudication.settings(),
            "sprt": self.sprt and self.sprt.settings(),
        }


class Match:
    """Plays the games of these numbers on `concurrency` threads with two engines each."""

    def __init__(self, settings: MatchSettings, games: Sequence[int], concurrency: int):
        self._settings = settings
        self._games = games
        self._todo: queue.SimpleQueue = queue.SimpleQueue()
        self._done: queue.SimpleQueue = queue.SimpleQueue()  # records, and the failure of a worker
        self._stopping = threading.Event()
        self._teams = [self._create_team() for _ in range(concurrency)]
        self._judged: dict[int, Opening] = {}
        if settings.openings.judge is not None:  # all before the first game, lest the judge slow the players down
            self._judged = make_openings(settings.openings, sorted({game // 2 for game in games}))

    def play(self) -> Iterator[GameRecord]:
        """Records in the order in which games end. Closing the iterator ends all engines."""
        for game in self._games:
            self._todo.put(game)
        workers = [threading.Thread(target=self._work, args=(team,), daemon=True) for team in self._teams]
        for worker in workers:
            worker.start()
        try:
            for _ in self._games:
                yield self._next_record()
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
                    number = self._todo.get_nowait()
                except queue.Empty:
                    break
                self._done.put(self._play(team, number))
        except BaseException as error:
            self._done.put(error)

    def _play(self, team: tuple[Player, Player], number: int) -> GameRecord:
        """Even game numbers give White to the first engine."""
        white, black = team if number % 2 == 0 else reversed(team)
        opening = self._opening(number // 2)
        for player in team:
            player.prepare()
        started = datetime.now(UTC)
        game = RuledGame(moves=opening.moves, rules=self._settings.rules)
        outcome = play_game(white, black, game, adjudication=self._settings.adjudication)
        return _record(number, opening, (white.name, black.name), game, outcome, started)

    def _opening(self, number: int) -> Opening:
        if self._settings.openings.judge is not None:
            return self._judged[number]
        return make_openings(self._settings.openings, [number])[number]

    def _next_record(self) -> GameRecord:
        while True:
            try:
                item = self._done.get(timeout=INTERRUPT_POLL_S)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            return item

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


def _record(
    number: int,
    opening: Opening,
    names: tuple[str, str],
    game: RuledGame,
    outcome: GameOutcome,
    started: datetime,
) -> GameRecord:
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
        fen=game.fens[0],
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def hold_match(settings: MatchSettings, log: MatchLog, pgn: PgnFile | None, games: int, concurrency: int) -> Standing:
    """Play until the log holds this many games or the SPRT ends, and keep log, PGN and table up to date."""
    standing = Standing.of(log.records, settings.names, settings.sprt)
    finished = {record.game for record in log.records}
    missing = [game for game in range(games) if game not in finished]
    if not missing or standing.accepted is not None:
        return standing
    match = Match(settings, missing, concurrency)
    table = LiveTable(standing, games)
    with closing(match.play()) as records:
        for record in records:
            log.add(record)
            if pgn is not None:
                pgn.add(record)
            standing.add(record)
            table.show(record)
            if standing.accepted is not None:
                break
    return standing


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Play two UCI engines against each other.",
        epilog="A value with a minus needs =, as in --sprt=-5,0.",
    )
    parser.add_argument("--engine", action="append", type=parse_engine_spec, metavar="SPEC", required=True)
    parser.add_argument("--games", type=int, help=f"an even number (default {DEFAULT_GAMES}, with SPRT {SPRT_GAMES})")
    parser.add_argument(
        "--time", default=DEFAULT_TIME, help="ms a move, a clock (1000+10) or nodes (20000n); default %(default)s"
    )
    parser.add_argument(
        "--margin", type=float, default=DEFAULT_MARGIN_MS, help="ms above it that lose (default %(default)s)"
    )
    parser.add_argument("--concurrency", type=int, default=1, help="games at a time (default %(default)s)")
    parser.add_argument("--output", type=Path, help="log of the games; an existing one is taken up")
    parser.add_argument("--pgn", type=Path, help="file for the games as PGN, next to --output")
    parser.add_argument("--repetitions", type=Repetitions, choices=list(Repetitions), default=Repetitions.JUDGED)
    parser.add_argument("--game-plies", type=int, default=DEFAULT_MAX_PLIES, help="then a draw (default %(default)s)")
    parser.add_argument("--sprt", metavar="ELO0,ELO1[,ALPHA,BETA]", help="stop once one of the two Elos is accepted")
    parser.add_argument("--resign", metavar="SCORE_CP,MOVES", help="lost when both engines say so for so long")
    parser.add_argument("--draw", metavar="SCORE_CP,MOVES,FROM_PLY", help="a draw when both engines say so for so long")
    add_opening_arguments(parser)
    arguments = parser.parse_args(words)
    if arguments.games is None:
        arguments.games = SPRT_GAMES if arguments.sprt else DEFAULT_GAMES
    _check_arguments(parser, arguments)
    return arguments


def _check_arguments(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    names = [engine.name for engine in arguments.engine]
    if len(names) != 2 or names[0] == names[1]:
        parser.error(f"The engines are {names}; expected two with different names.")
    if arguments.games < 2 or arguments.games % 2:
        parser.error(f"--games is {arguments.games}; expected an even number, as every opening is played twice.")
    if arguments.concurrency < 1:
        parser.error(f"--concurrency is {arguments.concurrency}; expected at least 1.")
    if arguments.pgn and not arguments.output:
        parser.error("--pgn needs --output, as the games are taken up from there.")


def match_settings(arguments: argparse.Namespace) -> MatchSettings:
    """What the arguments describe; an error of the part that cannot be read."""
    return MatchSettings(
        tuple(arguments.engine),
        str(parse_time_control(arguments.time)),
        arguments.margin,
        Rules(arguments.repetitions, arguments.game_plies),
        opening_settings(arguments),
        Adjudication(
            parse_resign_rule(arguments.resign) if arguments.resign else None,
            parse_draw_rule(arguments.draw) if arguments.draw else None,
        ),
        parse_sprt(arguments.sprt) if arguments.sprt else None,
    )


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    try:
        settings = match_settings(arguments)
        log = MatchLog(arguments.output, settings.settings())
        pgn = PgnFile(arguments.pgn, settings.settings(), log.records) if arguments.pgn else None
        standing = hold_match(settings, log, pgn, arguments.games, arguments.concurrency)
    except ERRORS as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on with the match.", file=sys.stderr)
        return 130
    print("\n".join([*standing.summary_lines(), *forfeit_lines(log.records)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
