"""What cannot be carried out: said in a line that no GUI stumbles over, and how the engine goes on."""

import subprocess

import pytest

from games.xiangqi import START_FEN, Game
from tests.support import scenes
from tests.support.engine_process import COMMAND
from tests.support.uci_grammar import CRITICAL_ERROR, UNKNOWN_COMMAND

SURVIVE = "setoption name Survive Errors value true"
CROWDED = "rnbakabnr/p8/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1"

# A command and what its message must name.
CRITICAL = [
    ("position", ["startpos", "fen"]),
    ("position somewhere", ["somewhere"]),
    ("position fen", ["empty"]),
    ("position fen foo", ["foo", "ranks"]),
    ("position fen startpos", ["startpos"]),
    ("position fen 9/9/9/9/9/9/9/9/9/4K4 w - - 0 1", ["black king"]),
    ("position fen 9/9/9/9/9/9/9/9/9/9 w - - 0 1", ["king"]),
    (f"position fen {CROWDED}", ["33"]),
    (f"position fen {START_FEN.replace(' w ', ' x ')}", ["'x'"]),
    (f"position fen {START_FEN.replace(' 0 1', ' 120 1')}", ["120"]),
    ("position startpos moves a0a5", ["a0a5"]),
    ("position startpos moves h2e2 h2e2", ["h2e2"]),
    ("position startpos moves H2E2", ["H2E2"]),
    ("position startpos moves h2e2 go movetime 50", ["go"]),
    (f"position fen {START_FEN} moves h2e2 go movetime 50", ["go"]),
    ("go depth", ["depth"]),
    ("go depth five", ["depth", "five"]),
    ("go depth 1_0", ["depth", "1_0"]),
    ("go depth 5.0", ["depth", "5.0"]),
    ("go depth 0x5", ["depth", "0x5"]),
    ("go depth ٣", ["depth", "٣"]),
    ("go depth ５", ["depth", "５"]),
    ("go movetime soon", ["movetime", "soon"]),
    ("go movetime", ["movetime"]),
    ("go nodes depth 3", ["nodes", "depth"]),
    ("go wtime 1000 btime", ["btime"]),
    ("go winc ten", ["winc", "ten"]),
    ("go binc -", ["binc"]),
    ("go movestogo x", ["movestogo"]),
    ("go mate", ["mate"]),
    ("go perft", ["perft"]),
    ("go perft many", ["perft", "many"]),
    ("go depth 99999999999999999999999999999999x", ["depth"]),
    ("bench 0", ["0"]),
    ("bench 16 1 few", ["few"]),
    ("bench 16 1 1 nowhere.fen", ["nowhere.fen"]),
    ("bench 16 1 1 current sideways", ["sideways"]),
]


@pytest.mark.parametrize(("command", "words"), CRITICAL)
def test_a_critical_error_is_named_and_survived(engine, command, words):
    lines = engine.ask(SURVIVE, "position startpos moves h2e2", command)
    match = CRITICAL_ERROR.fullmatch(lines[0])
    assert match, lines
    assert match[1] == command
    reason = lines[0].partition("Reason: ")[2]
    assert all(word in reason for word in words)
    assert lines[1:] == [""]
    assert f"Fen: {Game(moves=['h2e2']).fen()}" in engine.ask("d")
    assert engine.search("go depth 2").best_move in Game(moves=["h2e2"]).legal_move_texts()


@pytest.mark.parametrize(
    "command", ["position fen foo", "position startpos moves a0a5", "go depth five", "position somewhere"]
)
def test_a_critical_error_ends_the_engine(own_engine, command):
    own_engine.ask()
    own_engine.send(command, "isready", "go depth 1")
    lines, status = own_engine.wait_for_end()
    assert status == 1
    assert len(lines) == 2
    assert CRITICAL_ERROR.fullmatch(lines[0])[1] == command
    assert lines[1] == ""


def test_a_critical_error_before_the_engine_is_loaded(own_engine):
    own_engine.send("position fen foo")
    lines, status = own_engine.wait_for_end()
    assert status == 1
    assert CRITICAL_ERROR.fullmatch(lines[-2])


@pytest.mark.parametrize("command", ["position fen foo", "go depth five"])
def test_a_running_search_gives_its_move_first(own_engine, command):
    own_engine.send("go infinite")
    own_engine.until("info depth 3")
    own_engine.send(command)
    assert own_engine.wait_for_end(30)[1] == 1
    printed = own_engine.lines
    assert sum(line.startswith("bestmove") for line in printed) == 1
    assert sum(line.startswith("info string CRITICAL ERROR") for line in printed) == 1


