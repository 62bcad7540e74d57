"""Many roots at once: the results of one search after the other, whatever searches them."""

import threading

import pytest

from games.xiangqi import Game
from games.xiangqi.fen import PositionError
from nnue_jax.evaluator import Evaluator
from nnue_jax.simulated_device import SimulatedDevice
from search.analysis import WINDOW_SHARE
from search.engine import Engine, SearchRunningError
from search.leaf_queue import EvaluationFailure
from search.limits import Limits
from search.root_blocks import position_blocks
from tests.random_games import random_fens
from tests.support.devices import FailingDevice, GatedDevice
from tests.support.networks import bootstrap_network
from uci.bench_positions import POSITIONS

STALEMATED = "3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1"
SHUFFLES = "h0g2 h9g7 g2h0 g7h9 h0g2 h9g7 g2h0".split()


def fast_device(network) -> SimulatedDevice:
    return SimulatedDevice(network, latency_us=0, positions_per_s=1e12)


def jax_on_cpu(network) -> Evaluator:
    return Evaluator.load(network, "jax:cpu", batch_sizes=(8,))


@pytest.fixture(scope="module")
def inline() -> Engine:
    return Engine(bootstrap_network())


@pytest.fixture(scope="module")
def batched():
    engine = Engine(bootstrap_network())
    engine.set_backend(fast_device)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def positions() -> list:
    """FENs, one of them without a legal move, and a Game whose past matters: the next repetition is the third."""
    return [*random_fens(20, seed=9), STALEMATED, Game(moves=SHUFFLES), POSITIONS[0]]


def one_by_one(engine: Engine, positions: list, limits: Limits) -> list[tuple]:
    """The slow twin: an ordinary search for each, by an engine that knows nothing."""
    found = []
    for position in positions:
        engine.new_game()
        engine.set_position(position if isinstance(position, Game) else Game(position))
        result = engine.go(limits).wait()
        report = result.report
        found.append((result.best_move, report.nodes, report.depth, report.score, report.bound, report.pv))
    return found


def best_lines(analyses) -> list[tuple]:
    found = []
    for analysis in analyses:
        line = analysis.lines[0]
        found.append((analysis.best_move, analysis.nodes, line.depth, line.score, line.bound, line.pv))
    return found


@pytest.mark.parametrize(
    "limits", [Limits(nodes=700), Limits(depth=3), Limits(nodes=400, depth=9)], ids=["nodes", "depth", "both"]
)
@pytest.mark.parametrize(
    ("threads", "make", "searchers"),
    [(1, None, 0), (2, None, 0), (1, fast_device, 1), (1, fast_device, 5), (2, fast_device, 40), (1, jax_on_cpu, 7)],
)
def test_isolated_roots_depend_on_themselves_alone(threads, make, searchers, limits, inline, positions):
    expected = one_by_one(inline, positions, limits)
    engine = Engine(bootstrap_network(), threads=threads)
    engine.set_backend(make)
    assert best_lines(engine.analyse(positions, limits, isolated=True, searchers=searchers)) == expected
    # Nothing is left behind that the next ones could see.
    assert best_lines(engine.analyse(positions[::-1], limits, isolated=True, searchers=searchers)) == expected[::-1]
    engine.close()


def test_several_lines(inline, batched, positions):
    for engine in (inline, batched):
        for position, analysis in zip(positions, engine.analyse(positions, Limits(depth=2), multi_pv=3), strict=True):
            game = position if isinstance(position, Game) else Game(position)
            legal = game.legal_move_texts()
            moves = [line.pv[0] for line in analysis.lines if line.pv]
            assert len(set(moves)) == len(moves) == min(3, len(legal))
            assert set(moves) <= set(legal)
            scores = [line.score.value for line in analysis.lines]
            assert scores == sorted(scores, reverse=True)


def test_shared_tables(batched, positions):
    analyses = list(batched.analyse(positions * 4, Limits(nodes=500), searchers=16))
    assert [analysis.best_move is None for analysis in analyses] == [p == STALEMATED for p in positions * 4]
    for position, analysis in zip(positions * 4, analyses, strict=True):
        line = position if isinstance(position, Game) else Game(position)
        after = Game(line.fen())
        for move in analysis.lines[0].pv:
            after.play(move)


@pytest.mark.parametrize("searchers", [1, 12])
def test_every_search_ends_when_its_time_is_over(searchers, inline, batched, positions):
    for engine in (inline, batched):
        analyses = list(engine.analyse(positions, Limits(movetime_ms=5), isolated=True, searchers=searchers))
        assert len(analyses) == len(positions)
        assert all(analysis.lines[0].depth > 0 for analysis in analyses if analysis.best_move)


def test_no_more_positions_are_read_than_needed(batched):
    read = 0

    def endless():
        nonlocal read
        for fen in POSITIONS * 1000:
            read += 1
            yield fen.split(" moves")[0]

    analyses = batched.analyse(endless(), Limits(nodes=50), searchers=4)
    for number, _ in enumerate(analyses):
        # A block of positions, and what may be given out.
        assert read <= number + 64 + WINDOW_SHARE * 4 + 2 * 256
        if number == 700:
            break
    threads = threading.active_count()
    analyses.close()
    assert threading.active_count() < threads


def test_what_comes_before_a_refused_position_is_given_out(batched, positions):
    analyses = batched.analyse([*positions, "nonsense"], Limits(nodes=50))
    assert len([next(analyses) for _ in positions]) == len(positions)
    with pytest.raises(PositionError, match=f"Position {len(positions)}, 'nonsense': "):
        next(analyses)


def test_a_device_that_fails(positions):
    engine = Engine(bootstrap_network())
    engine.set_backend(FailingDevice)
    with pytest.raises(EvaluationFailure, match="fallen off the bus"):
        list(engine.analyse(positions, Limits(nodes=5000)))
    engine.close()


def test_a_device_that_has_hung_does_not_hold_up_the_end(positions):
    engine = Engine(bootstrap_network())
    engine.set_backend(GatedDevice)
    device = engine.evaluator
    analysis = engine.analyse_blocks(position_blocks(positions), Limits(nodes=5000))
    caller = threading.Thread(target=lambda: list(analysis))
    caller.start()
    device.is_reached.wait()
    analysis.stop()
    caller.join()
    device.gate.set()
    engine.close()


def test_an_engine_that_searches_cannot_analyse(inline):
    inline.set_position(Game())
    running = inline.go(Limits(infinite=True))
    with pytest.raises(SearchRunningError):
        inline.analyse([], Limits(nodes=1))
    inline.stop()
    running.wait()


def test_nothing_to_analyse(inline, batched):
    for engine in (inline, batched):
        assert list(engine.analyse([], Limits(nodes=1))) == []
