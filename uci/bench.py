"""`bench`: a set of positions, each examined within the same limit; its node total is the engine's fingerprint."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from games.xiangqi.fen import PositionError
from games.xiangqi.game import Game
from games.xiangqi.movegen import MAX_PERFT_DEPTH
from search.engine import Engine
from search.limits import Limits, Result
from uci import output, text
from uci.bench_positions import POSITIONS
from uci.parsing import parse_position
from uci.perft import count_lines

BUILT_IN, CURRENT = "default", "current"
LIMIT_FIELDS = {"depth": "depth", "nodes": "nodes", "movetime": "movetime_ms", "mate": "mate"}  # of Limits, by type
LIMIT_TYPES = ("depth", "perft", "nodes", "movetime", "mate", "eval")
MAX_NUMBER = 10**12  # of anything in the arguments: 32 years of milliseconds

Position = Game | tuple[str, ...]  # or the words of an option that is set in its place


class BenchError(ValueError):
    """Arguments that make no bench or speedtest, or a position file that cannot be used; the message is a sentence."""


@dataclass(frozen=True)
class BenchSettings:
    """source: `default`, `current` or a file. limit: plies, nodes, milliseconds or moves, as limit_type says."""

    hash_mib: int = 16
    threads: int = 1
    limit: int = 13
    source: str = BUILT_IN
    limit_type: str = "depth"


def parse_bench(words: list[str]) -> BenchSettings:
    """The settings from the words after `bench`; what is missing has its default."""
    check_count(words, 5, "bench")
    numbers = [
        whole_number(word, f"{name} for bench")
        for word, name in zip(words, ("hash size", "number of threads", "limit"), strict=False)
    ]
    settings = BenchSettings(*numbers, *words[3:])
    if settings.limit_type not in LIMIT_TYPES:
        raise BenchError(
            f"'{settings.limit_type}' is no limit type for bench; expected one of {', '.join(LIMIT_TYPES)}."
        )
    if settings.limit_type == "perft" and settings.limit > MAX_PERFT_DEPTH:
        raise BenchError(f"'{settings.limit}' is no depth for perft; expected 1 to {MAX_PERFT_DEPTH}.")
    return settings


def check_count(words: list[str], most: int, command: str) -> None:
    """BenchError if there are more words than `most`."""
    if len(words) > most:
        raise BenchError(f"'{words[most]}' is one argument too many for {command}; expected at most {most}.")


def whole_number(word: str, meaning: str) -> int:
    """The number from 1 to MAX_NUMBER that a word spells; `meaning` completes the error's sentence."""
    is_number = word.isascii() and word.isdigit() and len(word) <= len(str(MAX_NUMBER))
    if not (is_number and 1 <= int(word) <= MAX_NUMBER):
        raise BenchError(f"'{word}' is no {meaning}; expected a whole number from 1 to {MAX_NUMBER}.")
    return int(word)


def run_bench(
    engine: Engine,
    words: list[str],
    is_stopped: Callable[[], bool],
    set_option: Callable[[list[str]], None],
    evaluation_lines: Callable[[Game], list[str]],
) -> None:
    """Examine every position, with the results on standard output and the totals on standard error.

    words: those after `bench`. set_option gets the words after `setoption`, evaluation_lines says what `eval` prints.
    When `is_stopped` says so, no further position is examined. BenchError for bad arguments or files, before anything
    is changed. Threads and Hash keep the new values.
    """
    settings = parse_bench(words)
    positions = _positions(settings.source, engine.game)
    count = sum(isinstance(position, Game) for position in positions)
    engine.set_threads(settings.threads)
    engine.set_hash(settings.hash_mib)
    engine.new_game()
    nodes = number = 0
    start = time.perf_counter()
    for position in positions:
        if is_stopped():
            break
        if not isinstance(position, Game):
            set_option(list(position))
            continue
        number += 1
        output.error_line(f"\nPosition: {number}/{count} ({position.fen()})")
        engine.set_position(position)
        nodes += _examine(engine, settings, is_stopped, evaluation_lines)
    time_ms = int(1000 * (time.perf_counter() - start)) + 1
    output.error_line("\n===========================")
    output.error_line(f"Total time (ms) : {time_ms}")
    output.error_line(f"Nodes searched  : {nodes}")
    output.error_line(f"Nodes/second    : {1000 * nodes // time_ms}")


def _positions(source: str, current: Game) -> list[Position]:
    if source == BUILT_IN:
        return [Game(fen) for fen in POSITIONS]
    if source == CURRENT:
        return [current]
    try:
        lines = Path(source).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BenchError(f"The position file '{source}' cannot be read: {reason}.") from error
    positions = [
        _parse_line(words, f"Line {number} of '{source}'")
        for number, words in enumerate(map(str.split, lines), 1)
        if words and not words[0].startswith("#")
    ]
    if not any(isinstance(position, Game) for position in positions):
        raise BenchError(f"The position file '{source}' holds no position; expected one FEN a line.")
    return positions


def _parse_line(words: list[str], where: str) -> Position:
    """A FEN, which `moves ...` may follow, or an option to be set."""
    if "setoption" in words:
        return tuple(words[words.index("setoption") + 1 :])
    try:
        command = parse_position(["fen", *words])
        return Game(command.fen, command.moves)
    except PositionError as error:
        raise BenchError(f"{where}: {error}") from error


def _examine(engine: Engine, settings: BenchSettings, is_stopped, evaluation_lines) -> int:
    """Do with the engine's position what the limit type says, and print the results; returns the nodes searched."""
    if settings.limit_type == "eval":
        output.write(*evaluation_lines(engine.game))
        return 0
    if settings.limit_type == "perft":
        return count_lines(engine.game, settings.limit, is_stopped)
    limits = Limits(**{LIMIT_FIELDS[settings.limit_type]: settings.limit})
    result = search_position(
        engine, limits, is_stopped, on_reports=lambda reports: output.write(*map(text.report_line, reports))
    )
    output.write(text.result_line(result))
    return result.report.nodes


def search_position(engine: Engine, limits: Limits, is_stopped: Callable[[], bool], on_reports=None) -> Result:
    """Search the engine's position to the end, even if it was stopped before the search had begun."""
    search = engine.go(limits, on_reports=on_reports)
    if is_stopped():
        search.stop()
    return search.wait()
