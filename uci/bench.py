"""`bench`: a fixed set of positions searched to a fixed depth; its node total is the engine's fingerprint."""

import time
from collections.abc import Callable
from pathlib import Path

from games.xiangqi.game import Game
from search.engine import Engine
from search.limits import Limits
from uci import output, text
from uci.bench_positions import POSITIONS

DEFAULT_HASH_MIB = 16
DEFAULT_THREADS = 1
DEFAULT_DEPTH = 13
LIMIT_TYPES = ("depth", "nodes", "movetime")


class BenchError(ValueError):
    """Arguments that make no bench; the message is a sentence."""


def parse_bench(words: list[str]) -> tuple[int, int, int, str, str]:
    """(hash_mib, threads, limit, file or `default` or `current`, limit type) from the words after `bench`."""
    defaults = [str(DEFAULT_HASH_MIB), str(DEFAULT_THREADS), str(DEFAULT_DEPTH), "default", "depth"]
    values = words[:5] + defaults[len(words[:5]) :]
    for text_value, name in zip(values, ("hash size", "number of threads", "limit"), strict=False):
        if not (text_value.isascii() and text_value.isdigit() and int(text_value) > 0):
            raise BenchError(f"'{text_value}' is no {name} for bench; expected a whole number above zero.")
    if values[4] not in LIMIT_TYPES:
        raise BenchError(f"'{values[4]}' is no limit type for bench; expected one of {', '.join(LIMIT_TYPES)}.")
    return int(values[0]), int(values[1]), int(values[2]), values[3], values[4]


def _positions(source: str, current: Game) -> list[Game]:
    if source == "default":
        return [Game(fen) for fen in POSITIONS]
    if source == "current":
        return [current]
    try:
        lines = Path(source).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"The position file '{source}' cannot be read: {error}.") from error
    return [Game(line) for line in lines if line.strip() and not line.startswith("#")]


def run_bench(engine: Engine, words: list[str], is_stopped: Callable[[], bool]) -> None:
    """Search every position, with the results on standard output and the totals on standard error.

    When `is_stopped` says so, no further position is searched.
    """
    hash_mib, threads, limit, source, limit_type = parse_bench(words)
    games = _positions(source, engine.game)
    limits = {
        "depth": Limits(depth=limit),
        "nodes": Limits(nodes=limit),
        "movetime": Limits(movetime_ms=limit),
    }[limit_type]
    engine.set_threads(threads)
    engine.set_hash(hash_mib)
    engine.new_game()
    nodes = 0
    start = time.perf_counter()
    for number, game in enumerate(games, 1):
        output.error_line(f"\nPosition: {number}/{len(games)} ({game.fen()})")
        engine.set_position(game)
        result = engine.go(limits, lambda report: output.write(text.report_line(report))).wait()
        output.write(text.result_line(result))
        nodes += result.report.nodes
        if is_stopped():
            break
    time_ms = int(1000 * (time.perf_counter() - start)) + 1
    output.error_line("\n===========================")
    output.error_line(f"Total time (ms) : {time_ms}")
    output.error_line(f"Nodes searched  : {nodes}")
    output.error_line(f"Nodes/second    : {1000 * nodes // time_ms}")
