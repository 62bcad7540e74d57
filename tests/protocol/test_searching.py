"""While the engine searches: `stop`, `isready`, pondering, and what has to wait."""

import statistics
import threading
import time
from pathlib import Path

import pytest

from games.xiangqi import START_FEN, Game
from tests.support import scenes
from tests.support.engine_process import Engine
from tests.support.uci_grammar import parse_info

SOON_S = 30  # for what takes some milliseconds on an idle machine
WAIT_S = 0.5
LONG_MS = 600_000
TRIES = 4
READY_LIMIT_S = 0.05
GAME = "h2e2"


def best_moves(lines: list[str]) -> list[str]:
    return [line.split()[1] for line in lines if line.startswith("bestmove")]


def begin(engine: Engine, go: str = "go infinite") -> None:
    """Start a search, and wait until it has found something."""
    engine.send(go)
    engine.until("info depth 3", SOON_S)


def end(engine: Engine, command: str = "stop") -> str:
    """The best move that a command brings at once, with none before it."""
    assert not best_moves(engine.listen(WAIT_S))
    engine.send(command)
    return engine.searched(SOON_S).best_move


class TestStop:
    def test_brings_the_move(self, engine):
        begin(engine)
        engine.send("stop")
        assert engine.searched(SOON_S).best_move in Game().legal_move_texts()

    def test_brings_one_move_only(self, engine):
        begin(engine)
        engine.send("stop", "stop", "ponderhit", "stop")
        assert len(best_moves(engine.until("bestmove") + engine.ask("stop"))) == 1
        assert engine.listen(0.2) == []

    def test_without_a_search_does_nothing(self, engine):
        assert engine.ask("stop", "ponderhit", "stop") == []
        assert engine.search("go depth 4").infos[-1].depth == 4

    def test_fifty_pairs_give_fifty_moves(self, engine):
        engine.send(*["go infinite", "stop"] * 50)
        for _ in range(50):
            assert engine.searched().best_move in Game().legal_move_texts()
        assert not best_moves(engine.ask())

    def test_is_for_the_searches_asked_for_before_it(self, engine):
        engine.send("go infinite", "go infinite", "stop", "go depth 4")
        engine.searched(SOON_S)
        engine.searched(SOON_S)
        assert engine.searched().infos[-1].depth == 4

    def test_before_the_first_iteration_a_legal_move_is_found(self, engine):
        for fen in (scenes.START, scenes.MIDDLEGAME, scenes.TWO_MOVES):
            engine.send("ucinewgame", f"position fen {fen}", "go infinite", "stop")
            searched = engine.searched(SOON_S)
            assert searched.best_move in Game(fen).legal_move_texts()
            assert searched.infos[-1].pv[0] == searched.best_move

    @pytest.mark.parametrize("threads", [1, 2])
    def test_is_obeyed_at_once(self, engine, threads):
        engine.send(f"setoption name Threads value {threads}")
        times_s = []
        for _ in range(TRIES):
            begin(engine)
            engine.send("stop")
            times_s.append(engine.searched(SOON_S).elapsed_s)
        assert min(times_s) < 0.05


class TestInfinite:
    @pytest.mark.parametrize("go", ["go infinite depth 3", "go depth 3 infinite", "go infinite mate 1 depth 3"])
    def test_a_completed_depth_waits(self, engine, go):
        begin(engine, go)
        assert end(engine) in Game().legal_move_texts()

    @pytest.mark.parametrize("fen", [scenes.MATE_IN_ONE, scenes.ONE_MOVE, scenes.TWO_MOVES])
    def test_a_mate_or_a_single_move_waits(self, engine, fen):
        engine.send(f"position fen {fen}", "go infinite")
        engine.until("info depth 1")
        assert end(engine) in Game(fen).legal_move_texts()

    def test_a_clock_does_not_end_it(self, engine):
        begin(engine, "go infinite wtime 100 btime 100")
        assert end(engine) in Game().legal_move_texts()

    def test_waiting_takes_no_processor_time(self, engine):
        clock = Path(f"/proc/{engine.process.pid}/stat")
        if not clock.exists():
            pytest.skip("there is no /proc here to tell a process's time")

        def ticks() -> int:
            fields = clock.read_text().rsplit(")")[-1].split()
            return int(fields[11]) + int(fields[12])

        engine.send(f"position fen {scenes.MATE_IN_ONE}", "go infinite depth 5")
        engine.until("info depth 5")
        engine.listen(0.2)
        before = ticks()
        time.sleep(1)
        assert ticks() - before < 20  # hundredths of a second
        assert end(engine) in Game(scenes.MATE_IN_ONE).legal_move_texts()


