"""The command line: arguments are one command, and the process ends when it and its search are done."""

import signal

import pytest

from games.xiangqi import Game
from nnue_jax.network_file import read_network
from tests.support.engine_process import run_once
from tests.support.golden import DATA
from tests.support.uci_grammar import CRITICAL_ERROR

SOON_S = 30
INTERRUPTED = 130


def test_a_search():
    done = run_once("go", "depth", "3")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if line.startswith("info depth")]
    assert lines[-1].startswith("bestmove")


@pytest.mark.parametrize("argument", ["", "  ", "# go"])
def test_an_argument_that_says_nothing_does_nothing(argument):
    done = run_once(argument)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)


def test_arguments_are_joined():
    assert run_once("go depth", "2").stdout.splitlines()[-1].split()[1] in Game().legal_move_texts()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["uci"], "uciok"),
        (["isready"], "readyok"),
        (["d"], "Fen: "),
        (["eval"], "Final evaluation"),
        (["compiler"], ""),
        (["go", "perft", "2"], "Nodes searched: 1920"),
        (["help"], ""),
        (["--help"], ""),
        (["license"], ""),
        (["--license"], ""),
    ],
)
def test_other_commands(arguments, expected):
    done = run_once(*arguments)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) > 1
    assert any(line.startswith(expected) for line in lines[1:])


@pytest.mark.parametrize("arguments", [["stop"], ["ponderhit"], ["quit"], ["position", "startpos", "moves", "h2e2"]])
def test_commands_that_say_nothing(arguments):
    done = run_once(*arguments)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_an_unknown_command():
    done = run_once("xyzzy", "now")
    assert done.stdout.splitlines()[1:] == ["info string Unknown command: 'xyzzy now'. Type help for more information."]


@pytest.mark.parametrize("arguments", [["position", "fen", "foo"], ["go", "depth", "five"], ["bench", "0"]])
def test_a_failure_is_an_exit_status(arguments):
    done = run_once(*arguments)
    assert done.returncode == 1
    assert CRITICAL_ERROR.fullmatch(done.stdout.splitlines()[1])[1] == " ".join(arguments)


def test_an_infinite_search_ends_when_interrupted(start_engine):
    engine = start_engine("go", "infinite")
    engine.until("info depth 5")
    assert not [line for line in engine.listen(1) if line.startswith("bestmove")]
    engine.process.send_signal(signal.SIGINT)
    lines, status = engine.wait_for_end(SOON_S)
    assert status == INTERRUPTED
    assert lines[-1].startswith("bestmove")


@pytest.mark.parametrize("go", ["go infinite", "go depth 99"])
def test_an_interrupt_ends_a_session_quietly(own_engine, go):
    own_engine.send(go)
    own_engine.until("info depth 6")
    own_engine.process.send_signal(signal.SIGINT)
    lines, status = own_engine.wait_for_end(SOON_S)
    assert status == INTERRUPTED
    assert lines[-1].startswith("bestmove")
    assert own_engine.errors == []


def test_it_runs_from_any_folder(tmp_path):
    done = run_once("go", "depth", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_network_on_the_command_line(tmp_path):
    """It is the one in use: what export_net writes is its content."""
    exported = tmp_path / "exported.nnue"
    done = run_once("--network", str(DATA / "random128.nnue"), "export_net", str(exported))
    assert done.returncode == 0, done.stdout
    assert read_network(exported).description == read_network(DATA / "random128.nnue").description
    done = run_once("--network", str(tmp_path / "missing.nnue"), "d")
    assert done.returncode == 1
    assert "missing.nnue' cannot be read" in done.stdout
    done = run_once("--network")
    assert done.returncode == 2
    assert "expected the name of a network file" in done.stderr
