"""A running search: its limits alone and together, what it tells, and how it is stopped."""

import threading

import pytest

import search.running
from games.xiangqi import Game
from search.limits import CurrentMove, Limits
from search.time_management import ClockSettings

MATE_IN_ONE = "3k5/8R/9/9/9/9/9/9/9/R3K4 w - - 0 1"
MATED_IN_ONE = "3k5/8R/9/9/9/p8/9/2R6/9/4K4 b - - 0 1"
ONE_MOVE = "3k5/8R/9/p8/9/9/9/2R6/9/4K4 b - - 0 1"
WAIT_S = 60
HELD_S = 0.3


@pytest.fixture
def engine(engine):
    engine.clock_settings = ClockSettings()
    engine.set_position(Game())
    engine.go(Limits(depth=1)).wait()  # kernels are loaded
    yield engine
    engine.stop()
    engine.clock_settings = ClockSettings()


def is_held(running) -> bool:
    """Whether the search keeps its result back."""
    try:
        running.wait(HELD_S)
    except TimeoutError:
        return True
    return False


def test_pondering_suspends_nodes_and_time_until_ponderhit(engine):
    running = engine.go(Limits(nodes=5000, movetime_ms=10, ponder=True))
    assert is_held(running)
    engine.ponderhit()
    assert running.wait(WAIT_S).report.nodes > 5000


def test_a_node_limit_counts_after_ponderhit(engine):
    """What was searched before counts, but the search goes on until the limit is reached."""
    running = engine.go(Limits(nodes=200_000_000, ponder=True))
    engine.ponderhit()
    assert is_held(running)
    engine.stop()
    running.wait(WAIT_S)


@pytest.mark.parametrize("limits", [Limits(depth=2, ponder=True), Limits(depth=2, infinite=True)])
def test_a_search_that_is_done_waits_until_its_result_is_wanted(engine, limits):
    running = engine.go(limits)
    assert is_held(running)
    (engine.ponderhit if limits.ponder else engine.stop)()
    assert running.wait(WAIT_S).report.depth == 2


def test_ponderhit_after_the_time_is_used_up_answers_at_once(engine):
    running = engine.go(Limits(time_ms=(100, 100), ponder=True))
    assert is_held(running)
    engine.ponderhit()
    assert running.wait(WAIT_S).best_move


def test_a_clock_of_the_opponent_alone_is_no_limit(engine):
    running = engine.go(Limits(time_ms=(None, 100)))
    assert is_held(running)
    engine.stop()
    running.wait(WAIT_S)


@pytest.mark.parametrize(("fen", "mate_moves"), [(MATE_IN_ONE, 1), (MATED_IN_ONE, -1)])
@pytest.mark.parametrize("lines", [1, 3])
def test_a_mate_for_either_side_is_enough(engine, fen, mate_moves, lines):
    engine.multi_pv = lines
    engine.set_position(Game(fen))
    result = engine.go(Limits(mate=1)).wait(WAIT_S)
    assert result.report.score.mate_moves == mate_moves
    assert result.report.depth < 6


@pytest.mark.parametrize("mate", [0, -1])
def test_a_mate_in_no_moves_asks_for_an_answer_at_once(engine, mate):
    assert engine.go(Limits(mate=mate)).wait(WAIT_S).report.depth == 1


def test_a_mate_that_is_enough_still_waits_for_stop(engine):
    engine.set_position(Game(MATE_IN_ONE))
    running = engine.go(Limits(mate=1, infinite=True))
    assert is_held(running)
    assert sum(tree.nodes for worker in engine._workers for tree in worker.trees) < 1_000_000  # nothing runs any more
    engine.stop()
    assert running.wait(WAIT_S).report.score.mate_moves == 1


def test_the_only_move_is_played_at_once_under_a_clock(engine):
    engine.set_position(Game(ONE_MOVE))
    assert len(engine.game.legal_moves()) == 1
    result = engine.go(Limits(time_ms=(3_600_000, 3_600_000))).wait(WAIT_S)
    assert result.report.depth == 1


def test_no_move_is_allowed(engine):
    result = engine.go(Limits(root_moves=(), infinite=True)).wait(WAIT_S)
    assert result.best_move is None


def test_a_clock_of_nodes_repeats_exactly(engine):
    engine.clock_settings = ClockSettings(nodes_per_ms=50)
    runs = []
    for _ in range(2):
        engine.new_game()
        nodes = [engine.go(Limits(time_ms=(2000, 2000))).wait(WAIT_S).report.nodes for _ in range(3)]
        runs.append(nodes)
    assert runs[0] == runs[1]
    assert sum(runs[0]) <= 2000 * 50


def test_a_move_time_of_nodes(engine):
    engine.clock_settings = ClockSettings(nodes_per_ms=100)
    assert engine.go(Limits(movetime_ms=70)).wait(WAIT_S).report.nodes == 7000


def test_lines_come_together_best_first(engine):
    engine.multi_pv = 4
    batches = []
    engine.go(Limits(depth=5), batches.append).wait(WAIT_S)
    assert [[report.line for report in batch] for batch in batches] == [[1, 2, 3, 4]] * 5
    for batch in batches:
        scores = [report.score.value for report in batch]
        assert scores == sorted(scores, reverse=True)


def test_no_more_lines_than_moves(engine):
    engine.multi_pv = 5
    batches = []
    engine.go(Limits(depth=4, root_moves=("h2e2", "b0c2")), batches.append).wait(WAIT_S)
    assert {report.pv[0] for report in batches[-1]} == {"h2e2", "b0c2"}
    assert all(len(batch) == 2 for batch in batches)


def test_a_long_search_tells_of_root_moves_and_bounds(engine, monkeypatch):
    monkeypatch.setattr(search.running, "VERBOSE_NODES", 0)
    batches, moves = [], []
    engine.go(Limits(depth=9), batches.append, on_current_move=moves.append).wait(WAIT_S)
    assert moves[0] == CurrentMove(1, moves[0].move, 1)
    assert {move.number for move in moves} == set(range(1, 45))
    bounds = {report.bound for (report,) in batches}
    assert bounds == {"", "lowerbound", "upperbound"}
    assert batches[-1][0].bound == ""


def test_a_long_search_shows_lines_as_they_come(engine, monkeypatch):
    monkeypatch.setattr(search.running, "VERBOSE_NODES", 0)
    engine.multi_pv = 3
    batches = []
    engine.go(Limits(depth=4), batches.append).wait(WAIT_S)
    assert len(batches) == 4 * 3


def test_what_is_told_changes_nothing(engine, monkeypatch):
    nodes = []
    for verbose_nodes in (search.running.VERBOSE_NODES, 0):
        monkeypatch.setattr(search.running, "VERBOSE_NODES", verbose_nodes)
        engine.new_game()
        nodes.append(engine.go(Limits(depth=8)).wait(WAIT_S).report.nodes)
    assert nodes[0] == nodes[1]


def test_a_stop_at_any_moment_ends_the_search(engine):
    for delay_ms in (0, 1, 2, 5, 10, 20):
        results = []
        running = engine.go(Limits(infinite=True), on_result=results.append)
        timer = threading.Timer(delay_ms / 1000, engine.stop)
        timer.start()
        assert running.wait(WAIT_S).best_move in engine.game.legal_move_texts()
        timer.join()
        assert len(results) == 1


def test_win_draw_loss_add_up(engine):
    win, draw, loss = engine.go(Limits(depth=6)).wait(WAIT_S).report.score.win_draw_loss
    assert win + draw + loss == 1000
