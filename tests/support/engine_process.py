"""A jaxfish process driven through pipes: every line it prints is kept, with the time it came.

A process that prints a traceback, a line that no GUI could read, or nothing for too long fails the test.
"""

import contextlib
import os
import queue
import subprocess
import sysconfig
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support import uci_grammar
from tests.support.uci_grammar import Info

TIMEOUT_S = 240  # a first start compiles the engine, on a machine that may be busy
COMMAND = Path(sysconfig.get_path("scripts")) / "jaxfish"
UNBUFFERED = "PYTHONUNBUFFERED"  # would hide a line that is not flushed


class Line(str):
    """A line of output. time_s: when it came, on the clock of time.monotonic()."""

    time_s: float

    @classmethod
    def of(cls, data: bytes) -> "Line":
        """Bytes that are not UTF-8 become surrogates, which the grammar refuses."""
        line = cls(data.decode("utf-8", "surrogateescape").removesuffix("\n"))
        line.time_s = time.monotonic()
        return line


@dataclass(frozen=True)
class Searched:
    """What was printed from `go` to `bestmove`. elapsed_s: time from sending the command to `bestmove`."""

    lines: list[Line]
    elapsed_s: float

    @property
    def infos(self) -> list[Info]:
        return uci_grammar.infos(self.lines)

    @property
    def strings(self) -> list[str]:
        return [line.removeprefix("info string ") for line in self.lines if line.startswith("info string ")]

    @property
    def best_move(self) -> str:
        return self.lines[-1].split()[1]

    @property
    def ponder_move(self) -> str | None:
        words = self.lines[-1].split()
        return words[3] if len(words) > 2 else None

    def last_lines(self) -> list[Info]:
        """The lines of the last depth, one for each multipv number."""
        last = {info.line: info for info in self.infos}
        return [last[number] for number in sorted(last)]


def environment(env: dict[str, str] | None = None) -> dict[str, str]:
    """This process's environment with changes, without what would make a child flush by itself."""
    return {name: value for name, value in os.environ.items() if name != UNBUFFERED} | (env or {})


