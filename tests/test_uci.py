"""The installed command as a GUI meets it: a process with pipes."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from games.xiangqi import START_FEN, Game
from games.xiangqi.geometry import FILE_LETTERS
from nnue_jax.network_file import read_network
from tests.support.golden import DATA

TIMEOUT_S = 120
COMMAND = [sys.executable, "-m", "uci.main"]
MATED = "3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1"


class Engine:
    """A `jaxfish` process; every line it prints is kept."""

    def __init__(self, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None):
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        self.lines: list[str] = []
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def send(self, *commands: str) -> None:
        self.process.stdin.write("".join(f"{command}\n" for command in commands))
        self.process.stdin.flush()

    def until(self, start: str) -> list[str]:
        """Lines up to and including the first that begins with `start`."""
        seen = []
        while True:
            line = self._queue.get(timeout=TIMEOUT_S)
            assert line is not None, f"the engine ended before printing '{start}': {seen}"
            self.lines.append(line)
            seen.append(line)
            if line.startswith(start):
                return seen

    def finish(self) -> tuple[list[str], int]:
        """Close the input; the remaining lines and the exit status."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        status = self.process.wait(timeout=TIMEOUT_S)
        self._reader.join(timeout=TIMEOUT_S)
        seen = []
        while (line := self._queue.get(timeout=TIMEOUT_S)) is not None:
            seen.append(line)
        self.lines += seen
        assert "Traceback" not in self.process.stderr.read()
        return seen, status

    def ask(self, *commands: str) -> list[str]:
        """Send commands, and return what is printed until `isready` is answered."""
        self.send(*commands, "isready")
        return self.until("readyok")[:-1]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(timeout=TIMEOUT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


@pytest.fixture
def engine():
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def fresh_engine(tmp_path):
    """An engine on a machine that has never compiled it."""
    engine = Engine(env={"JAXFISH_CACHE_DIR": str(tmp_path)})
    yield engine
    engine.close()


def run_once(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **options
    )


def test_the_handshake_lists_name_options_and_ends(engine):
    engine.send("uci")
    lines = engine.until("uciok")
    assert lines[0].startswith("jaxfish ")
    assert lines[1].startswith("id name jaxfish ")
    assert lines[2].startswith("id author ")
    names = [line.split(" type ")[0].removeprefix("option name ") for line in lines if line.startswith("option")]
    assert names == ["Threads", "Hash", "Clear Hash", "Move Overhead", "EvalFile"]
    assert engine.finish() == ([], 0)


def test_the_handshake_imports_neither_numba_nor_jax():
    script = (
        "import sys, uci.session as s\n"
        "class Idle:\n"
        "    is_loading = False\n"
        "    def __init__(self, network_file): pass\n"
        "    def wait(self): return self\n"
        "    def stop(self): pass\n"
        "s.EngineLoader = Idle\n"
        "assert s.Session().run(['uci', 'quit']) == 0\n"
        "assert not {'numpy', 'numba', 'jax'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("uciok\n")


def test_the_search_never_imports_jax():
    script = "import sys, uci.engine; assert 'jax' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_first_start_tells_that_it_is_getting_ready(fresh_engine):
    fresh_engine.send("isready")
    assert sum(line.startswith("info string Getting ready") for line in fresh_engine.until("readyok")) >= 2
    assert fresh_engine.finish()[1] == 0


def test_go_prints_lines_in_order_and_a_best_move(engine):
    engine.send("position startpos moves h2e2", "go depth 6")
    lines = engine.until("bestmove")
    infos = [line.split() for line in lines if line.startswith("info depth")]
    fields = "depth seldepth multipv score nodes nps hashfull tbhits time pv".split()
    assert [int(info[2]) for info in infos] == [1, 2, 3, 4, 5, 6]
    for info in infos:
        assert [word for word in info if word in fields] == fields
        Game(moves=["h2e2", *info[info.index("pv") + 1 :]])
    assert lines[-1].split()[1] == infos[-1][infos[-1].index("pv") + 1]


def test_go_combines_limits(engine):
    engine.send("go depth 50 nodes 3000")
    assert int(engine.until("bestmove")[-2].split(" nodes ")[1].split()[0]) <= 3000
    engine.send("go movetime 100 depth 200")
    engine.until("bestmove")
    engine.send("go wtime 1000 btime 1000 winc 10 binc 10 movestogo 20")
    engine.until("bestmove")
    engine.send("go wtime -50 btime 1000")
    engine.until("bestmove")
    engine.send("go searchmoves a3a4 depth 3")
    assert engine.until("bestmove")[-1].startswith("bestmove a3a4")


def test_infinite_waits_for_stop(engine):
    engine.send("position fen 3k5/8R/9/9/9/9/9/9/9/R3K4 w - - 0 1", "go infinite depth 3")
    engine.until("info depth 3")
    time.sleep(0.5)
    engine.send("isready")
    assert engine.until("readyok") == ["readyok"]
    engine.send("stop")
    assert engine.until("bestmove")[-1].startswith("bestmove")


def test_fifty_searches_stopped_without_waiting_give_fifty_moves(engine):
    engine.send(*["go infinite", "stop"] * 50)
    for _ in range(50):
        engine.until("bestmove")
    assert not any(line.startswith("bestmove") for line in engine.ask())


def test_a_queued_search_starts_when_the_first_ends(engine):
    engine.send("go depth 4", "position startpos moves h2e2", "go depth 4")
    first, second = engine.until("bestmove")[-1], engine.until("bestmove")[-1]
    Game(moves=[first.split()[1]])
    Game(moves=["h2e2", second.split()[1]])


def test_the_end_of_input_ends_a_search_with_its_move(engine):
    engine.send("go infinite")
    engine.until("info depth 3")
    lines, status = engine.finish()
    assert status == 0
    assert [line for line in lines if line.startswith("bestmove")] == lines[-1:]


def test_quit_during_loading_leaves_at_once(engine):
    engine.send("quit")
    assert engine.finish()[1] == 0


def test_perft_divides(engine):
    engine.send("go perft 3")
    lines = engine.until("Nodes searched")
    moves = dict(line.split(": ") for line in lines if line[:1] in FILE_LETTERS and ": " in line)
    assert set(moves) == set(Game().legal_move_texts())
    assert sum(map(int, moves.values())) == 79666
    assert lines[-1] == "Nodes searched: 79666"


def test_display(engine):
    text = engine.ask("position startpos moves h2h9 i9h9", "d")
    assert f"Fen: {Game(moves=['h2h9', 'i9h9']).fen()}" in text
    assert "Checkers: " in text
    text = engine.ask("position fen 3k5/9/9/9/3R5/9/9/9/9/4K4 b - - 0 1", "d")
    assert "Checkers: d5 " in text
    assert "Rule 60: 0, checks by White 0, by Black 0" in text
    assert "Verdict" not in text
    moves = "d1e1 e9d9 e1d1 d9e9 " * 2
    text = engine.ask(f"position fen 4k4/9/9/9/9/9/9/9/3R5/5K3 w - - 0 1 moves {moves}", "d")
    assert "Rule 60: 8, checks by White 4, by Black 0" in text
    assert "Verdict: loss (perpetual-check)" in text
    engine.send("position startpos", "d")
    assert any(line == f"Fen: {START_FEN}" for line in engine.until("Fen"))


def test_a_lost_root_has_no_move(engine):
    engine.send(f"position fen {MATED}", "go infinite")
    assert engine.until("bestmove")[-2:] == ["info depth 0 score mate 0", "bestmove (none)"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("position fen foo", ["foo", "ranks"]),
        ("position fen 9/9/9/9/9/9/9/9/9/4K4 w - - 0 1", ["black king"]),
        ("position startpos moves h2e2 go movetime 50", ["go"]),
        ("position startpos moves a0a5", ["a0a5"]),
        ("position somewhere", ["somewhere"]),
        ("go depth", ["depth"]),
        ("go movetime soon", ["soon"]),
        ("bench 0", ["0"]),
    ],
)
def test_a_bad_command_is_named_and_ends_the_engine(engine, command, words):
    engine.send(command)
    lines, status = engine.finish()
    (message,) = [line for line in lines if line.startswith("info string")]
    assert status == 1
    assert message.startswith(f"info string CRITICAL ERROR: Command `{command}` failed. Reason: ")
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("setoption name Threads value 0", ["Threads", "'0'", "1024"]),
        ("setoption name Hash value lots", ["Hash", "'lots'"]),
        ("setoption name Hash value 33554432", ["33554432"]),
        ("setoption name Flavour value sweet", ["Flavour"]),
        ("setoption name EvalFile value /nowhere.nnue", ["/nowhere.nnue"]),
    ],
)
def test_a_bad_option_is_named_and_the_engine_goes_on(engine, command, words):
    lines = engine.ask("setoption name Hash value 8", command)
    (message,) = [line for line in lines if "Getting ready" not in line and line.startswith("info string")]
    assert all(word in message for word in words)
    engine.send("go depth 3")
    engine.until("bestmove")


