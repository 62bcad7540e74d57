"""The searcher: trees that repeat, lines that are legal, results that are right."""

import json
from pathlib import Path

import numpy as np
import pytest

from games.jit import kernel
from games.memory import aligned_zeros
from games.xiangqi import Game
from games.xiangqi.geometry import move_text, parse_move
from nnue_jax import reference
from nnue_jax.numba_evaluator import SharedParameters
from search.layout import MATE, NEVER, NODE_LIMIT, SEARCHER, STOP_FLAG, THREAD_COUNT
from search.limits import Limits
from search.machine import advance, start
from search.main_search import search_again
from search.nodes import ENTER, EVALUATE, FINISHED, ITERATION_DONE, NULL_WINDOW, STOPPED
from search.searcher import Searcher, ThreadTables
from search.transposition import TranspositionTable
from tests.random_games import random_fens
from uci.bench_positions import POSITIONS

DATA = Path(__file__).parent / "data"
MATE_IN_ONE = "3k5/8R/9/9/9/9/9/9/9/R3K4 w - - 0 1"
STALEMATED = "3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1"
STALEMATE_IN_ONE = "3k5/9/4R4/R8/9/9/9/9/9/4K4 w - - 0 1"


def make_searcher(network, inline: bool = True) -> tuple[Searcher, ThreadTables]:
    shared = aligned_zeros(8, np.int64)
    shared[[THREAD_COUNT, NODE_LIMIT]] = 1, NEVER
    searcher = Searcher(SharedParameters(network), TranspositionTable(1), shared)
    searcher.record["evaluates_inline"] = int(inline)
    return searcher, ThreadTables()


def run(searcher, tables, game, depth, on_evaluate=None) -> int:
    """Search to `depth`; returns the number of nodes."""
    searcher.set_up(game, game.legal_moves(), depth)
    while (code := searcher.advance(tables)) != FINISHED:
        assert code != STOPPED
        if code == EVALUATE:
            on_evaluate(searcher.record)
    return int(searcher.record["nodes"])


@pytest.mark.parametrize("fen", POSITIONS[:36:5])
def test_a_searcher_that_waits_for_values_searches_the_same_tree(network, fen):
    def evaluate(record):
        value = reference.evaluate(network, record["position"])
        record["evaluator"]["psqt"] = value.psqt
        record["evaluator"]["positional"] = value.positional

    game = Game(fen)
    inline = run(*make_searcher(network), game, 4)
    waiting = run(*make_searcher(network, inline=False), game, 4, evaluate)
    assert inline == waiting > 50


def test_kernels_have_one_signature():
    """A second signature would be compiled in the middle of a search."""
    assert len(advance.signatures) == len(start.signatures) == 1


def test_the_position_is_restored_after_a_search(network):
    searcher, tables = make_searcher(network)
    for fen in POSITIONS[:8]:
        game = Game(fen)
        run(searcher, tables, game, 6)
        for field in ("board", "ranks", "files", "side", "key", "material"):
            assert np.array_equal(searcher.record["position"][field], game.position[0][field])
        assert searcher.record["top"] == searcher.record["ply"] == 0


def test_records_stay_small_where_it_counts():
    """What a node touches: its frame fits eight cache lines, and the whole stack half a megabyte."""
    assert SEARCHER["frames"].base.itemsize <= 8 * 64
    assert SEARCHER.itemsize < 600_000


def test_node_counts_repeat_after_a_new_game(engine):
    counts = []
    for _ in range(2):
        engine.new_game()
        for fen in POSITIONS[3:9]:
            engine.set_position(Game(fen))
            counts.append(engine.go(Limits(depth=8)).wait().report.nodes)
    assert counts[:6] == counts[6:]


@pytest.mark.parametrize("nodes", [1, 2, 100, 1023, 5000, 20_001])
def test_one_thread_searches_exactly_as_many_nodes_as_allowed(engine, nodes):
    engine.set_position(Game())
    assert engine.go(Limits(nodes=nodes)).wait().report.nodes == nodes


def test_several_threads_keep_a_node_limit(engine):
    engine.set_threads(3)
    engine.set_position(Game())
    nodes = engine.go(Limits(nodes=200_000)).wait().report.nodes
    assert 200_000 <= nodes <= 202_000


def test_every_line_is_legal(engine):
    for fen in random_fens(60, seed=5):
        game = Game(fen)
        if not game.legal_moves():
            continue
        engine.set_position(game)
        reports = []
        result = engine.go(Limits(depth=7), reports.extend).wait()
        for report in reports:
            Game(fen, report.pv)  # refuses illegal moves
        assert result.best_move == reports[-1].pv[0]
        if result.ponder_move:
            Game(fen, [result.best_move, result.ponder_move])


