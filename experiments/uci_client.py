"""A UCI engine as a process: commands go down one pipe, lines come up another, and nothing is waited for forever.

    with UciClient(["jaxfish"], {"Hash": 16}, name="jaxfish") as engine:
        engine.new_game()
        outcome = engine.search("startpos", ["h2e2"], "movetime 100", timeout_s=10)

Moves are written a0 to i9 on our side. An engine that counts ranks from one (a1 to i10) is given first_rank=1,
and its moves are rewritten in both directions.

A line is stamped when the reader thread gets it, so an elapsed time does not depend on when somebody looks.
"""

import os
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

START_TIMEOUT_S = 180.0  # jaxfish compiles its kernels on the first start, half a minute on an idle machine
READY_TIMEOUT_S = 60.0
QUIT_TIMEOUT_S = 5.0
REMEMBERED_LINES = 5  # of each of the engine's two outputs, for error messages
START_POSITION = "startpos"


class EngineFailure(Exception):
    """An engine that cannot be used any more; the message is a sentence."""


class EngineCrash(EngineFailure):
    """The process ended, or could not be started."""


class EngineHang(EngineFailure):
    """The process did not answer in time."""


class EngineNonsense(EngineFailure):
    """The process answered what no engine may answer."""


@dataclass(frozen=True)
class InfoLine:
    """What an info line says of a line of play; None for what it leaves out. A score is score_cp or mate_moves."""

    text: str
    depth: int | None = None
    seldepth: int | None = None
    multipv: int = 1
    score_cp: int | None = None
    mate_moves: int | None = None
    nodes: int | None = None
    time_ms: int | None = None
    pv: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchOutcome:
    """best_move: None if the engine has no move. elapsed_ms: from sending `go` to receiving `bestmove`."""

    best_move: str | None
    ponder_move: str | None
    infos: tuple[InfoLine, ...]
    elapsed_ms: float

    @property
    def last_scored(self) -> InfoLine | None:
        """The last info line about the best line of play that has a score."""
        scored = (info for info in reversed(self.infos) if info.score_cp is not None or info.mate_moves is not None)
        return next((info for info in scored if info.multipv == 1), None)


