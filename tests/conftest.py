"""Fixtures that are dear to make, shared by a whole run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from nets import DEFAULT_NETWORK
from nnue_jax.network_file import Network, read_network
from search.engine import Engine

WARM_UP_TIMEOUT_S = 280

# A shell that starts the tests in the background lets them, and what they start, ignore Ctrl-C; but that is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A first example may include compilation, and the machine may be slow.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


@pytest.fixture(scope="session")
def network() -> Network:
    """The network that the engine ships with."""
    return read_network(DEFAULT_NETWORK)


@pytest.fixture(scope="session")
def shared_engine(network) -> Engine:
    return Engine(network)


@pytest.fixture
def engine(shared_engine) -> Engine:
    """An engine that has learnt nothing."""
    shared_engine.set_threads(1)
    shared_engine.set_hash(16)
    shared_engine.multi_pv = 1
    return shared_engine


@pytest.fixture(scope="session")
def jaxfish(tmp_path_factory) -> str:
    """Path of the installed command, which has done everything once: a first start compiles for a minute."""
    path = Path(sys.executable).with_name("jaxfish")
    if not path.exists():
        path = tmp_path_factory.mktemp("bin") / "jaxfish"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m uci.main "$@"\n')
        path.chmod(0o755)
    commands = "eval\ncompiler\ngo depth 1\n"
    subprocess.run([path], input=commands, check=True, capture_output=True, text=True, timeout=WARM_UP_TIMEOUT_S)
    return str(path)