class TestReady:
    def test_is_answered_during_a_search(self, engine):
        begin(engine)
        engine.send("isready")
        assert "bestmove" not in " ".join(engine.until("readyok", SOON_S))
        assert end(engine) in Game().legal_move_texts()

    def test_is_answered_whatever_waits(self, engine):
        begin(engine)
        engine.send("ucinewgame", "go depth 2", "setoption name Hash value 8", "isready")
        assert not best_moves(engine.until("readyok", SOON_S))
        engine.send("stop")
        engine.searched(SOON_S)
        engine.searched(SOON_S)

    def test_is_answered_though_all_came_at_once(self, engine):
        """When `isready` is read the search may not have begun yet."""
        for command in ("ucinewgame", "setoption name Hash value 8", "go depth 1", "bench 4 1 1 current"):
            engine.send("go infinite", command, "isready")
            engine.until("readyok", SOON_S)
            engine.send("stop")
            engine.ask(timeout_s=20)
            engine.ask("ucinewgame", timeout_s=20)

    @pytest.mark.parametrize("command", ["bench 16 1 100 current", "go perft 30", "speedtest 1 4 60"])
    def test_is_answered_during_other_long_work(self, engine, command):
        engine.ask()
        engine.send(command)
        engine.listen(0.3)
        engine.send("isready")
        engine.until("readyok", SOON_S)
        engine.send("stop")
        engine.ask("ucinewgame", timeout_s=20)

    def test_500_are_answered_within_50_ms_and_whole(self, engine):
        """A thousand a second; the grammar of all lines is checked when the engine is given back."""
        engine.send("setoption name MultiPV value 5")
        worst_s = []
        for _ in range(TRIES):
            begin(engine)
            times_s = self.answer_times_s(engine, 500)
            engine.send("stop")
            engine.searched(SOON_S)
            worst_s.append(max(times_s))
            assert statistics.median(times_s) < READY_LIMIT_S
            if worst_s[-1] < READY_LIMIT_S:
                break
        assert min(worst_s) < READY_LIMIT_S, worst_s

    def answer_times_s(self, engine: Engine, count: int) -> list[float]:
        sent_s: list[float] = []

        def ask() -> None:
            for _ in range(count):
                sent_s.append(time.monotonic())
                engine.send("isready")
                time.sleep(0.001)

        asking = threading.Thread(target=ask)
        asking.start()
        answered_s = []
        while len(answered_s) < count:
            answered_s.append(engine.until("readyok", SOON_S)[-1].time_s)
        asking.join()
        return [after - before for before, after in zip(sent_s, answered_s, strict=True)]


