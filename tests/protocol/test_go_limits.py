"""Every parameter of `go`: its effect alone and together with others.

Where time is measured on a machine that may be busy, the best of a few tries counts. With nodestime the clock runs in
nodes, and what a clock does repeats exactly.
"""

import re

import pytest

from games.xiangqi import Game
from tests.support import scenes
from tests.support.engine_process import Engine

TRIES = 5
SOON_S = 30  # for what takes some milliseconds on an idle machine
LONG_MS = 600_000
WAIT_S = 0.5


def set_position(engine: Engine, fen: str, *options: str) -> None:
    engine.send(*(f"setoption name {option}" for option in options), "ucinewgame", f"position fen {fen}")


def strings(engine: Engine, go: str) -> str:
    """The info strings of a search, beside those that every search begins with."""
    return "\n".join(engine.search(go).strings[3:])


def bench(engine: Engine, words: str) -> int:
    """Exact number of nodes that a search of the present position takes, from the total of `bench`."""
    engine.ask(f"bench {words}")
    engine.until_error("Nodes/second")
    (total,) = [line for line in engine.errors if line.startswith("Nodes searched")]
    engine.errors.clear()
    return int(total.split(":")[1])


class TestDepth:
    def test_alone(self, engine):
        infos = engine.search("go depth 7").infos
        assert [info.depth for info in infos] == [1, 2, 3, 4, 5, 6, 7]

    @pytest.mark.parametrize("other", ["nodes 100000000", f"movetime {LONG_MS}", f"wtime {LONG_MS} btime 1", "mate 1"])
    def test_ends_a_search_before_another_limit(self, engine, other):
        for go in (f"go depth 5 {other}", f"go {other} depth 5"):
            assert engine.search(go).infos[-1].depth == 5

    def test_more_than_there_is(self, engine):
        set_position(engine, scenes.MATE_IN_ONE)
        assert engine.search("go depth 1000000").infos[-1].depth <= 245


class TestNodes:
    @pytest.mark.parametrize("nodes", [1, 100, 5000, 123_456])
    def test_one_thread_keeps_it(self, engine, nodes):
        total = bench(engine, f"16 1 {nodes} current nodes")
        assert nodes <= total <= max(1.01 * nodes, nodes + 2)

    def test_several_threads_overshoot_by_less_than_a_hundredth(self, engine):
        for nodes in (100_000, 400_000):
            assert nodes <= bench(engine, f"16 2 {nodes} current nodes") <= 1.01 * nodes

    @pytest.mark.parametrize(
        "other", ["depth 100", f"movetime {LONG_MS}", f"wtime {LONG_MS} btime {LONG_MS}", "mate 1"]
    )
    def test_ends_a_search_before_another_limit(self, engine, other):
        assert engine.search(f"go {other} nodes 3000").infos[-1].nodes <= 3000

    def test_repeats_exactly(self, engine):
        """The same nodes give the same search, whatever was searched before `ucinewgame`."""

        def variations(nodes: int) -> list:
            engine.send("ucinewgame")
            return [(info.depth, info.cp, info.nodes, info.pv) for info in engine.search(f"go nodes {nodes}").infos]

        limits = [100 + 977 * i for i in range(20)]
        first = [variations(nodes) for nodes in limits]
        assert [variations(nodes) for nodes in reversed(limits)] == first[::-1]


class TestMovetime:
    @pytest.mark.parametrize("time_ms", [50, 100, 300])
    def test_is_kept(self, engine, time_ms):
        engine.search("go movetime 100")
        differences_s = []
        for _ in range(TRIES):
            differences_s.append(abs(engine.search(f"go movetime {time_ms}").elapsed_s - time_ms / 1000))
            if differences_s[-1] <= 0.02:
                break
        assert min(differences_s) <= 0.02, differences_s

    def test_move_overhead_is_not_taken_off(self, engine):
        engine.send("setoption name Move Overhead value 1000")
        assert engine.search("go movetime 300").elapsed_s >= 0.29

    @pytest.mark.parametrize("go", ["go movetime 1", "go movetime 100 depth 200", "go nodes 900000000 movetime 100"])
    def test_ends_a_search(self, engine, go):
        assert engine.search(go, SOON_S).best_move in Game().legal_move_texts()

    def test_with_a_clock_the_first_limit_counts(self, engine):
        assert engine.search(f"go movetime 50 wtime {LONG_MS} btime {LONG_MS}", SOON_S).best_move
        assert engine.search(f"go movetime {LONG_MS} wtime 100 btime 100", SOON_S).best_move


