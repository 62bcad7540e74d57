"""`setoption`: how names and values are read, what is refused, and what each option does."""

import os
import re

import pytest

from games.xiangqi import Game
from tests.protocol.conftest import default_values
from tests.support import scenes
from tests.support.engine_process import Engine

SPINS = {
    "Threads": (1, 1024),
    "Hash": (1, 33554432),
    "MultiPV": (1, 128),
    "Move Overhead": (0, 5000),
    "nodestime": (0, 10000),
    "BatchSize": (0, 65536),
    "Searchers": (0, 1024),
}
CHECKS = ("Ponder", "UCI_ShowWDL", "UCI_AnalyseMode", "Survive Errors")
IGNORED = ("usemillisec", "SyzygyPath", "UCI_Chess960", "UCI_Opponent")


def refusal(engine: Engine, command: str) -> str:
    """The one sentence with which a command is refused."""
    (message,) = engine.ask(command)
    assert message.startswith("info string ")
    return message


def lines_of(engine: Engine) -> int:
    return len(engine.search("go depth 2").last_lines())


def searched(engine: Engine) -> list:
    """What a search finds, without times."""
    return [(info.depth, info.cp, info.nodes, info.pv) for info in engine.search("go depth 7").infos]


class TestReading:
    def test_every_option_takes_its_default(self, engine):
        """LiGround replays all of them."""
        for name, value in default_values(engine).items():
            said = engine.ask(f"setoption name {name} value {value}")
            assert not [line for line in said if "No such option" in line or "expected" in line], name
        assert engine.search("go depth 4").best_move in Game().legal_move_texts()

    @pytest.mark.parametrize(
        "command",
        [
            "setoption name MultiPV value 3",
            "setoption name multipv value 3",
            "setoption name MULTIPV value 3",
            "  setoption   name  MultiPV \t value   3  ",
            "setoption name MultiPV value 3\r",
            "setoption name MultiPV value 03",
        ],
    )
    def test_names_in_any_case_between_any_blanks(self, engine, command):
        assert engine.ask(command) == []
        assert lines_of(engine) == 3

    def test_blanks_within_a_name(self, engine):
        assert engine.ask("setoption name   move    OVERHEAD value 50", "setoption name clear hash") == []

    @pytest.mark.parametrize("name", ["Flavour", "Threads2", "Skill Level", "option", "name Hash"])
    def test_an_unknown_name(self, engine, name):
        for end in (" value 1", " value", ""):
            assert refusal(engine, f"setoption name {name}{end}") == f"info string No such option: {name}"

    @pytest.mark.parametrize("command", ["setoption", "setoption name", "setoption name value 3", "setoption value"])
    def test_no_name(self, engine, command):
        refusal(engine, command)

    @pytest.mark.parametrize("name", IGNORED)
    def test_what_hosts_insist_on_is_accepted_silently(self, engine, name):
        for value in ("value true", "value <empty>", "value", ""):
            assert engine.ask(f"setoption name {name} {value}") == []