class TestPonder:
    def test_waits_for_the_hit_and_then_for_the_limit(self, engine):
        times_s = []
        for _ in range(TRIES):
            begin(engine, "go ponder movetime 300")
            assert not best_moves(engine.listen(WAIT_S))
            engine.send("ponderhit")
            times_s.append(engine.searched(SOON_S).elapsed_s)
            if times_s[-1] < 0.2:
                break
        assert min(times_s) < 0.2  # the time is up already

    def test_an_exhausted_clock_brings_the_move_at_once(self, engine):
        begin(engine, "go ponder wtime 200 btime 200")
        assert not best_moves(engine.listen(WAIT_S))
        engine.send("ponderhit")
        assert engine.searched(SOON_S).best_move in Game().legal_move_texts()

    def test_after_the_hit_the_clock_runs(self, engine):
        """Time is counted from `go`, so some is left."""
        begin(engine, "go ponder movetime 2000")
        engine.send("ponderhit")
        searched = engine.searched(SOON_S)
        assert 0.3 < searched.elapsed_s < 4

    def test_stop_brings_the_move(self, engine):
        begin(engine, "go ponder wtime 200 btime 200")
        assert end(engine) in Game().legal_move_texts()

    @pytest.mark.parametrize("command", ["ponderhit", "stop"])
    def test_a_completed_depth_waits(self, engine, command):
        begin(engine, "go ponder depth 3")
        assert end(engine, command) in Game().legal_move_texts()

    def test_nodes_do_not_end_it(self, engine):
        engine.send("go ponder nodes 20000")
        while parse_info(engine.until("info depth", SOON_S)[-1]).nodes < 20000:
            pass
        assert end(engine, "ponderhit") in Game().legal_move_texts()

    def test_mates_and_single_moves_wait(self, engine):
        for fen in (scenes.MATE_IN_ONE, scenes.ONE_MOVE):
            engine.send(f"position fen {fen}", f"go ponder wtime {LONG_MS} btime {LONG_MS}")
            engine.until("info depth 1")
            assert end(engine, "ponderhit") in Game(fen).legal_move_texts()

    def test_without_limits_the_hit_ends_nothing(self, engine):
        begin(engine, "go ponder")
        engine.send("ponderhit")
        assert end(engine) in Game().legal_move_texts()

    def test_together_with_infinite_only_stop_counts(self, engine):
        begin(engine, "go ponder infinite wtime 100 btime 100")
        engine.send("ponderhit")
        assert end(engine) in Game().legal_move_texts()

    def test_a_hit_for_a_search_that_waits_is_not_lost(self, engine):
        engine.send("go movetime 300", "go ponder depth 2", "ponderhit")
        engine.searched(SOON_S)
        assert engine.searched(SOON_S).infos[-1].depth == 2

    def test_a_hit_without_pondering_ends_nothing(self, engine):
        begin(engine)
        engine.send("ponderhit")
        assert end(engine) in Game().legal_move_texts()

    def test_a_mated_root_does_not_wait(self, engine):
        for fen in (scenes.MATED, scenes.STALEMATED):
            for go in ("go ponder", "go infinite", "go ponder infinite", "go movetime 100", "go"):
                engine.send(f"position fen {fen}")
                lines = engine.search(go, SOON_S).lines
                assert lines[-2:] == ["info depth 0 score mate 0", "bestmove (none)"]


class TestWaiting:
    """What would disturb a search waits for its end, and the reader goes on reading."""

    @pytest.mark.parametrize(
        "command",
        [
            "setoption name Hash value 8",
            "setoption name Threads value 2",
            "setoption name Clear Hash",
            "setoption name MultiPV value 2",
            "setoption name Hash value 0",
            "setoption name Flavour value sweet",
            "setoption",
            "ucinewgame",
            "bench 4 1 1 current",
            "speedtest 1 4 1",
            "go depth 2",
        ],
    )
    def test_a_stop_after_it_is_not_lost(self, engine, command):
        begin(engine)
        engine.send(command)
        assert not best_moves(engine.listen(0.1))
        engine.send("stop")
        assert engine.searched(SOON_S).best_move in Game().legal_move_texts()
        engine.ask(timeout_s=20)

    def test_an_option_applies_after_the_search(self, engine):
        begin(engine)
        engine.send("setoption name MultiPV value 3")
        assert all(" multipv 1 " in line for line in engine.listen(0.2) if line.startswith("info depth"))
        assert end(engine) in Game().legal_move_texts()
        assert len(engine.search("go depth 3").last_lines()) == 3

    def test_searches_come_in_turn(self, engine):
        engine.send("go depth 4", "go depth 2", "go depth 3")
        assert [engine.searched().infos[-1].depth for _ in range(3)] == [4, 2, 3]

    def test_the_order_of_positions_and_searches_is_kept(self, engine):
        engine.send("go depth 4", f"position startpos moves {GAME}", "go depth 3", f"position fen {scenes.ENDGAME}")
        engine.send("go depth 2")
        first, second, third = (engine.searched().best_move for _ in range(3))
        assert first in Game().legal_move_texts()
        assert second in Game(moves=[GAME]).legal_move_texts()
        assert third in Game(scenes.ENDGAME).legal_move_texts()

    def test_all_that_waits_is_done(self, engine):
        begin(engine)
        engine.send(
            "setoption name Hash value 8", "ucinewgame", "go depth 2", "bench 4 1 1 current", "go infinite", "stop"
        )
        engine.ask("ucinewgame", timeout_s=20)
        assert len(best_moves(engine.lines)) in (3, 4)  # of bench, if it was stopped before it began, none

    def test_quit_does_not_wait(self, own_engine):
        begin(own_engine)
        own_engine.send("setoption name Hash value 8", "ucinewgame", "go infinite", "bench", "quit")
        lines, status = own_engine.wait_for_end(SOON_S)
        assert status == 0
        assert best_moves(lines)[0] in Game().legal_move_texts()


