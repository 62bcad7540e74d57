"""The pipeline with real commands: a small run from the first game to the match, also killed in every stage."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from games.xiangqi import Game
from nnue_jax.architecture import Architecture
from nnue_jax.network_file import read_network
from nnue_jax.training.records import shard_paths
from nnue_jax.win_rate import PIKAFISH_MODEL
from search.engine import Engine
from search.limits import Limits
from tests.support.pipeline_records import record_of

ROOT = Path(__file__).resolve().parent.parent
TITLES = ("self-play", "training", "win-rate model", "match")


class Run:
    """The command in a process group of its own, as a terminal would start it. lines: all that it has said so far."""

    def __init__(self, work: Path, *words: str):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "experiments.pipeline", str(work), *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with self._process.stdout as stdout:
            for line in stdout:
                self.lines.append(line)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_) -> None:
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> int:
        """Send a signal to the whole group, and wait for the end; returns the status."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)
        return self.wait()

    def wait(self) -> int:
        self._reader.join()
        return self._process.wait()

    def reach(self, title: str) -> None:
        """Wait until a stage begins or, if it is done already, for the end of all."""
        while not any(line.endswith(f": {title}\n") for line in self.lines):
            if self._process.poll() is not None:
                assert self.wait() == 0, "".join(self.lines)
                return
            time.sleep(0.01)


def run_to_the_end(work: Path, *words: str) -> list[str]:
    """What was said on the way."""
    with Run(work, *words) as whole:
        status = whole.wait()
    assert status == 0, "".join(whole.lines)
    return whole.lines


def assert_plays(work: Path, width: int) -> None:
    """The network is one of ours, and the engine searches with it."""
    network = read_network(work / "gen1" / "net.nnue")
    assert network.architecture == Architecture(width)
    assert network.win_rate_model != PIKAFISH_MODEL
    engine = Engine(network)
    engine.set_position(Game())
    result = engine.go(Limits(depth=4)).wait(60)
    assert result.report.depth == 4
    Game().play(result.best_move)  # which must be legal


SMALL = tuple(
    "--games 60 --nodes 100 --width 32 --epochs 2 --seed 2 --match-games 2 --match-time 10 --processes 2".split()
)
PATIENCE_S = {"self-play": 0.5, "training": 2.0, "win-rate model": 0.2, "match": 0.5}  # longest, in a small run


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The folder of a small run that was not interrupted."""
    work = tmp_path_factory.mktemp("small") / "work"
    run_to_the_end(work, *SMALL)
    return work


@pytest.mark.timeout(600)  # everything may have to be compiled
def test_a_small_real_run(small):
    assert_plays(small, 32)
    record = record_of(small)
    assert record["games"]["games"] == 60
    assert record["match"]["games"] == 2
    assert sum(record["match"]["forfeits"].values()) == 0
    assert record["training"]["losses"]["validation_mixed"] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_small_real_run_killed_in_every_stage(small, tmp_path):
    """Twice in every stage, and interrupted once; it makes the same games and the same network."""
    chooser = random.Random(6)
    work = tmp_path / "work"
    with Run(work, *SMALL) as interrupted:
        interrupted.reach("self-play")
        time.sleep(0.3)
        assert interrupted.send(signal.SIGINT) == 130
    assert interrupted.lines[-1] == "The pipeline was interrupted; the same command goes on.\n"
    kills = 0
    for title in [title for title in TITLES for _ in range(2)]:
        with Run(work, *SMALL) as killed:
            killed.reach(title)
            time.sleep(chooser.uniform(0, PATIENCE_S[title]))
            kills += killed.send(signal.SIGKILL) == -signal.SIGKILL
    assert kills > 4
    run_to_the_end(work, *SMALL)
    assert (work / "gen1" / "net.nnue").read_bytes() == (small / "gen1" / "net.nnue").read_bytes()
    games = [[path.read_bytes() for path in shard_paths(folder / "gen1" / "games")] for folder in (small, work)]
    assert games[0] == games[1]
    facts, expected = record_of(work), record_of(small)
    assert {**facts, "match": None} == {**expected, "match": None}
    assert facts["match"]["games"] == expected["match"]["games"]


@pytest.mark.slow
@pytest.mark.timeout(900)  # which is the promise, on two cores
def test_a_thousand_games_killed_in_every_stage(tmp_path):
    chooser = random.Random(7)
    words = "--games 1000 --epochs 1 --match-games 4".split()
    for title, patience_s in (("self-play", 30), ("training", 6), ("win-rate model", 1), ("match", 10)):
        with Run(tmp_path / "work", *words) as killed:
            killed.reach(title)
            time.sleep(chooser.uniform(0, patience_s))
            killed.send(signal.SIGKILL)
    run_to_the_end(tmp_path / "work", *words)
    assert_plays(tmp_path / "work", 256)
    record = record_of(tmp_path / "work")
    assert record["games"]["games"] == 1000
    assert record["match"]["games"] == 4