def test_mate_lines_end_in_mate(engine):
    rows = [json.loads(line) for line in (DATA / "mates.jsonl").read_text().splitlines()]
    assert len(rows) >= 10
    for row in rows:
        engine.new_game()
        game = Game(row["fen"])
        engine.set_position(game)
        result = engine.go(Limits(nodes=2_000_000)).wait()
        report = result.report
        assert report.score.mate_plies == row["win_in_plies"], row
        assert result.best_move == report.pv[0]  # not always row["first_winning_move"]: others may mate as quickly
        end = Game(row["fen"], report.pv)
        assert len(report.pv) == row["win_in_plies"], row
        assert not end.legal_moves()


def test_mate_in_one(engine):
    engine.set_position(Game(MATE_IN_ONE))
    result = engine.go(Limits(depth=5)).wait()
    assert not Game(MATE_IN_ONE, [result.best_move]).legal_moves()
    assert result.report.score.value == MATE - 1
    assert result.report.score.mate_moves == 1


def test_a_stalemated_side_has_lost(engine):
    engine.set_position(Game(STALEMATED))
    reports = []
    result = engine.go(Limits(depth=5), reports.extend).wait()
    assert result.best_move is None
    assert [report.score.value for report in reports] == [-MATE]


def test_stalemating_wins(engine):
    """White's rook takes the last move away from a king that is not in check."""
    end = Game(STALEMATE_IN_ONE, ["a6a8"])
    assert not end.in_check
    assert not end.legal_moves()
    engine.set_position(Game(STALEMATE_IN_ONE))
    for depth in (1, 4):
        result = engine.go(Limits(depth=depth, root_moves=("a6a8",))).wait()
        assert result.report.score.value == MATE - 1


def test_no_progress_for_120_plies_is_a_draw(engine):
    engine.set_position(Game("3k5/9/9/p8/9/9/R8/9/9/5K3 w - - 119 90"))
    result = engine.go(Limits(depth=6)).wait()
    assert result.best_move == "a3a6"  # every other move ends the game in a draw


def test_root_moves_can_be_restricted(engine):
    game = Game()
    engine.set_position(game)
    assert engine.go(Limits(depth=3, root_moves=("a3a4",))).wait().best_move == "a3a4"
    assert engine.go(Limits(depth=3, root_moves=("a3a5",))).wait().best_move in game.legal_move_texts()


def test_lines_are_ordered_and_differ(engine):
    engine.multi_pv = 4
    engine.set_position(Game())
    reports = []
    engine.go(Limits(depth=6), reports.extend).wait()
    last = reports[-4:]
    assert [report.line for report in last] == [1, 2, 3, 4]
    assert len({report.pv[0] for report in last}) == 4
    scores = [report.score.value for report in last]
    assert scores == sorted(scores, reverse=True)


def test_a_stopped_iteration_keeps_the_root_usable(network):
    """After a stop in mid-tree the searcher can be set up anew."""
    searcher, tables = make_searcher(network)
    game = Game()
    searcher.set_up(game, game.legal_moves(), 20)
    searcher._shared[NODE_LIMIT] = 5000
    while searcher.advance(tables) == ITERATION_DONE:
        pass
    searcher._shared[[STOP_FLAG, NODE_LIMIT]] = 0, NEVER
    assert run(searcher, tables, game, 3) > 0
    assert move_text(int(searcher.record["root_moves"][searcher.record["root_order"][0]]["move"])) in (
        game.legal_move_texts()
    )


@kernel
def _search_again_kernel(searcher, value):
    return search_again(searcher, searcher.frames[0], value)


def test_a_window_of_one_takes_no_line_from_an_earlier_child(network):
    """A child with such a window keeps no line of its own, so the row may still hold a sibling's."""
    searcher, _ = make_searcher(network)
    game = Game()
    searcher.set_up(game, game.legal_moves(), 5)
    record = searcher.record
    frame = record["frames"][0]
    frame["is_pv"], frame["mode"] = 1, NULL_WINDOW
    frame["alpha"], frame["beta"], frame["depth"] = 10, 11, 3
    frame["move"] = parse_move("h2e2")
    record["pv_length"][1] = 7
    assert _search_again_kernel(record, 12) == ENTER
    assert record["frames"][1]["is_pv"] == 0
    assert record["pv_length"][1] == 0