class TestClock:
    def used(self, engine: Engine, go: str, *moves: str, nodes_per_ms: int = 20) -> int:
        """Nodes of the iterations that a search under a clock completes, summed over some positions."""
        engine.send(f"setoption name nodestime value {nodes_per_ms}")
        total = 0
        for line in ("h2e2 h9g7", "h2e2 b9c7", "c3c4 b7e7", "b0c2 a9a8"):
            engine.send("ucinewgame", f"position startpos moves {' '.join([*line.split(), *moves])}")
            total += engine.search(go).infos[-1].nodes
        return total

    def test_more_time_is_used(self, engine):
        used = [self.used(engine, f"go wtime {time} btime 1") for time in (500, 5000, 50000)]
        assert used[0] < used[1] < used[2]

    def test_each_side_has_its_own(self, engine):
        little, much = "go wtime 200 btime 20000", "go wtime 20000 btime 200"
        assert self.used(engine, little) < self.used(engine, much)
        assert self.used(engine, little, "a3a4") > self.used(engine, much, "a3a4")

    def test_an_increment_is_spent(self, engine):
        without = self.used(engine, "go wtime 3000 btime 3000")
        assert without == self.used(engine, "go wtime 3000 btime 3000 winc 0 binc 2000")
        assert without < self.used(engine, "go wtime 3000 btime 3000 winc 2000 binc 0")
        assert self.used(engine, "go wtime 3000 btime 3000 binc 2000", "a3a4") > self.used(
            engine, "go wtime 3000 btime 3000 winc 2000", "a3a4"
        )

    def test_fewer_moves_to_go_give_more(self, engine):
        few, many = (self.used(engine, f"go wtime 3000 btime 3000 movestogo {moves}") for moves in (2, 40))
        assert few > many

    def test_the_last_move_before_the_control_keeps_the_overhead(self, engine):
        times_s = [engine.search("go wtime 1000 btime 1000 movestogo 1").elapsed_s for _ in range(3)]
        assert min(times_s) <= 0.99

    @pytest.mark.parametrize(
        "go",
        [
            "go wtime 1 btime 1",
            "go wtime 1 btime 1 movestogo 1",
            "go wtime -50 btime 1000",
            "go wtime -50 btime -50 winc 10 binc 10",
            "go wtime 10 btime 10 winc 10 binc 10",
            "go wtime 1 btime 1000 depth 200",
        ],
    )
    def test_hardly_any_time_is_enough_for_a_move(self, engine, go):
        times_s = []
        for _ in range(TRIES):
            searched = engine.search(go, SOON_S)
            assert searched.best_move in Game().legal_move_texts()
            times_s.append(searched.elapsed_s)
            if times_s[-1] < 0.05:
                break
        assert min(times_s) < 0.05

    def test_a_single_move_is_played_at_once(self, engine):
        set_position(engine, scenes.ONE_MOVE)
        searched = engine.search(f"go wtime {LONG_MS} btime {LONG_MS}", SOON_S)
        assert searched.best_move == "e8f8"

    def test_a_single_searchmove_is_played_at_once(self, engine):
        searched = engine.search(f"go wtime {LONG_MS} btime {LONG_MS} searchmoves a3a4", SOON_S)
        assert searched.best_move == "a3a4"

    def test_a_mate_that_is_found_is_played_at_once(self, engine):
        set_position(engine, scenes.MATE_IN_ONE)
        assert engine.search(f"go wtime {LONG_MS} btime {LONG_MS}", SOON_S).infos[-1].mate == 1

    def test_only_the_other_sides_clock_is_no_limit(self, engine):
        engine.send("go btime 100")
        assert not [line for line in engine.listen(WAIT_S) if line.startswith("bestmove")]
        engine.send("stop")
        assert engine.searched(SOON_S).best_move

    def test_a_clock_of_zero_beside_another_limit_is_absent(self, engine):
        for go in ("go wtime 0 btime 0 depth 6", "go depth 6 btime 0 wtime 0 winc 0 binc 0"):
            assert engine.search(go).infos[-1].depth == 6

    def test_move_overhead_is_taken_off(self, engine):
        little = self.used(engine, "go wtime 4000 btime 4000")
        engine.send("setoption name Move Overhead value 60")
        assert self.used(engine, "go wtime 4000 btime 4000") < little

    def test_pondering_hosts_get_more_time(self, engine):
        """Some of it was spent on the opponent's time."""
        searches = [f"go wtime {time} btime {time}" for time in (2000, 5000, 12000, 30000)]
        without = sum(self.used(engine, go) for go in searches)
        engine.send("setoption name Ponder value true")
        assert sum(self.used(engine, go) for go in searches) > without

    def test_nodestime_counts_nodes(self, engine):
        """A clock of 100 ms is 2,000 nodes for the whole game, and the next move has what is left of them."""
        engine.send("setoption name nodestime value 20")
        total = sum(engine.search("go wtime 100 btime 100", SOON_S).infos[-1].nodes for _ in range(20))
        assert 0 < total <= 2000 + 20 * 20


