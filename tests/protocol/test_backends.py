"""The options Backend, BatchSize and Searchers, and the flag --backend."""

import re

import pytest

from games.xiangqi import Game
from nets import BOOTSTRAP_NETWORK
from tests.support import scenes
from tests.support.engine_process import run_once

SIMULATED = "simulated:0:1000"  # no latency
TELEMETRY = re.compile(
    r"info string Evaluator: batches \d+ mean [\d.]+ fill \d+ % "
    r"evaluations used \d+ wasted \d+ from cache \d+ waited \d+ ms"
)


@pytest.fixture
def engine(engine):
    """One that knows a batched search."""
    engine.ask(f"setoption name EvalFile value {BOOTSTRAP_NETWORK.name}")
    engine.ask(f"setoption name Backend value {SIMULATED}")
    return engine


def found(engine, go: str) -> list:
    """What a search of a fresh engine finds, without times."""
    engine.send("ucinewgame", f"position fen {scenes.MIDDLEGAME}")
    return [(info.depth, info.cp, info.nodes, info.pv) for info in engine.search(go).infos]


def test_one_searcher_finds_the_same_on_every_backend(engine):
    engine.ask("setoption name Searchers value 1")
    expected = found(engine, "go depth 6")
    for backend in ("numba", "jax:cpu", SIMULATED, "auto"):
        said = engine.ask(f"setoption name Backend value {backend}")
        assert said[0].startswith(f"info string Backend {backend}: ")
        assert found(engine, "go depth 6") == expected


def test_the_evaluator_is_told_of_at_the_end(engine):
    engine.ask("setoption name Searchers value 4", "setoption name BatchSize value 16")
    engine.send("position startpos")
    searched = engine.search("go nodes 2000")
    assert searched.best_move in Game().legal_move_texts()
    assert TELEMETRY.fullmatch(searched.lines[-2])
    assert any("Using 4 searchers and batches of up to 16 positions on simulated" in line for line in searched.lines)
    engine.ask("setoption name Backend value numba")
    assert not [line for line in engine.search("go nodes 2000").lines if "Evaluator" in line or "searcher" in line]


@pytest.mark.parametrize("backend", ["cuda", "jax:abacus", "jax:cpu:99", "simulated:fast"])
def test_a_backend_that_cannot_be_had_leaves_the_old_one(engine, backend):
    (said,) = engine.ask(f"setoption name Backend value {backend}")
    assert said.startswith(f"info string Backend keeps its value: The backend '{backend}' is ")
    assert "expected" in said
    assert any("on simulated" in line for line in engine.search("go nodes 200").lines)


def test_the_flag(tmp_path):
    done = run_once("--backend", "numba", "go", "depth", "3")
    assert done.stdout.splitlines()[1] == "info string Backend numba: every search thread evaluates by itself."
    assert done.returncode == 0
    done = run_once("--backend", "cuda", "go", "depth", "3")
    assert (done.returncode, "bestmove" in done.stdout) == (1, False)
    assert (
        "CRITICAL ERROR: Command `--backend cuda` failed. Reason: Backend keeps its value: The backend" in done.stdout
    )
    done = run_once("--backend")
    assert (done.returncode, done.stderr) == (2, "--backend has no value; expected the name of a backend.\n")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bench_has_one_node_total(engine):
    """With one searcher and the bootstrap network, on every backend."""
    engine.ask("setoption name Searchers value 1")
    totals = set()
    for backend in ("numba", SIMULATED, "jax:cpu"):
        engine.ask(f"setoption name Backend value {backend}")
        engine.errors.clear()
        engine.send("bench 16 1 9")
        engine.until_error("Nodes/second", timeout_s=1200)
        totals.add(re.search(r"Nodes searched  : (\d+)", "\n".join(engine.errors))[1])
    assert len(totals) == 1