def test_unknown_commands_blank_lines_comments_and_carriage_returns(engine):
    lines = engine.ask("", "   ", "# a comment", "xyzzy now\r")
    assert [line for line in lines if not line.startswith(("info string Getting ready", "jaxfish"))] == [
        "Unknown command: 'xyzzy now'. Type help for more information."
    ]
    engine.send("position startpos\r", "go depth 2\r")
    engine.until("bestmove")


def test_options_take_effect(engine, network):
    from nets import DEFAULT_NETWORK

    lines = engine.ask("setoption name Threads value 2", f"setoption name EvalFile value {DEFAULT_NETWORK}")
    assert "info string Using 2 threads" in lines
    assert any(str(network.architecture) in line for line in lines)
    engine.send("setoption name move overhead value 50", "setoption name Clear Hash", "go nodes 20000")
    engine.until("bestmove")


def test_one_command_from_the_command_line():
    done = run_once("go", "depth", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("bestmove")
    assert "Unknown command" in run_once("xyzzy").stdout


def test_it_runs_from_any_folder(tmp_path):
    done = run_once("go", "depth", "1", cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stderr


def test_bench_repeats_its_node_total(tmp_path):
    positions = tmp_path / "positions.txt"
    positions.write_text(f"# two positions\n{START_FEN}\n\n{Game(moves=['h2e2']).fen()}\n")
    runs = [run_once("bench", "4", "1", "7", str(positions)) for _ in range(2)]
    totals = [[line for line in done.stderr.splitlines() if line.startswith("Nodes searched")] for done in runs]
    assert totals[0] == totals[1]
    assert len(totals[0]) == 1
    assert runs[0].stdout.count("bestmove") == 2


def test_a_bench_can_be_left(engine):
    engine.send("bench 16 1 40")
    engine.until("info depth 8")
    engine.send("quit")
    assert engine.finish()[1] == 0


def test_an_interrupt_ends_the_engine_quietly(engine):
    engine.send("go infinite")
    engine.until("info depth 8")
    engine.process.send_signal(signal.SIGINT)
    lines, status = engine.finish()
    assert status == 130
    assert lines[-1].startswith("bestmove")


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