class TestMate:
    def test_ends_when_it_is_found(self, engine):
        set_position(engine, scenes.MATE_IN_ONE)
        searched = engine.search("go mate 1")
        assert [info.mate for info in searched.infos].index(1) == len(searched.infos) - 1
        assert not Game(scenes.MATE_IN_ONE, [searched.best_move]).legal_moves()

    def test_longer_ones_and_the_first_move(self, engine):
        set_position(engine, scenes.MATE_IN_THREE)
        searched = engine.search("go mate 3")
        assert searched.infos[-1].mate == 3
        assert searched.best_move == "i8g9"
        assert all(info.mate is None or info.mate > 3 for info in searched.infos[:-1])

    def test_of_either_side(self, engine):
        """The side to move is mated in two moves at the latest."""
        set_position(engine, Game(scenes.MATE_IN_THREE, ["i8g9"]).fen())
        searched = engine.search("go mate 3")
        assert -3 <= searched.infos[-1].mate < 0

    def test_counts_for_the_first_of_several_lines(self, engine):
        set_position(engine, scenes.MATE_IN_ONE, "MultiPV value 3")
        searched = engine.search("go mate 1", SOON_S)
        assert searched.last_lines()[0].mate == 1
        assert [info.line for info in searched.last_lines()] == [1, 2, 3]

    def test_without_one_the_search_goes_on(self, engine):
        engine.send("go mate 1")
        assert not [line for line in engine.listen(WAIT_S) if line.startswith("bestmove")]
        engine.send("stop")
        assert engine.searched(SOON_S).best_move

    @pytest.mark.parametrize("limit", ["movetime 100", "depth 4", "nodes 4000", "wtime 200 btime 200"])
    def test_without_one_another_limit_ends_it(self, engine, limit):
        assert engine.search(f"go mate 2 {limit}", SOON_S).best_move in Game().legal_move_texts()

    @pytest.mark.parametrize("limit", [f"movetime {LONG_MS}", "depth 100", f"wtime {LONG_MS} btime {LONG_MS}"])
    def test_is_reached_before_another_limit(self, engine, limit):
        set_position(engine, scenes.MATE_IN_THREE)
        assert engine.search(f"go {limit} mate 3").infos[-1].mate == 3


class TestSearchmoves:
    def test_alone(self, engine):
        searched = engine.search("go depth 4 searchmoves a3a4 i3i4")
        assert {info.pv[0] for info in searched.infos} <= {"a3a4", "i3i4"}
        assert searched.best_move in ("a3a4", "i3i4")
        assert searched.strings[3:] == []

    def test_need_not_be_last(self, engine):
        searched = engine.search("go searchmoves a3a4 i3i4 depth 3 nodes 100000")
        assert searched.infos[-1].depth == 3
        assert searched.best_move in ("a3a4", "i3i4")

    def test_capitals_are_understood(self, engine):
        assert engine.search("go depth 2 searchmoves A3A4").best_move == "a3a4"

    def test_with_several_lines(self, engine):
        engine.send("setoption name MultiPV value 5")
        searched = engine.search("go depth 3 searchmoves a3a4 c3c4 h2e2")
        lines = searched.last_lines()
        assert [info.line for info in lines] == [1, 2, 3]
        assert {info.pv[0] for info in lines} == {"a3a4", "c3c4", "h2e2"}
        engine.send("setoption name MultiPV value 2")
        assert len(engine.search("go depth 3 searchmoves a3a4 c3c4 h2e2").last_lines()) == 2

    def test_illegal_ones_are_named_and_dropped(self, engine):
        searched = engine.search("go depth 2 searchmoves a0a5 a3a4 nonsense")
        assert searched.best_move == "a3a4"
        (message,) = searched.strings[3:]
        assert "a0a5" in message
        assert "nonsense" in message
        assert "a3a4" not in message

    def test_if_none_is_left_all_are_searched(self, engine):
        searched = engine.search("go depth 2 searchmoves a0a5 b1b2")
        assert searched.best_move in Game().legal_move_texts()
        assert "a0a5" in searched.strings[3]

    def test_the_null_move_alone_asks_for_none(self, engine):
        """python-chess's spelling of an empty list."""
        searched = engine.search("go infinite searchmoves 0000", SOON_S)
        assert searched.best_move == "(none)"
        assert len(searched.strings) >= 1
        assert engine.search("go depth 2 searchmoves 0000 a3a4").best_move == "a3a4"

    def test_repeated_ones_count_once(self, engine):
        engine.send("setoption name MultiPV value 5")
        assert len(engine.search("go depth 2 searchmoves a3a4 a3a4 a3a4").last_lines()) == 1

    def test_with_mate(self, engine):
        """Without the mating move there is no mate in one."""
        set_position(engine, scenes.MATE_IN_ONE)
        searched = engine.search("go mate 1 depth 3 searchmoves i8i7")
        assert searched.best_move == "i8i7"
        assert searched.infos[-1].mate != 1


