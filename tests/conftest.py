"""Fixtures that are dear to make, shared by a whole run."""

import pytest
from hypothesis import settings

from nets import DEFAULT_NETWORK
from nnue_jax.network_file import Network, read_network
from search.engine import Engine

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