class UciClient:
    """One engine process. `first_rank` is what the engine calls the lowest rank: 0 or 1."""

    def __init__(
        self,
        command: list[str],
        options: dict[str, str | int] | None = None,
        name: str | None = None,
        first_rank: int = 0,
        directory: str | None = None,
    ):
        self.name = name or command[0]
        self._command = command
        self._options = dict(options or {})
        self._first_rank = first_rank
        self._directory = directory
        self._process: subprocess.Popen | None = None
        self._lines: queue.SimpleQueue = queue.SimpleQueue()
        self._recent: deque[str] = deque(maxlen=REMEMBERED_LINES)
        self._complaints: deque[str] = deque(maxlen=REMEMBERED_LINES)
        self._readers: list[threading.Thread] = []
        self._last_command = ""

    def __enter__(self) -> "UciClient":
        self.start()
        return self

    def __exit__(self, *_exception) -> None:
        self.quit()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the process, shake hands, set the options and wait until it is ready."""
        self._launch()
        deadline_s = time.perf_counter() + timeout_s
        self._send("uci")
        self._read_until("uciok", deadline_s)
        for option, value in self._options.items():
            self._send(f"setoption name {option}" + ("" if value == "" else f" value {value}"))
        self.wait_until_ready(timeout_s)

    def new_game(self) -> None:
        self._send("ucinewgame")
        self.wait_until_ready()

    def wait_until_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        self._send("isready")
        self._read_until("readyok", time.perf_counter() + timeout_s)

    def search(self, position: str, moves: Iterable[str], go_text: str, timeout_s: float) -> SearchOutcome:
        """Search the position after `moves` from a FEN or `startpos`; `go_text` is what follows the word go."""
        root = START_POSITION if position == START_POSITION else f"fen {position}"
        played = " ".join(self._outgoing(move) for move in moves)
        self._send(f"position {root}" + (f" moves {played}" if played else ""))
        start_s = time.perf_counter()
        self._send(f"go {go_text}")
        infos = []
        while True:
            stamp_s, line = self._read(start_s + timeout_s)
            words = line.split()
            if words[:1] == ["bestmove"]:
                best_move, ponder_move = self._read_bestmove(words, line)
                return SearchOutcome(best_move, ponder_move, tuple(infos), 1000 * (stamp_s - start_s))
            if words[:1] == ["info"] and words[1:2] != ["string"]:
                infos.append(self._read_info(words, line))

    def quit(self) -> int | None:
        """Ask the process to end, and end it if it does not; returns its exit status."""
        if self._process is None:
            return None
        try:
            self._send("quit")
            self._process.wait(QUIT_TIMEOUT_S)
        except (EngineFailure, subprocess.TimeoutExpired):
            self._process.kill()
        return self._reap()

    def kill(self) -> None:
        """End the process without asking it."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def _launch(self) -> None:
        self._lines = queue.SimpleQueue()
        self._recent.clear()
        self._complaints.clear()
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self._directory,
                start_new_session=os.name == "posix",  # Ctrl-C is for us; we end the engine ourselves
            )
        except OSError as error:
            raise EngineCrash(f"{self.name} could not be started by {self._command}: {error}.") from error
        self._readers = [
            threading.Thread(target=body, args=(pipe, sink), name=f"{self.name} reader", daemon=True)
            for body, pipe, sink in (
                (_pass_on, self._process.stdout, self._lines),
                (_remember, self._process.stderr, self._complaints),
            )
        ]
        for reader in self._readers:
            reader.start()

    def _reap(self) -> int:
        process, self._process = self._process, None
        status = process.wait()
        with suppress(BrokenPipeError):  # by a command that the engine did not live to read
            process.stdin.close()
        return status

    def _send(self, command: str) -> None:
        if self._process is None:
            raise EngineCrash(f"{self.name} is not running, and was sent '{command}'.")
        self._last_command = command
        try:
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._crash() from error

    def _read(self, deadline_s: float) -> tuple[float, str]:
        """The next line and when it came."""
        try:
            stamp_s, line = self._lines.get(timeout=max(0.0, deadline_s - time.perf_counter()))
        except queue.Empty:
            raise EngineHang(
                f"{self.name} did not answer '{self._last_command}' in time. {self._last_words()}"
            ) from None
        if line is None:
            raise self._crash()
        self._recent.append(line)
        return stamp_s, line

    def _read_until(self, word: str, deadline_s: float) -> None:
        while self._read(deadline_s)[1].strip() != word:
            pass

    def _crash(self) -> EngineCrash:
        """The error for a process that has closed its end of a pipe."""
        try:
            status = None if self._process is None else self._process.wait(QUIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            status = None
        for reader in self._readers:
            reader.join(QUIT_TIMEOUT_S)
        ended = "closed its pipes" if status is None else f"ended with status {status}"
        return EngineCrash(f"{self.name} {ended} after '{self._last_command}'. {self._last_words()}")

    def _last_words(self) -> str:
        while not self._lines.empty():
            line = self._lines.get()[1]
            if line is not None:
                self._recent.append(line)
        words = " | ".join([*self._recent, *self._complaints])
        return f"Its last words: {words}" if words else "It had said nothing."

    def _read_bestmove(self, words: list[str], line: str) -> tuple[str | None, str | None]:
        if len(words) < 2:
            raise EngineNonsense(f"{self.name} answered '{self._last_command}' by '{line}', which names no move.")
        has_ponder = words[2:3] == ["ponder"] and words[3:4] not in ([], ["(none)"])
        try:
            best_move = None if words[1] in ("(none)", "0000") else self._incoming(words[1])
            return best_move, self._incoming(words[3]) if has_ponder else None
        except ValueError as error:
            raise EngineNonsense(f"{self.name} answered '{self._last_command}' by '{line}': {error}.") from error

    def _read_info(self, words: list[str], line: str) -> InfoLine:
        try:
            return parse_info(words, line, self._incoming)
        except (ValueError, IndexError) as error:
            raise EngineNonsense(
                f"{self.name} answered '{self._last_command}' by '{line}', which is no info line: {error}."
            ) from error

    def _outgoing(self, move: str) -> str:
        return count_ranks_from_one(move) if self._first_rank else move

    def _incoming(self, move: str) -> str:
        return count_ranks_from_zero(move) if self._first_rank else move


def _pass_on(pipe, lines: queue.SimpleQueue) -> None:
    """Body of the reader of standard output: (time, line) pairs, and a None for the end."""
    with pipe:
        for line in pipe:
            lines.put((time.perf_counter(), line.rstrip("\r\n")))
    lines.put((time.perf_counter(), None))


def _remember(pipe, complaints: deque) -> None:
    """Body of the reader of standard error."""
    with pipe:
        for line in pipe:
            complaints.append(line.rstrip("\r\n"))


def parse_info(words: list[str], line: str, translate=lambda move: move) -> InfoLine:
    """An info line from its words, `info` included; `translate` turns the engine's moves into ours."""
    fields: dict = {"text": line}
    at = 1
    while at < len(words):
        word = words[at]
        if word in ("depth", "seldepth", "multipv", "nodes"):
            fields[word] = int(words[at + 1])
        elif word == "time":
            fields["time_ms"] = int(words[at + 1])
        elif word == "score":
            fields["score_cp" if words[at + 1] == "cp" else "mate_moves"] = int(words[at + 2])
            at += 1
        elif word == "pv":
            fields["pv"] = tuple(map(translate, words[at + 1 :]))
            break
        else:
            at -= 1  # a word without a value, or a field that nobody asks for
        at += 2
    return InfoLine(**fields)


def count_ranks_from_one(move: str) -> str:
    """Our a0b9 as a1b10."""
    return "".join(f"{file}{rank + 1}" for file, rank in _squares(move))


def count_ranks_from_zero(move: str) -> str:
    """a1b10 as our a0b9."""
    return "".join(f"{file}{rank - 1}" for file, rank in _squares(move))


def _squares(move: str) -> list[tuple[str, int]]:
    """(file letter, rank) of both squares. The second starts at the only letter after the first."""
    second = next((at for at in range(1, len(move)) if move[at].isalpha()), len(move))
    squares = [(text[:1], text[1:]) for text in (move[:second], move[second:])]
    if not all(file.isalpha() and rank.isdigit() and str(int(rank)) == rank for file, rank in squares):
        raise ValueError(f"'{move}' is no move; expected two squares, each a letter and a number")
    return [(file, int(rank)) for file, rank in squares]