class Engine:
    """A running `jaxfish`.

    lines   all that was read from standard output
    errors  all that came on standard error, by line
    sent    all commands sent
    """

    def __init__(self, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None):
        assert COMMAND.exists(), f"There is no {COMMAND}; install the engine first: pip install '.[test]'"
        self.process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment(env),
        )
        self.lines: list[Line] = []
        self.errors: list[str] = []
        self.sent: list[str] = [" ".join(arguments)]
        self._begins_with_banner = True
        self.started_s = time.monotonic()
        self._sent_s = self.started_s
        self._is_input_open = True
        self._marks = 0  # number of calls of `ask`
        self._queue: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for data in self.process.stdout:
            self._queue.put(Line.of(data))
        self._queue.put(None)

    def _read_errors(self) -> None:
        for data in self.process.stderr:
            self.errors.append(data.decode("utf-8", "backslashreplace").rstrip("\n"))

    def send(self, *commands: str | bytes) -> None:
        """Write lines; a str is sent as UTF-8, its surrogates as the bytes they stand for."""
        data = b"".join(_encoded(command) + b"\n" for command in commands)
        self.sent += [_encoded(command).decode("utf-8", "replace") for command in commands]
        self.process.stdin.write(data)
        self.process.stdin.flush()
        self._sent_s = time.monotonic()

    def next_line(self, timeout_s: float = TIMEOUT_S) -> Line | None:
        """The next line, or None at the end of the output; queue.Empty if nothing comes in time."""
        line = self._queue.get(timeout=max(0.0, timeout_s))
        if line is None:
            self._queue.put(None)  # for whoever asks again
        else:
            self.lines.append(line)
        return line

    def until(self, start: str, timeout_s: float = TIMEOUT_S) -> list[Line]:
        """Lines up to and including the first that begins with `start`."""
        deadline_s = time.monotonic() + timeout_s
        seen: list[Line] = []
        while True:
            try:
                line = self.next_line(deadline_s - time.monotonic())
            except queue.Empty:
                raise AssertionError(f"no '{start}' within {timeout_s} s. {self._situation()}") from None
            assert line is not None, f"the engine ended before printing '{start}'. {self._situation()}"
            seen.append(line)
            if line.startswith(start):
                return seen

    def until_error(self, start: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until a line that begins with `start` has come on standard error."""
        deadline_s = time.monotonic() + timeout_s
        while not any(line.startswith(start) for line in self.errors):
            assert time.monotonic() < deadline_s, f"no '{start}' within {timeout_s} s. {self._situation()}"
            time.sleep(0.005)

    def listen(self, seconds: float) -> list[Line]:
        """The lines that come within a time."""
        deadline_s = time.monotonic() + seconds
        seen: list[Line] = []
        with contextlib.suppress(queue.Empty):
            while (line := self.next_line(deadline_s - time.monotonic())) is not None:
                seen.append(line)
        return seen

    def ask(self, *commands: str | bytes, timeout_s: float = TIMEOUT_S) -> list[Line]:
        """Send commands, and return what is printed until all are carried out, without the banner.

        The end is told by the refusal of an option that there is not: unlike `isready` it has to wait its turn.
        A search that was begun or stopped may go on printing.
        """
        self._marks += 1
        mark = f"mark {self._marks}"
        self.send(*commands, f"setoption name {mark} value 1")
        lines = self.until(f"info string No such option: {mark}", timeout_s)[:-1]
        return [line for line in lines if not uci_grammar.BANNER.fullmatch(line)]

    def search(self, go: str, timeout_s: float = TIMEOUT_S) -> Searched:
        """Send a `go`, and return what is printed until it has its move."""
        self.send(go)
        return self.searched(timeout_s)

    def searched(self, timeout_s: float = TIMEOUT_S) -> Searched:
        """What is printed until the next `bestmove`."""
        sent_s = self._sent_s
        lines = self.until("bestmove", timeout_s)
        return Searched(lines, lines[-1].time_s - sent_s)

    def wait_for_end(self, timeout_s: float = TIMEOUT_S) -> tuple[list[Line], int]:
        """The remaining lines and the exit status of a process that is to end by itself."""
        try:
            status = self.process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the engine has not ended within {timeout_s} s. {self._situation()}") from None
        for reader in self._readers:
            reader.join(timeout=TIMEOUT_S)
        seen: list[Line] = []
        while (line := self.next_line()) is not None:
            seen.append(line)
        self.verify()
        return seen, status

    def finish(self, timeout_s: float = TIMEOUT_S) -> tuple[list[Line], int]:
        """Close the input; the remaining lines and the exit status."""
        self._close_input()
        return self.wait_for_end(timeout_s)

    @property
    def is_running(self) -> bool:
        return self._is_input_open and self.process.poll() is None

    def verify(self) -> None:
        """AssertionError if there was a traceback, or a line that is not of the protocol."""
        text = "\n".join(self.errors)
        assert "Traceback" not in text, text
        faults = uci_grammar.faults(self.lines, self.sent, self._begins_with_banner)
        assert not faults, faults

    def forget(self) -> None:
        """Verify what was printed, and begin anew with what comes."""
        self.verify()
        self._begins_with_banner = self._begins_with_banner and not self.lines
        self.lines.clear()
        self.sent.clear()
        self.errors.clear()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()
        self._close_input()
        for reader in self._readers:
            reader.join(timeout=TIMEOUT_S)
        while self.next_line() is not None:
            pass
        self.process.stdout.close()
        self.process.stderr.close()

    def close(self) -> None:
        """End the process if it still runs, and verify what it printed."""
        self.kill()
        self.verify()

    def _close_input(self) -> None:
        self._is_input_open = False
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def _situation(self) -> str:
        return f"Sent last: {self.sent[-8:]}. Read last: {self.lines[-8:]}. Errors: {self.errors[-8:]}"


def _encoded(command: str | bytes) -> bytes:
    return command if isinstance(command, bytes) else command.encode("utf-8", "surrogateescape")


def run_once(
    *arguments: str, timeout_s: float = TIMEOUT_S, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """`jaxfish` with arguments and no input, until it ends; the lines it printed are verified."""
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
        check=False,
        cwd=cwd,
        env=environment(env),
    )
    assert "Traceback" not in done.stderr, done.stderr
    command = arguments[2:] if arguments[:1] == ("--network",) else arguments
    faults = uci_grammar.faults(done.stdout.splitlines(), [" ".join(command)])
    assert not faults, faults
    return done
