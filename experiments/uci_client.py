"""A client for UCI engines: a process, pipes, and a deadline for every answer."""

import queue
import shlex
import subprocess
import threading
import time
from dataclasses import dataclass, field

START_TIMEOUT_S = 120  # a first start may compile
QUIT_TIMEOUT_S = 10


class EngineFailure(RuntimeError):
    """An engine that crashed or does not answer; the message names it and the last command."""


@dataclass(frozen=True)
class EngineSpec:
    """How to start an engine. first_rank: how it numbers the lowest rank in moves, 0 or 1."""

    name: str
    command: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    first_rank: int = 0


def parse_engine(text: str) -> EngineSpec:
    """An engine from `name=N,cmd=C,ranks=0|1,option.X=V,...`; the command may have arguments."""
    fields = dict(part.split("=", 1) for part in text.split(","))
    options = {key.removeprefix("option."): value for key, value in fields.items() if key.startswith("option.")}
    command = tuple(shlex.split(fields["cmd"]))
    return EngineSpec(fields.get("name", command[0]), command, options, int(fields.get("ranks", "0")))


@dataclass(frozen=True)
class Outcome:
    """What a search gave: moves in coordinates a0 ... i9; elapsed_ms from sending `go` to receiving `bestmove`."""

    best_move: str | None
    lines: tuple[tuple[str, ...], ...]
    score: tuple[str, int] | None  # ("cp", n) or ("mate", n), of the last line that has one
    nodes: int
    elapsed_ms: float


class UciClient:
    """One engine process."""

    def __init__(self, spec: EngineSpec):
        self.spec = spec
        self._last_command = ""
        self._process = subprocess.Popen(
            spec.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        self._lines: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._send("uci")
        self._expect("uciok", START_TIMEOUT_S)
        for name, value in spec.options.items():
            self._send(f"setoption name {name} value {value}")
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        self._send("isready")
        self._expect("readyok", START_TIMEOUT_S)

    def new_game(self) -> None:
        self._send("ucinewgame")
        self.wait_until_ready()

    def search(self, fen: str, moves: list[str], limits: str, timeout_s: float) -> Outcome:
        """Search the position after `moves` within UCI limits, such as `movetime 100`."""
        played = " moves " + " ".join(map(self._to_engine, moves)) if moves else ""
        self._send(f"position fen {fen}{played}")
        start = time.perf_counter()
        self._send(f"go {limits}")
        lines = self._expect("bestmove", timeout_s)
        elapsed_ms = 1000 * (time.perf_counter() - start)
        return self._outcome(lines, elapsed_ms)

    def quit(self) -> None:
        try:
            self._send("quit")
            self._process.wait(QUIT_TIMEOUT_S)
        except (EngineFailure, subprocess.TimeoutExpired):
            self._process.kill()

    def _outcome(self, lines: list[str], elapsed_ms: float) -> Outcome:
        pvs, score, nodes = [], None, 0
        for words in (line.split() for line in lines[:-1] if line.startswith("info") and " score " in line):
            at = words.index("score")
            score = (words[at + 1], int(words[at + 2]))
            if "nodes" in words:
                nodes = int(words[words.index("nodes") + 1])
            if "pv" in words:
                pvs.append(tuple(map(self._from_engine, words[words.index("pv") + 1 :])))
        move = lines[-1].split()[1]
        best_move = None if move in ("(none)", "0000") else self._from_engine(move)
        return Outcome(best_move, tuple(pvs), score, nodes, elapsed_ms)

    def _to_engine(self, move: str) -> str:
        return shift_ranks(move, self.spec.first_rank)

    def _from_engine(self, move: str) -> str:
        return shift_ranks(move, -self.spec.first_rank)

    def _send(self, command: str) -> None:
        self._last_command = command
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EngineFailure(f"{self.spec.name} has ended; it could not be told '{command}'.") from error

    def _expect(self, word: str, timeout_s: float) -> list[str]:
        """Lines up to the first that starts with `word`."""
        deadline = time.monotonic() + timeout_s
        lines = []
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self._process.kill()
                raise EngineFailure(f"{self.spec.name} gave no {word} to '{self._last_command}'.") from None
            if line is None:
                raise EngineFailure(f"{self.spec.name} ended after '{self._last_command}': {lines[-1:]}")
            lines.append(line)
            if line.split()[:1] == [word]:
                return lines

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line.rstrip())
        self._lines.put(None)


def shift_ranks(move: str, by: int) -> str:
    """`h2e2` with both ranks shifted; ranks may have two digits."""
    if by == 0:
        return move
    split = next(i for i in range(1, len(move)) if move[i].isalpha())
    squares = (move[:split], move[split:])
    return "".join(f"{square[0]}{int(square[1:]) + by}" for square in squares)