class TestPosition:
    def test_a_position_does_not_disturb_the_search(self, engine):
        begin(engine)
        assert not best_moves(engine.ask(f"position fen {scenes.ENDGAME}"))
        assert f"Fen: {scenes.ENDGAME}" in engine.ask("d")
        assert end(engine) in Game().legal_move_texts()
        assert engine.search("go depth 2").best_move in Game(scenes.ENDGAME).legal_move_texts()

    def test_the_ponder_move_is_of_the_position_searched(self, engine):
        for _ in range(5):
            begin(engine)
            engine.send(f"position fen {scenes.ENDGAME}", "stop")
            searched = engine.searched(SOON_S)
            after = Game(moves=[searched.best_move])
            assert searched.ponder_move in after.legal_move_texts()
            engine.send("position startpos")

    @pytest.mark.parametrize(
        ("command", "answer"),
        [
            ("d", f"Fen: {START_FEN}"),
            ("eval", "Final evaluation"),
            ("compiler", "Kernel cache"),
            ("help", "jaxfish is a UCI engine"),
            ("xyzzy", "info string Unknown command: 'xyzzy'"),
        ],
    )
    def test_what_disturbs_nothing_is_done_at_once(self, engine, command, answer):
        begin(engine)
        engine.send(command)
        engine.until(answer)
        assert end(engine) in Game().legal_move_texts()

    def test_flip_during_a_search(self, engine):
        engine.send(f"position startpos moves {GAME}")
        begin(engine)
        engine.send("flip")
        assert end(engine) in Game(moves=[GAME]).legal_move_texts()
        assert (
            engine.search("go depth 2").best_move
            in Game("rnbakabnr/9/1c2c4/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w").legal_move_texts()
        )


class TestEnd:
    def test_quit_brings_the_move(self, own_engine):
        begin(own_engine)
        own_engine.send("quit")
        lines, status = own_engine.wait_for_end(SOON_S)
        assert status == 0
        assert len(best_moves(lines)) == 1
        assert lines[-1].startswith("bestmove")

    @pytest.mark.parametrize("go", ["go infinite", "go ponder", "go infinite depth 1", "go wtime 900000 btime 900000"])
    def test_the_end_of_input_brings_the_move(self, own_engine, go):
        """A match runner that was killed leaves no engine behind."""
        own_engine.send(go)
        own_engine.until("info depth 1")
        lines, status = own_engine.finish(SOON_S)
        assert status == 0
        assert lines[-1].startswith("bestmove")
        assert len(best_moves(own_engine.lines)) == 1

    def test_quit_without_a_search(self, own_engine):
        own_engine.send("isready", "quit")
        assert own_engine.wait_for_end()[1] == 0

    def test_nothing_after_quit_is_read(self, own_engine):
        own_engine.ask()
        own_engine.send("quit", "d", "go depth 1")
        assert own_engine.wait_for_end(SOON_S) == ([], 0)
