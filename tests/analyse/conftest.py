"""Positions, and engines on all kinds of backends."""

from pathlib import Path

import pytest

from nnue_jax.evaluator import Evaluator
from nnue_jax.simulated_device import SimulatedDevice
from search.engine import Engine
from tests.analyse.runs import MATED, STALEMATED, Run
from tests.support.games import random_walk
from tests.support.networks import bootstrap_network
from tests.support.position_files import write_lines


@pytest.fixture(scope="session")
def fens() -> list[str]:
    """Among them mates in one, and positions without a legal move."""
    return [*[game.fen() for game in random_walk(seed=41, count=270)], MATED, STALEMATED]


@pytest.fixture(scope="session")
def engines():
    """Engines by name."""
    network = bootstrap_network()
    found = {"numba": Engine(network), "two threads": Engine(network, threads=2)}
    for name, threads in (("jax:cpu", 2), ("simulated", 1)):
        found[name] = Engine(network, threads)
    found["jax:cpu"].set_backend(lambda network: Evaluator.load(network, "jax:cpu"))
    found["simulated"].set_backend(lambda network: SimulatedDevice(network, latency_us=20))
    yield found
    for engine in found.values():
        engine.close()


@pytest.fixture(scope="session")
def expected(tmp_path_factory, engines, fens) -> Path:
    """CSV of `fens`, as one thread makes it."""
    folder = tmp_path_factory.mktemp("expected")
    Run(engines["numba"], write_lines(folder / "in.txt", fens), folder / "out.csv")
    return folder / "out.csv"
