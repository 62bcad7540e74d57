"""Play games of the engine against itself, and keep what they teach: the raw material of a network.

    python -m experiments.selfplay data/gen0 --games 200000 --nodes 2000 --seed 1

`selfplay_game` says what a game is and which positions are kept, `nnue_jax.training.records` how they lie on disk.
Game number n depends on the seed, n, the network and the settings alone, so the data do not depend on the number of
processes. Games are written in shards of a fixed number of games. A shard is there as a whole or not at all, and the
same command makes those that are missing, so a run may be interrupted or killed at any moment. More --games prolong a
finished run; other settings in the same folder are refused.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import fields, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path

import numpy as np

from experiments.selfplay_folder import RunSettings, SelfPlayFolder, Task
from experiments.selfplay_game import ENDS, GameSettings, OpeningError, PlayedGame, SelfPlayer
from games.processors import available_processors
from nets import DEFAULT_NETWORK
from nnue_jax.network_file import NetworkError, read_network
from nnue_jax.training.records import RecordsError, shard_path, write_shard

POLL_S = 0.5
TASKS_PER_WORKER = 3  # handed over at once: a worker that is done finds the next one waiting
TERMINAL_PERIOD_S, LOG_PERIOD_S = 1.0, 30.0  # between two progress lines
WINDOW_S = 120.0  # over which rates are measured

SUMS = ("games", "positions", "searches", "nodes", "depths", "openings", *ENDS)


class Interrupted(Exception):
    """Somebody asked the run to end."""


def sums_of(game: PlayedGame) -> Counter[str]:
    """What a game adds to each of SUMS."""
    sums = Counter({name: getattr(game, name) for name in ("searches", "nodes", "depths", "openings")})
    sums.update({"games": 1, "positions": len(game.records), game.end: 1})
    return sums


class Worker:
    """Makes shards, in a process of its own. live: the SUMS of all workers' games. stop: set when the run is to end."""

    def __init__(self, settings: RunSettings, folder: Path, live, stop):
        self._folder = folder
        self._live = live
        self._stop = stop
        self._player = SelfPlayer(read_network(settings.network), settings.game, settings.seed)

    def make_shard(self, task: Task) -> None:
        """Play the games of a shard and write it, unless the run ends before."""
        games = []
        numbers: Counter[str] = Counter()
        for number in range(task.first_game, task.first_game + task.games):
            if self._stop.is_set():
                return
            game = self._player.play(number)
            games.append(game.records)
            sums = sums_of(game)
            numbers.update(sums)
            with self._live.get_lock():
                for place, name in enumerate(SUMS):
                    self._live[place] += sums[name]
        del numbers["games"], numbers["positions"]
        lengths = [len(records) for records in games]
        write_shard(
            shard_path(self._folder, task.number), np.concatenate(games), lengths, dict(sorted(numbers.items()))
        )


_worker: Worker | None = None  # of this process


def _start_worker(*arguments) -> None:
    global _worker
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _worker = Worker(*arguments)