def test_errors_may_be_survived_and_again_not(own_engine):
    assert len(own_engine.ask(SURVIVE, "position fen foo")) == 2
    own_engine.send("setoption name Survive Errors value false", "position fen bar")
    lines, status = own_engine.wait_for_end()
    assert status == 1
    assert CRITICAL_ERROR.fullmatch(lines[0])[1] == "position fen bar"


@pytest.mark.parametrize(
    "line",
    [
        "xyzzy",
        "xyzzy now",
        "UCI",
        "IsReady",
        "Go depth 1",
        "POSITION startpos",
        "go!",
        "stop.",
        "'",
        "`",
        "0",
        "-",
        "bestmove a0a1",
        "info string hello",
        "readyok",
        "gö depth 1",
        "走 h2e2",
        "\U0001f600",
    ],
)
def test_unknown_commands_are_named(engine, line):
    (message,) = engine.ask(line)
    assert UNKNOWN_COMMAND.fullmatch(message)[1].split() == line.split()


@pytest.mark.parametrize("line", ["", " ", "\t \t", "# a comment", "#", "  # go depth 1", "\r", "#\r"])
def test_blank_lines_and_comments_are_nothing(engine, line):
    assert engine.ask(line) == []


@pytest.mark.parametrize(
    "line", ["position startpos moves h2e2\r", "  position\tstartpos   moves h2e2  ", "\tposition startpos moves h2e2"]
)
def test_blanks_are_harmless(engine, line):
    assert engine.ask(line) == []
    assert f"Fen: {Game(moves=['h2e2']).fen()}" in engine.ask("d\r")
    assert engine.search(" go  depth\t2 \r").infos[-1].depth == 2


def test_lines_that_end_like_those_of_windows(own_engine):
    own_engine.send("uci\r", "isready\r", "position startpos moves h2e2\r", "go depth 2\r")
    assert own_engine.until("uciok")[-1] == "uciok"
    assert own_engine.until("readyok")[-1] == "readyok"
    assert own_engine.searched().best_move in Game(moves=["h2e2"]).legal_move_texts()
    own_engine.send("quit\r")
    assert own_engine.wait_for_end() == ([], 0)


@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape", "ascii:strict"])
def test_bytes_that_are_no_text(start_engine, encoding):
    engine = start_engine(env={"PYTHONIOENCODING": encoding})
    (message,) = engine.ask(b"caf\xe9 \xff\xfe \x80")
    assert UNKNOWN_COMMAND.fullmatch(message)[1].startswith("caf")
    (message,) = engine.ask("走 h2e2")
    assert UNKNOWN_COMMAND.fullmatch(message)
    lines = engine.ask(SURVIVE, b"position fen \xff\xff", "position startpos moves \N{GREEK SMALL LETTER ALPHA}0")
    assert len(lines) == 4
    assert engine.search("go depth 2").best_move in Game().legal_move_texts()


@pytest.mark.parametrize(
    "data", [b"\0", b"go\0 depth 1", b"\x1b[2J", b"a\x0bb\x0cc", b"\x07", "x\u2028y\x85z".encode(), b"\xc2"]
)
def test_control_characters_are_not_passed_on(engine, data):
    """What would end a line, ring a bell or move a cursor is shown as an escape; the grammar is checked at the end."""
    lines = engine.ask(data)
    assert all(UNKNOWN_COMMAND.fullmatch(line) for line in lines)


def test_a_very_long_line(engine):
    (message,) = engine.ask("x" * 1_000_000)
    assert UNKNOWN_COMMAND.fullmatch(message)
    lines = engine.ask(SURVIVE, "position fen " + "9/" * 200_000, "go depth " + "9" * 100_000)
    assert len([line for line in lines if line.startswith("info string CRITICAL ERROR")]) >= 1
    engine.ask("stop")
    moves = " ".join(scenes.SHUFFLE * 500)
    assert engine.ask(f"position startpos moves {moves}") == []
    assert engine.search("go depth 2").best_move in Game().legal_move_texts()


def test_a_last_line_without_an_end_is_carried_out(own_engine):
    own_engine.ask()
    own_engine.process.stdin.write(b"go depth 2")
    own_engine.process.stdin.flush()
    lines, status = own_engine.finish()
    assert status == 0
    assert lines[-1].startswith("bestmove")


@pytest.mark.parametrize("closes_input", [False, True])
def test_nobody_listens(closes_input):
    """A GUI that has gone away reads nothing more; the engine ends and does not complain at length."""
    process = subprocess.Popen([COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"go infinite\n")
    process.stdin.flush()
    while not process.stdout.readline().startswith(b"info depth 5"):
        pass
    process.stdout.close()
    if closes_input:
        process.stdin.close()
    assert process.wait(timeout=30) in (0, 1)
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.stdin.close()
