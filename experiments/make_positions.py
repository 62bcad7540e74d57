"""Make many distinct positions, as they arise in games, for measurements of evaluators.

    python -m experiments.make_positions --count 1000000 --seed 1 --output positions.txt

writes one FEN a line. Every game begins with a few random moves; then most moves are those of a search of a few plies
and some are random, so that games differ and material comes off in all orders. Game number n depends on the seed, n
and the settings alone, and games are written in order, so the file does not depend on the number of processes. No two
lines have the same placement and side to move.

The file has the ending .part until it is complete; the same command goes on where it was interrupted.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from games.memory import aligned_zeros
from games.xiangqi import Game
from games.xiangqi.fen import MAX_RULE60
from games.xiangqi.geometry import move_text
from nets import DEFAULT_NETWORK
from nnue_jax.network_file import read_network
from nnue_jax.numba_evaluator import SharedParameters
from search.layout import FIRST_NODE_COUNT, NODE_LIMIT, STOP_FLAG, THREAD_COUNT
from search.nodes import ITERATION_DONE
from search.searcher import Searcher, ThreadTables
from search.transposition import TranspositionTable

HASH_MIB = 1
MAX_PLIES = 240
SAVE_PERIOD_S = 2.0
GAMES_PER_TASK = 4
KEY_BYTES = 8  # two of a million positions have the same key once in forty million files


@dataclass(frozen=True)
class Settings:
    """depth: plies of each search. nodes: its limit. random_share: share of moves that are random after the opening."""

    seed: int
    opening_plies: int
    depth: int
    nodes: int
    random_share: float


class Chooser:
    """Finds moves by search; forgets everything between games."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._shared = aligned_zeros(FIRST_NODE_COUNT + 1, np.int64)
        self._shared[[THREAD_COUNT, NODE_LIMIT]] = 1, settings.nodes
        self._table = TranspositionTable(HASH_MIB)
        self._tables = ThreadTables()
        self._searcher = Searcher(SharedParameters(read_network(DEFAULT_NETWORK)), self._table, self._shared)

    def new_game(self) -> None:
        self._table.clear()
        self._tables.clear()

    def best_move(self, game: Game, moves: list[int]) -> int:
        self._shared[[STOP_FLAG, FIRST_NODE_COUNT]] = 0  # a search that reaches its limit sets the flag
        self._table.new_search()
        self._searcher.set_up(game, moves, self._settings.depth)
        while self._searcher.advance(self._tables) == ITERATION_DONE:
            pass
        record = self._searcher.record
        return int(record["root_moves"]["move"][record["root_order"][0]])


@cache
def chooser_of(settings: Settings) -> Chooser:
    """That of this process."""
    return Chooser(settings)


def play_game(task: tuple[Settings, int]) -> list[str]:
    """The FENs of a game of this number, from the end of its opening on."""
    settings, number = task
    rng = random.Random(f"{settings.seed}/{number}")
    chooser = chooser_of(settings)
    chooser.new_game()
    game = Game()
    opening_plies = rng.randint(1, settings.opening_plies)
    fens = []
    for ply in range(MAX_PLIES):
        moves = game.legal_moves()
        if not moves or game.rule60 >= MAX_RULE60:
            break
        if ply < opening_plies or rng.random() < settings.random_share:
            move = rng.choice(moves)
        else:
            move = chooser.best_move(game, moves)
        game.play(move_text(move))
        if ply >= opening_plies:
            fens.append(game.fen())
    return fens


class PositionFile:
    """The growing file, its note of how far it has come, and the keys of what is in it."""

    def __init__(self, path: Path, settings: Settings):
        self._path = path
        self._unfinished = path.with_name(path.name + ".part")
        self._note = path.with_name(path.name + ".state")
        self._settings = asdict(settings)
        self._keys: set[bytes] = set()
        self.games = 0
        size = 0
        if self._note.exists():
            note = json.loads(self._note.read_text())
            if note["settings"] != self._settings:
                raise ValueError(
                    f"'{self._note}' belongs to other settings, {note['settings']}; delete it or use them."
                )
            self.games, size = note["games"], note["bytes"]
        self._file = self._unfinished.open("r+" if size else "w+", encoding="ascii", newline="\n")
        self._file.truncate(size)
        self._keys.update(map(_key, self._file))
        self._file.seek(size)
        self._saved_at = time.monotonic()

    def __len__(self) -> int:
        return len(self._keys)

    def add_game(self, fens: list[str], limit: int) -> None:
        """Write those that are new, up to `limit` in all."""
        for fen in fens:
            key = _key(fen)
            if key not in self._keys and len(self._keys) < limit:
                self._keys.add(key)
                self._file.write(f"{fen}\n")
        self.games += 1
        if time.monotonic() - self._saved_at > SAVE_PERIOD_S:
            self.save()

    def save(self) -> None:
        """Note how far the file has come."""
        self._file.flush()
        size = os.fstat(self._file.fileno()).st_size
        written = self._note.with_name(self._note.name + ".part")
        written.write_text(json.dumps({"settings": self._settings, "games": self.games, "bytes": size}))
        written.replace(self._note)
        self._saved_at = time.monotonic()

    def complete(self) -> None:
        self._file.close()
        self._unfinished.replace(self._path)
        self._note.unlink(missing_ok=True)


def _key(fen: str) -> bytes:
    placement_and_side = fen.split(maxsplit=2)[:2]
    return hashlib.blake2b(" ".join(placement_and_side).encode(), digest_size=KEY_BYTES).digest()


def tasks(settings: Settings, first_game: int) -> Iterator[tuple[Settings, int]]:
    number = first_game
    while True:
        yield settings, number
        number += 1


def make_positions(file: PositionFile, settings: Settings, count: int, processes: int) -> None:
    """Play games until the file has `count` positions."""
    start, at_start = time.monotonic(), len(file)
    shown = start
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        numbers = tasks(settings, file.games)
        while len(file) < count:
            batch = [next(numbers) for _ in range(GAMES_PER_TASK * processes * 8)]
            for fens in pool.imap(play_game, batch, GAMES_PER_TASK):
                file.add_game(fens, count)
                now = time.monotonic()
                if now - shown > SAVE_PERIOD_S:
                    shown = now
                    rate = (len(file) - at_start) / (now - start)
                    print(f"{len(file):,} of {count:,} positions, {file.games:,} games, {rate:,.0f}/s", file=sys.stderr)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make distinct positions from quick games, one FEN a line.")
    parser.add_argument("--count", type=int, default=1_000_000, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default %(default)s")
    parser.add_argument("--opening-plies", type=int, default=10, help="at most, random (default %(default)s)")
    parser.add_argument("--depth", type=int, default=2, help="plies of a search (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=400, help="limit of a search (default %(default)s)")
    parser.add_argument("--random-share", type=float, default=0.15, help="of moves (default %(default)s)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    settings = Settings(
        arguments.seed, arguments.opening_plies, arguments.depth, arguments.nodes, arguments.random_share
    )
    try:
        file = PositionFile(arguments.output, settings)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    try:
        make_positions(file, settings, arguments.count, arguments.processes)
    except KeyboardInterrupt:
        file.save()
        print(f"Interrupted after {len(file):,} positions; the same command goes on.", file=sys.stderr)
        return 130
    file.complete()
    return 0


if __name__ == "__main__":
    sys.exit(main())
