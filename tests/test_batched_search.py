"""Searchers that wait for a batched evaluator: one searches the tree of the CPU search, many search it together."""

import pytest

from games.xiangqi import Game
from nnue_jax.evaluator import Evaluator
from nnue_jax.numba_batch import NumbaBatchEvaluator
from nnue_jax.simulated_device import SimulatedDevice
from search import engine as engine_module
from search.batching import Batching
from search.engine import Engine
from search.limits import Limits
from search.searcher_group import SearcherGroup
from tests.random_games import random_fens
from tests.support.devices import FailingDevice, GatedDevice
from tests.support.networks import bootstrap_network
from uci.bench_positions import POSITIONS

MATE_IN_ONE = "3k5/8R/9/9/9/9/9/9/9/R3K4 w - - 0 1"
NODES = 3000


def fast_device(network) -> SimulatedDevice:
    return SimulatedDevice(network, latency_us=0, positions_per_s=1e12)


def numba_batches(network) -> Evaluator:
    return NumbaBatchEvaluator(network, threads=1)


def jax_on_cpu(network) -> Evaluator:
    return Evaluator.load(network, "jax:cpu", batch_sizes=(1, 8))


@pytest.fixture(scope="module")
def inline() -> Engine:
    return Engine(bootstrap_network())


@pytest.fixture(scope="module")
def batched():
    engine = Engine(bootstrap_network())
    yield engine
    engine.close()


def searched(engine: Engine, game: Game, limits: Limits):
    engine.new_game()
    engine.set_position(game)
    return engine.go(limits).wait()


def facts(result) -> tuple:
    report = result.report
    return result.best_move, result.ponder_move, report.depth, report.score, report.nodes, report.pv


def guess_up_to(monkeypatch, room: int) -> None:
    """Let batches be filled with guesses, whatever suits the device."""
    monkeypatch.setattr(
        engine_module, "batching_for", lambda evaluator, batch_size, searchers: Batching(searchers, 1024, room)
    )


@pytest.mark.parametrize("guess_room", [0, 40])
@pytest.mark.parametrize("make", [fast_device, numba_batches, jax_on_cpu])
def test_one_searcher_searches_the_tree_of_the_cpu(make, guess_room, inline, batched, monkeypatch):
    guess_up_to(monkeypatch, guess_room)
    batched.set_backend(make, searchers=1)
    nodes = 300 if make is jax_on_cpu else NODES
    for fen in random_fens(6, seed=2):
        game = Game(fen)
        if game.legal_moves():
            limits = Limits(nodes=nodes)
            result = searched(batched, game, limits)
            assert facts(result) == facts(searched(inline, game, limits))
            assert result.telemetry.positions > 0
            assert (result.telemetry.guesses > 0) == (guess_room > 0)


def test_to_a_fixed_depth_with_the_moves_before(inline, batched):
    batched.set_backend(fast_device, searchers=1)
    game = Game(moves="h2e2 h9g7 h0g2 i9h9 i0h0".split())
    limits = Limits(depth=7)
    assert facts(searched(batched, game, limits)) == facts(searched(inline, game, limits))


@pytest.mark.parametrize(("threads", "searchers"), [(1, 2), (1, 33), (1, 128), (2, 64), (3, 1)])
def test_many_searchers_find_legal_lines_and_keep_the_limit(threads, searchers, batched):
    batched.set_threads(threads)
    batched.set_backend(fast_device, searchers=searchers)
    for fen in POSITIONS[:12:3]:
        game = Game(fen)
        result = searched(batched, game, Limits(nodes=20_000))
        assert 20_000 <= result.report.nodes < 21_000
        line = Game(fen)
        for move in result.report.pv:
            line.play(move)
        assert result.best_move == result.report.pv[0]
    batched.set_threads(1)


def test_many_searchers_find_a_mate(batched):
    batched.set_backend(fast_device, searchers=32)
    result = searched(batched, Game(MATE_IN_ONE), Limits(depth=4))
    assert result.report.score.mate_moves == 1


def test_several_lines(batched, inline):
    batched.set_backend(fast_device, searchers=1)
    found = []
    for engine in (batched, inline):
        engine.multi_pv = 3
        engine.new_game()
        engine.set_position(Game())
        reports = []
        engine.go(Limits(depth=4), on_reports=reports.append).wait()
        found.append([(report.line, report.score, report.pv) for report in reports[-1]])
        engine.multi_pv = 1
    assert found[0] == found[1]
    assert len(found[0]) == 3


@pytest.mark.parametrize("searchers", [1, 16])
def test_stop_does_not_wait_for_the_device(searchers, batched):
    batched.set_backend(GatedDevice, searchers=searchers)
    device = batched.evaluator
    batched.set_position(Game())
    running = batched.go(Limits(infinite=True))
    device.is_reached.wait()
    batched.stop()
    result = running.wait(60)
    assert result.best_move in Game().legal_move_texts()
    # A device that has hung for good does not hold up what comes next.
    assert searched(batched, Game(), Limits(movetime_ms=20)).best_move in Game().legal_move_texts()
    device.gate.set()
    # What the device still owed does no harm to the next search.
    assert searched(batched, Game(MATE_IN_ONE), Limits(depth=2)).report.score.mate_moves == 1


@pytest.mark.parametrize("searchers", [1, 16])
def test_a_device_that_fails_ends_the_search_with_what_is_known(searchers, batched):
    batched.set_backend(FailingDevice, searchers=searchers)
    result = searched(batched, Game(), Limits(infinite=True))
    assert result.best_move in Game().legal_move_texts()
    assert result.failure == "The evaluator simulated failed: it has fallen off the bus"


def test_backends_are_switched_without_a_restart(inline, batched):
    limits = Limits(depth=5)
    expected = facts(searched(inline, Game(), limits))
    for make in (fast_device, None, numba_batches, None):
        batched.set_backend(make, searchers=1)
        assert (batched.evaluator is None) == (make is None)
        assert facts(searched(batched, Game(), limits)) == expected


def test_a_backend_that_cannot_be_had_leaves_the_old_one(batched):
    batched.set_backend(fast_device, searchers=1)

    def fail(network):
        raise ValueError("no such device")

    with pytest.raises(ValueError, match="no such device"):
        batched.set_backend(fail)
    assert batched.evaluator.name == "simulated"
    assert searched(batched, Game(), Limits(depth=2)).best_move


class ColdDevice(SimulatedDevice):
    def warm_up(self):
        raise ValueError("it does not start")


def test_a_device_that_does_not_start_leaves_the_old_one(batched):
    batched.set_backend(fast_device, searchers=2)
    with pytest.raises(ValueError, match="it does not start"):
        batched.set_backend(ColdDevice)
    assert searched(batched, Game(), Limits(depth=2)).telemetry.positions > 0


def test_another_network_reaches_the_device(batched, network):
    batched.set_backend(numba_batches, searchers=1)
    batched.set_network(network)
    alone = Engine(network)
    assert facts(searched(batched, Game(), Limits(depth=5))) == facts(searched(alone, Game(), Limits(depth=5)))
    batched.set_network(bootstrap_network())


def test_searchers_do_not_share_cache_sets():
    """The same field of neighbours must not fall into the same set of a cache."""
    group = SearcherGroup(2, None, None, table_bytes=1 << 16)
    for name in ("searchers", "histories"):
        assert getattr(group.arrays, name).strides[0] % 4096