class TestPerft:
    @pytest.mark.parametrize(("depth", "total"), [(1, 44), (2, 1920), (3, 79666)])
    def test_divides(self, engine, depth, total):
        lines = engine.ask(f"go perft {depth}")
        counts = dict(line.split(": ") for line in lines if re.match(r"[a-i]\d[a-i]\d: ", line))
        assert set(counts) == set(Game().legal_move_texts())
        assert sum(map(int, counts.values())) == total
        assert lines[-3:] == ["", f"Nodes searched: {total}", ""]
        assert not [line for line in lines if line.startswith("bestmove")]

    @pytest.mark.parametrize("depth", ["0", "-3"])
    def test_at_least_the_moves_are_counted(self, engine, depth):
        assert "Nodes searched: 44" in engine.ask(f"go perft {depth}")

    @pytest.mark.parametrize("go", ["go infinite perft 2", "go perft 2 depth 1 ponder", "go searchmoves a3a4 perft 2"])
    def test_other_parameters_are_ignored(self, engine, go):
        assert "Nodes searched: 1920" in engine.ask(go)

    def test_ignores_repetitions_and_counters(self, engine):
        start, moves = scenes.PERPETUAL_CHECK
        engine.send(f"position fen {start} moves {' '.join(moves)}")
        assert f"Nodes searched: {len(Game(start).legal_moves())}" in engine.ask("go perft 1")

    def test_without_moves_there_is_nothing(self, engine):
        set_position(engine, scenes.MATED)
        assert engine.ask("go perft 3")[-2] == "Nodes searched: 0"

    @pytest.mark.parametrize("depth", ["100", "99999999999999999999"])
    def test_a_depth_beyond_all_measure_is_refused(self, engine, depth):
        lines = engine.ask("setoption name Survive Errors value true", f"go perft {depth}")
        assert "perft" in lines[0].partition("Reason: ")[2]

    def test_a_deep_one_can_be_stopped(self, engine):
        engine.send("go perft 12")
        engine.listen(0.3)
        engine.send("stop")
        engine.ask(timeout_s=SOON_S)


class TestWithoutLimits:
    def test_searches_until_stop(self, engine):
        for go in ("go", "go foo", "go foo bar 17"):
            engine.send(go)
            assert not [line for line in engine.listen(WAIT_S) if line.startswith("bestmove")]
            engine.send("stop")
            assert engine.searched(SOON_S).best_move in Game().legal_move_texts()

    def test_ends_by_itself_at_the_greatest_depth(self, engine):
        set_position(engine, scenes.MATE_IN_ONE)
        assert engine.search("go").infos[-1].depth <= 245

    def test_unknown_words_are_skipped(self, engine):
        assert engine.search("go quickly depth 3 please").infos[-1].depth == 3


@pytest.mark.parametrize("number", ["0", "-5"])
@pytest.mark.parametrize("name", ["depth", "nodes", "movetime", "mate", "movestogo"])
def test_senseless_numbers_give_a_move(engine, name, number):
    engine.send(f"go {name} {number}", "stop")
    assert engine.searched(SOON_S).best_move in Game().legal_move_texts()