def _die_with_parent() -> None:
    wait_for([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _make_shard(task: Task) -> None:
    _worker.make_shard(task)


class Progress:
    """The line that tells how far a run is. games: in all, and how many were there before."""

    def __init__(self, games: int, games_before: int):
        self._games = games
        self._before = games_before
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = time.monotonic()
        self._history: deque[tuple[float, list[int]]] = deque([(self._shown_at, [0] * len(SUMS))])

    def show(self, live: list[int], is_last: bool = False) -> None:
        """Print the line if it is time, or the run is over."""
        now = time.monotonic()
        period_s = TERMINAL_PERIOD_S if self._is_terminal else LOG_PERIOD_S
        if now - self._shown_at < period_s and not is_last:
            return
        self._shown_at = now
        self._history.append((now, live))
        while len(self._history) > 2 and now - self._history[1][0] > WINDOW_S:
            self._history.popleft()
        end = "\n" if is_last or not self._is_terminal else ""
        print(f"\r\x1b[K{self._line()}" if self._is_terminal else self._line(), end=end, file=sys.stderr, flush=True)

    def _line(self) -> str:
        (then, before), (now, live) = self._history[0], self._history[-1]
        total = dict(zip(SUMS, live, strict=True))
        rates = {name: (total[name] - old) / (now - then) for name, old in zip(SUMS, before, strict=True)}
        ends = Counter({name: total[name] for name in ENDS if total[name]})
        shares = " ".join(f"{name} {100 * count / total['games']:.0f}%" for name, count in ends.most_common())
        left = self._games - self._before - total["games"]
        return "  ".join(
            [
                f"{self._before + total['games']:,} of {self._games:,} games",
                f"{total['positions']:,} positions  {rates['positions']:,.0f}/s",
                f"{rates['nodes'] / 1e6:.2f} Mnodes/s",
                f"depth {total['depths'] / max(1, total['searches']):.1f}",
                shares,
                f"{_duration(left / rates['games'])} left" if rates["games"] else "",
            ]
        )


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


class _Interruption:
    """Whether SIGINT or SIGTERM has come.

    Nothing is raised, since a signal may come at any moment, as while a lock is held that the workers wait for.
    """

    def __init__(self):
        self.asked = False

    def note(self, *_) -> None:
        self.asked = True

    def require_none(self) -> None:
        if self.asked:
            raise Interrupted


@contextmanager
def _handling(handler: Callable | signal.Handlers, *signals: signal.Signals) -> Iterator[None]:
    """Let a function of our own handle signals for a while."""
    previous = [signal.signal(number, handler) for number in signals]
    try:
        yield
    finally:
        for number, before in zip(signals, previous, strict=True):
            signal.signal(number, before)


def _submit(pool: ProcessPoolExecutor, tasks: deque[Task], pending: set[Future], limit: int) -> None:
    """Hand over tasks until `limit` are pending."""
    while tasks and len(pending) < limit:
        pending.add(pool.submit(_make_shard, tasks.popleft()))


def make_shards(folder: SelfPlayFolder, settings: RunSettings, games: int, tasks: list[Task], processes: int) -> None:
    """Make all shards of `tasks`; Interrupted once every process has ended."""
    context = multiprocessing.get_context("spawn")
    live, stop = context.Array("q", len(SUMS)), context.Event()
    progress = Progress(games, games - sum(task.games for task in tasks))
    interruption = _Interruption()
    left, pending = deque(tasks), set()
    workers = min(processes, len(tasks))
    with (
        _handling(interruption.note, signal.SIGINT, signal.SIGTERM),
        ProcessPoolExecutor(workers, context, _start_worker, (settings, folder.path, live, stop)) as pool,
    ):
        try:
            # The workers start now; they are to ignore SIGINT, which a terminal sends to them as well.
            with _handling(signal.SIG_IGN, signal.SIGINT):
                _submit(pool, left, pending, TASKS_PER_WORKER * workers)
            while pending:
                interruption.require_none()
                done, pending = wait(pending, POLL_S, FIRST_COMPLETED)
                for future in done:
                    future.result()
                _submit(pool, left, pending, TASKS_PER_WORKER * workers)
                progress.show(live[:])
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            progress.show(live[:], is_last=True)
        interruption.require_none()  # it may have come while the last games ended


def run(path: Path, settings: RunSettings, games: int, processes: int) -> dict:
    """Play until the folder holds this many games; returns their numbers."""
    folder = SelfPlayFolder(path, settings)
    tasks = folder.missing(games)
    folder.begin(games)
    if tasks:
        # Compile before there are several processes that would all do so.
        SelfPlayer(read_network(settings.network), replace(settings.game, nodes=100), settings.seed).play(0)
        try:
            make_shards(folder, settings, games, tasks, processes)
        except Interrupted:
            folder.end()
            raise
    return folder.end()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", type=_positive, required=True, help="in all, with those that are there")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--network", type=Path, default=DEFAULT_NETWORK, help="default: the engine's own")
    parser.add_argument("--processes", type=_positive, default=len(available_processors()), help="default %(default)s")
    parser.add_argument("--games-per-shard", type=int, default=100, help="default %(default)s")
    for setting in fields(GameSettings):
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}", type=int, default=setting.default, help="default %(default)s"
        )
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    try:
        game = GameSettings(**{setting.name: getattr(arguments, setting.name) for setting in fields(GameSettings)})
        settings = RunSettings(arguments.seed, arguments.games_per_shard, game, arguments.network)
        numbers = run(arguments.folder, settings, arguments.games, arguments.processes)
    except (OSError, ValueError, NetworkError, OpeningError, RecordsError) as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenProcessPool as error:
        print(f"A process has died: {error} The same command goes on.", file=sys.stderr)
        return 1
    except Interrupted:
        print("Interrupted; the same command goes on.", file=sys.stderr)
        return 130
    print(f"{arguments.folder} holds {numbers['games']:,} games, {numbers['positions']:,} positions.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