class TestValues:
    @pytest.mark.parametrize("name", SPINS)
    def test_spins_are_whole_numbers_in_a_range(self, engine, name):
        least, most = SPINS[name]
        for value in (least - 1, most + 1, "lots", "1.0", "1e1", "1_0", "0x8", "٣", "--1", "1 0", "true", "9" * 5000):
            message = refusal(engine, f"setoption name {name} value {value}")
            assert name in message
            assert str(value)[:20] in message
            assert str(least) in message
            assert str(most) in message

    @pytest.mark.parametrize("name", [*SPINS, *CHECKS, "UCI_Variant", "Backend"])
    @pytest.mark.parametrize(
        "command", ["setoption name {} value", "setoption name {}", "setoption name {} value <empty>"]
    )
    def test_an_empty_value_is_refused(self, engine, name, command):
        assert name in refusal(engine, command.format(name))

    @pytest.mark.parametrize("name", CHECKS)
    def test_checks_are_true_or_false(self, engine, name):
        for value in ("1", "0", "yes", "on", "true false", "tru"):
            message = refusal(engine, f"setoption name {name} value {value}")
            assert name in message
            assert f"'{value}'" in message
            assert "true" in message
            assert "false" in message
        assert engine.ask(f"setoption name {name} value true", f"setoption name {name} value false") == []

    @pytest.mark.parametrize(("name", "choices"), [("UCI_Variant", ["xiangqi"]), ("Backend", ["auto", "numba"])])
    def test_combos_take_one_of_their_choices(self, engine, name, choices):
        for value in choices:
            assert not [line for line in engine.ask(f"setoption name {name} value {value}") if "expected" in line]
        for value in ("chess", "cuda", "xiangqi2"):
            message = refusal(engine, f"setoption name {name} value {value}")
            assert f"'{value}'" in message
            assert all(choice in message for choice in choices)

    def test_a_refused_value_changes_nothing(self, engine):
        engine.send("setoption name MultiPV value 3")
        for value in ("500", "0", "-1", "many", ""):
            refusal(engine, f"setoption name MultiPV value {value}")
            assert lines_of(engine) == 3

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("MultiPV", 1),
            ("MultiPV", 128),
            ("Move Overhead", 0),
            ("Move Overhead", 5000),
            ("nodestime", 10000),
            ("Hash", 1),
        ],
    )
    def test_the_ends_of_a_range_are_accepted(self, engine, name, value):
        assert not [line for line in engine.ask(f"setoption name {name} value {value}") if "expected" in line]
        assert engine.search("go depth 3").best_move in Game().legal_move_texts()


class TestEffects:
    def test_threads(self, engine):
        assert any(
            line.startswith("info string Using 2 threads") for line in engine.ask("setoption name Threads value 2")
        )
        assert engine.search("go depth 5").strings[1].startswith("Using 2 threads")
        assert any(
            line.startswith("info string Using 1 thread") for line in engine.ask("setoption name Threads value 1")
        )
        assert re.match(r"Using 1 thread\b(?!s)", engine.search("go depth 5").strings[1])

    def test_more_threads_than_processors(self, engine):
        engine.send("setoption name Threads value 9")
        for _ in range(3):
            assert engine.search("go movetime 100").best_move in Game().legal_move_texts()

    def test_threads_forget_what_was_learnt(self, engine):
        first = searched(engine)
        assert searched(engine) != first
        engine.ask("setoption name Threads value 1")
        assert searched(engine) == first

    @pytest.mark.parametrize(
        "command", ["setoption name Clear Hash", "ucinewgame", "setoption name Clear Hash value x"]
    )
    def test_clearing_forgets_what_was_learnt(self, engine, command):
        first = searched(engine)
        assert searched(engine) != first
        assert engine.ask(command) == []
        assert searched(engine) == first

    def test_hash_has_the_size_that_is_asked_for(self, engine):
        full = []
        for size_mib in (1, 8):
            engine.send(f"setoption name Hash value {size_mib}")
            full.append(engine.search("go nodes 200000").infos[-1].hashfull)
        assert full[0] > 3 * full[1] > 0

    def test_a_hash_that_cannot_be_had(self, engine):
        before = searched(engine)
        message = refusal(engine, "setoption name Hash value 33554432")
        assert "33554432" in message
        engine.send("ucinewgame")
        assert searched(engine) == before

    def test_multipv(self, engine):
        for count in (1, 4, 2):
            engine.send(f"setoption name MultiPV value {count}")
            assert lines_of(engine) == count

    def test_the_analyse_mode_changes_nothing(self, engine):
        first = searched(engine)
        engine.send("setoption name UCI_AnalyseMode value true", "ucinewgame")
        assert searched(engine) == first

    def test_the_backend_does_not_change_the_search(self, engine):
        first = searched(engine)
        engine.send("setoption name Backend value numba", "ucinewgame")
        assert searched(engine) == first


