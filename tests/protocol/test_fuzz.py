"""Random and mutated command lines: no traceback, no hang, no lost answer, and every line is of the protocol.

The lines of a batch are sent at once. Then everything is stopped, and what was asked for is counted against what came.
"""

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.protocol.command_lines import lines as command_lines
from tests.support.engine_process import Engine, Line
from tests.support.golden import DATA
from tests.support.scenes import ENDGAME, MATE_IN_ONE, START

BATCH = 25
PATIENCE_S = 60
MEMORY_LIMIT_BYTES = 8 << 30
SURVIVE = "setoption name Survive Errors value {}"
CRITICAL = "info string CRITICAL ERROR: Command `"
ENCODING = "utf-8:strict"  # whatever the locale

REPEATABLE = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # a batch that fails is printed as it is: to shrink it would take hours
    suppress_health_check=list(HealthCheck),
)
BATCHES = st.lists(command_lines, min_size=BATCH, max_size=BATCH)


def as_read(lines: list[str]) -> list[list[str]]:
    """The words of the commands up to `quit`, as an engine that reads text finds them."""
    commands = []
    for line in lines:
        text = line.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        for part in text.split("\r"):
            words = part.split()
            if words and not words[0].startswith("#"):
                commands.append(words)
                if words[0] == "quit":
                    return commands
    return commands


class Fuzzer:
    """An engine that gets batch after batch; a new one takes over where one has ended as it should."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._engine: Engine | None = None
        self._number = 0
        self._has_failed = False  # in a way that only the exit status remembers
        (folder / "small.nnue").write_bytes((DATA / "piece_square128.nnue").read_bytes())
        (folder / "broken.nnue").write_bytes((DATA / "piece_square128.nnue").read_bytes()[:5000])
        (folder / "few.txt").write_text(f"{START}\n# a comment\n{MATE_IN_ONE}\n\n{ENDGAME}\n")

    def check(self, lines: list[str], survives: bool) -> None:
        """Send a batch, and see to it that everything is answered."""
        engine = self._start()
        self._number += 1
        mark = f"No such option: mark {self._number}"
        sent = [SURVIVE.format(str(survives).lower()), *lines]
        with contextlib.suppress(BrokenPipeError):  # an engine that ended is looked at below
            engine.send(*sent)
            engine.send("stop", "ucinewgame", f"setoption name mark {self._number}")
        received = self._receive(f"info string {mark}")
        self._has_failed |= any(line.startswith("info string Failed to export") for line in received)
        if received and received[-1] == f"info string {mark}":
            self._check_answers(sent, received)
            engine.forget()
        else:
            self._check_end(sent, received, survives)

    def _start(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(cwd=self._folder, env={"PYTHONIOENCODING": ENCODING})
            self._limit_memory()
            self._has_failed = False
            self._engine.ask()
        return self._engine

    def _limit_memory(self) -> None:
        with contextlib.suppress(ImportError, AttributeError):
            import resource

            resource.prlimit(self._engine.process.pid, resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))

    def _receive(self, end: str) -> list[Line]:
        """What comes up to a line, or up to the end of the output."""
        deadline_s = time.monotonic() + PATIENCE_S
        received: list[Line] = []
        while True:
            line = self._engine.next_line(deadline_s - time.monotonic())
            if line is None:
                return received
            received.append(line)
            if line == end:
                return received

    def _check_answers(self, sent: list[str], received: list[Line]) -> None:
        commands = as_read(sent)
        names = [words[0] for words in commands]
        for command, answer in (("uci", "uciok"), ("ucci", "ucciok"), ("isready", "readyok")):
            assert received.count(answer) == names.count(command)
        refused = [line.removeprefix(CRITICAL) for line in received if line.startswith(CRITICAL)]
        searches = [words for words in commands if words[0] == "go"]
        failed = [line for line in refused if line.startswith("go")]
        counted = sum("perft" in words for words in searches) - sum("perft" in line for line in failed)
        benches = names.count("bench") - sum(line.startswith("bench") for line in refused)
        expected = len(searches) - len(failed) - counted + self._benched(benches)
        assert sum(line.startswith("bestmove") for line in received) == expected

    def _benched(self, benches: int) -> int:
        """Searches that so many runs of `bench` have told of; standard error may come later than the rest."""
        deadline_s = time.monotonic() + PATIENCE_S
        while sum(line.startswith("Nodes/second") for line in self._engine.errors) < benches:
            assert time.monotonic() < deadline_s, "a bench without totals"
            time.sleep(0.005)
        return sum(line.startswith("Position: ") for line in self._engine.errors)

    def _check_end(self, sent: list[str], received: list[Line], survives: bool) -> None:
        """The engine has ended: it was asked to, or a command could not be carried out and it has said so."""
        engine, self._engine = self._engine, None
        status = engine.wait_for_end(PATIENCE_S)[1]
        engine.close()
        has_quit = as_read(sent)[-1][0] == "quit"
        may_exit = not survives or any("survive" in line.lower() for line in sent[1:])
        if may_exit and any(line.startswith(CRITICAL) for line in received):
            assert status == 1 or (has_quit and status == self._has_failed)
        else:
            assert has_quit
            assert status == self._has_failed

    def close(self) -> None:
        if self._engine is not None:
            self._engine.ask("stop")
            status = self._engine.finish(PATIENCE_S)[1]
            assert status == self._has_failed
            self._engine.close()


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    fuzzer = Fuzzer(tmp_path_factory.mktemp("fuzz"))
    yield fuzzer
    fuzzer.close()


@settings(REPEATABLE, max_examples=50)
@given(lines=BATCHES)
def test_a_thousand_lines(fuzzer, lines):
    fuzzer.check(lines, survives=True)


@settings(REPEATABLE, max_examples=10)
@given(lines=BATCHES)
def test_exits_are_announced(fuzzer, lines):
    fuzzer.check(lines, survives=False)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(REPEATABLE, max_examples=700)
@given(lines=BATCHES)
def test_many_thousand_lines(fuzzer, lines):
    fuzzer.check(lines, survives=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(REPEATABLE, max_examples=100)
@given(lines=BATCHES)
def test_many_exits_are_announced(fuzzer, lines):
    fuzzer.check(lines, survives=False)


@pytest.mark.slow
@settings(REPEATABLE, max_examples=200)
@given(data=st.lists(st.binary(max_size=200).filter(lambda data: b"\n" not in data), min_size=BATCH, max_size=BATCH))
def test_bytes(fuzzer, data):
    fuzzer.check([line.decode("utf-8", "surrogateescape") for line in data], survives=True)
