"""`speedtest`: positions of whole games, searched for fixed times, to compare machines and settings.

The positions are those before the moves of one side in games of the engine against itself. As in a game, the table is
kept from one to the next and the later moves get less time; the positions and their times depend on `seconds` alone.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from games.memory import huge_page_bytes
from games.processors import available_processors
from games.xiangqi.game import Game
from search.engine import Engine
from search.limits import Limits
from search.processors import MAX_THREADS
from search.transposition import MIB
from uci import output
from uci.bench import check_count, search_position, whole_number
from uci.compiler import versions
from uci.speedtest_games import GAMES

HASH_MIB_PER_THREAD = 128
DEFAULT_SECONDS = 150
WARM_UP_POSITIONS = 3
LABEL_WIDTH = 27


@dataclass(frozen=True)
class SpeedtestSettings:
    threads: int
    hash_mib: int
    seconds: int


@dataclass(frozen=True)
class Task:
    """A position and how long it is searched. is_first: whether a game begins with it."""

    game: Game
    movetime_ms: int
    is_first: bool


@dataclass
class Totals:
    """What the searches so far came to.

    single_search, single_game: hashfull after each search, of what that search wrote and of what the game wrote.
    """

    nodes: int = 0
    time_s: float = 0.0
    single_search: list[int] = field(default_factory=list)
    single_game: list[int] = field(default_factory=list)

    @property
    def positions(self) -> int:
        return len(self.single_search)


def parse_speedtest(words: list[str], processors: int) -> SpeedtestSettings:
    """The settings from the words after `speedtest`; the threads are one for each processor if they are not given."""
    check_count(words, 3, "speedtest")
    names = ("number of threads", "hash size", "number of seconds")
    numbers = [whole_number(word, f"{name} for speedtest") for word, name in zip(words, names, strict=False)]
    threads = numbers[0] if numbers else min(processors, MAX_THREADS)
    defaults = [threads, HASH_MIB_PER_THREAD * threads, DEFAULT_SECONDS]
    return SpeedtestSettings(*numbers, *defaults[len(numbers) :])


def run_speedtest(engine: Engine, words: list[str], is_stopped: Callable[[], bool]) -> None:
    """Warm up, search every position, and report on standard error.

    words: those after `speedtest`. When `is_stopped` says so, no further position is searched, and the report is about
    those that were. BenchError for bad arguments, before anything is changed. Threads and Hash keep the new values.
    """
    settings = parse_speedtest(words, len(available_processors()))
    engine.set_threads(settings.threads)
    engine.set_hash(settings.hash_mib)
    engine.new_game()
    tasks = list(speedtest_tasks(settings.seconds))
    _search_tasks(engine, tasks[:WARM_UP_POSITIONS], is_stopped, "Warmup position")
    totals = _search_tasks(engine, tasks, is_stopped, "Position")
    output.error_line("\n===========================")
    for line in _report_lines(engine, settings, words, totals):
        output.error_line(line)
    if totals.positions < len(tasks):
        output.error_line(_line("Stopped after", f"{totals.positions}/{len(tasks)} positions"))


def movetimes_ms(lengths: Sequence[int], seconds: int) -> list[int]:
    """Milliseconds for each position of games of these lengths, one game after the other; in all exactly `seconds`.

    They fall within a game as they do in play.
    """
    shares = [50_000 / (number + 15) for length in lengths for number in range(1, length + 1)]
    sums = list(itertools.accumulate(shares))
    ends = [round(1000 * seconds * part / sums[-1]) for part in sums]
    return [end - start for start, end in itertools.pairwise([0, *ends])]


def speedtest_tasks(seconds: int) -> Iterator[Task]:
    """All positions in their order, each with the game that led to it."""
    games = [(fen, moves.split()) for fen, moves in GAMES]
    stops = [range(0, len(moves), 2) for _, moves in games]
    times = iter(movetimes_ms([len(plies) for plies in stops], seconds))
    for (fen, moves), plies in zip(games, stops, strict=True):
        for ply in plies:
            yield Task(Game(fen, moves[:ply]), next(times), is_first=ply == 0)


def _search_tasks(engine: Engine, tasks: list[Task], is_stopped: Callable[[], bool], label: str) -> Totals:
    """Search the positions, each game with an empty table, and show which one it is."""
    totals = Totals()
    for number, task in enumerate(tasks, 1):
        if is_stopped():
            break
        _show_progress(f"{label} {number}/{len(tasks)}")
        if task.is_first:
            engine.new_game()
        engine.set_position(task.game)
        start = time.perf_counter()
        result = search_position(engine, Limits(movetime_ms=task.movetime_ms), is_stopped)
        totals.time_s += time.perf_counter() - start
        totals.nodes += result.report.nodes
        totals.single_search.append(engine.table.hashfull())
        totals.single_game.append(engine.table.hashfull(any_generation=True))
    output.error_line("")
    return totals


def _show_progress(text: str) -> None:
    """Write over the line that shows the progress."""
    sys.stderr.write(f"\r{text}")
    sys.stderr.flush()


def _report_lines(engine: Engine, settings: SpeedtestSettings, words: list[str], totals: Totals) -> list[str]:
    policy = engine.numa_policy
    software = versions()
    filled = f"speedtest {settings.threads} {settings.hash_mib} {settings.seconds}"
    return [
        _line("Version", f"jaxfish {software.pop('jaxfish')}"),
        *(_line(name, value) for name, value in software.items()),
        _line("Backend", "numba" if engine.evaluator is None else engine.evaluator.name),
        _line("Network", str(engine.network.architecture)),
        _line("Large pages", _large_pages(engine)),
        _line("User invocation", " ".join(["speedtest", *words])),
        _line("Filled invocation", filled),
        _line("Available processors", policy.processors_text()),
        _line("Thread count", str(settings.threads)),
        _line("Thread binding", policy.binding_text(settings.threads)),
        _line("TT size [MiB]", str(settings.hash_mib)),
        "Hash max, avg [per mille]  :",
        _line("    single search", _maximum_and_average(totals.single_search)),
        _line("    single game", _maximum_and_average(totals.single_game)),
        _line("Total nodes searched", str(totals.nodes)),
        _line("Total search time [s]", f"{totals.time_s:.3f}"),
        _line("Nodes/second", str(int(totals.nodes / max(totals.time_s, 0.001)))),
    ]


def _line(label: str, value: str) -> str:
    return f"{label:<{LABEL_WIDTH}}: {value}"


def _large_pages(engine: Engine) -> str:
    """Whether the transposition table, all of which is in use by now, lies on them."""
    size = huge_page_bytes(engine.table.words)
    if size is None:
        return "unknown"
    return f"yes ({size // MIB} of {engine.table.hash_mib} MiB)" if size else "no"


def _maximum_and_average(readings: list[int]) -> str:
    return f"{max(readings)}, {sum(readings) // len(readings)}" if readings else "0, 0"