class TestDebugLog:
    def test_both_directions_are_written(self, start_engine, tmp_path):
        engine = start_engine(cwd=tmp_path)
        log = tmp_path / "my log.txt"
        engine.send("setoption name Debug Log File value my log.txt")
        searched = engine.search("go depth 2")
        engine.send("isready")
        engine.until("readyok")
        engine.ask("position startpos moves h2e2", "setoption name Debug Log File value <empty>")
        size = log.stat().st_size
        lines = log.read_text().splitlines()
        assert ">> go depth 2" in lines
        assert ">> position startpos moves h2e2" in lines
        assert f"<< {searched.lines[-1]}" in lines
        assert "<< readyok" in lines
        assert all(line.startswith((">> ", "<< ")) for line in lines)
        engine.search("go depth 2")
        assert log.stat().st_size == size

    def test_a_line_that_is_no_text_is_written(self, start_engine, tmp_path):
        engine = start_engine(cwd=tmp_path, env={"PYTHONIOENCODING": "utf-8:strict"})
        engine.ask("setoption name Debug Log File value log.txt", b"caf\xe9", "走")
        assert b">> " in (tmp_path / "log.txt").read_bytes()
        assert engine.finish()[1] == 0

    @pytest.mark.parametrize("name", ["nowhere/log.txt", "."])
    def test_a_file_that_cannot_be_written_is_refused(self, start_engine, tmp_path, name):
        engine = start_engine(cwd=tmp_path)
        message = refusal(engine, f"setoption name Debug Log File value {name}")
        assert name in message
        assert engine.search("go depth 2").best_move in Game().legal_move_texts()
        assert list(tmp_path.iterdir()) == []

    def test_another_file_takes_over(self, start_engine, tmp_path):
        engine = start_engine(cwd=tmp_path)
        engine.ask(
            "setoption name Debug Log File value a", "setoption name Debug Log File value b", "position startpos"
        )
        assert ">> position startpos" not in (tmp_path / "a").read_text()
        assert ">> position startpos" in (tmp_path / "b").read_text()


class TestNumaPolicy:
    @pytest.mark.parametrize("value", ["auto", "system", "hardware", "none"])
    def test_a_policy_is_told(self, engine, value):
        said = engine.ask(f"setoption name NumaPolicy value {value}")
        assert any(line.startswith("info string Available processors: ") for line in said)
        assert any(line.startswith("info string Using 1 thread") for line in said)
        assert engine.search("go depth 4").best_move in Game().legal_move_texts()

    def test_an_explicit_set_binds(self, engine):
        processor = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        engine.ask(f"setoption name NumaPolicy value {processor}", "setoption name Threads value 2")
        searched = engine.search("go depth 5")
        assert searched.best_move in Game().legal_move_texts()
        assert searched.strings[1].startswith("Using 2 threads")

    @pytest.mark.parametrize("value", ["nonsense", "0-", "3-1", "a:b", "-1", "0,,1", "0-99999999999999", "", "999999"])
    def test_a_bad_value_keeps_the_policy(self, engine, value):
        message = refusal(engine, f"setoption name NumaPolicy value {value}")
        assert message.startswith("info string NumaPolicy keeps its value: ")
        assert value.split("-")[-1] in message
        assert engine.search("go depth 4").best_move in Game().legal_move_texts()


def test_options_before_the_engine_is_loaded(start_engine):
    """fastchess sends Threads first, and all before `isready`."""
    engine = start_engine()
    engine.send(
        "uci", "setoption name Threads value 2", "setoption name Hash value 8", "setoption name MultiPV value 2"
    )
    engine.send("ucinewgame", f"position fen {scenes.MIDDLEGAME}", "isready", "go depth 5")
    searched = engine.searched()
    assert len(searched.last_lines()) == 2
    assert "Using 2 threads" in " ".join(searched.strings)
