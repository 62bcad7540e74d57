"""The protocol: a reader that is never busy, and an executor that carries out commands in order.

The reader answers what must be answered at once: `uci`, `stop`, `quit`, and `isready` during a search. All
else goes through a queue to the executor, which waits for a running search before it carries out a command
that would disturb it. A `stop` also ends the searches that were asked for before it and have not begun.
"""

import os
import queue
import sys
import threading
from importlib.metadata import version

from uci import output
from uci.loading import EngineLoader
from uci.options import OPTIONS, OptionError, find_option
from uci.parsing import CommandError, GoCommand, parse_go, parse_position, parse_setoption

NAME = f"jaxfish {version('jaxfish')}"
AUTHORS = "the jaxfish developers"
QUIT = "quit"
EXPORTED_NETWORK = "jaxfish.nnue"  # in the working directory, where no other name is given
INTERRUPTED = 130  # exit status, as a shell reports a program ended by Ctrl-C

HELP = (
    "jaxfish is a UCI engine for xiangqi. It understands the commands uci, isready, setoption, ucinewgame, position, "
    "go, stop, d, bench, export_net and quit, from a GUI, a terminal, or as arguments of the command line."
)


class Session:
    """One conversation with a GUI, a terminal or a script.

    network_file: the network to begin with; None for the one that comes with the engine.
    """

    def __init__(self, network_file: str | None = None):
        self._loader = EngineLoader(network_file)
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._received = 0  # number of commands queued
        self._stopped_up_to = 0  # searches asked for by commands up to this number are to stop
        self._search = None
        self._exit_status = 0
        self._handlers = {
            "isready": self._isready,
            "setoption": self._setoption,
            "ucinewgame": self._ucinewgame,
            "position": self._position,
            "go": self._go,
            "d": self._display,
            "bench": self._bench,
            "export_net": self._export_net,
        }

    def run(self, lines) -> int:
        """Carry out commands until `quit` or the end of the input; returns the exit status."""
        executor = threading.Thread(target=self._execute, name="executor", daemon=True)
        executor.start()
        try:
            self._read(lines)
        except KeyboardInterrupt:
            self._exit_status = INTERRUPTED
        self._stop()
        self._queue.put(None)
        executor.join()
        return self._leave()

    def _read(self, lines) -> None:
        for line in lines:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == QUIT:
                break
            self._receive(words, line.strip())

    def run_command(self, words: list[str]) -> int:
        """Carry out one command, and return when it and its search are done."""
        if words[0] in ("help", "--help", "-h"):
            output.write(HELP)
        elif words[0] == "uci":
            self._uci()
        else:
            self._queue.put((1, words, " ".join(words)))
            self._queue.put(None)
            try:
                self._execute()
            except KeyboardInterrupt:
                self._exit_status = INTERRUPTED
        return self._leave()

    def _leave(self) -> int:
        sys.stdout.flush()
        if self._loader.is_loading:
            os._exit(self._exit_status)  # the interpreter cannot be taken down while the compiler runs
        return self._exit_status

    def _receive(self, words: list[str], line: str) -> None:
        """The reader's part of a command."""
        name = words[0]
        if name == "uci":
            self._uci()
        elif name == "stop":
            self._stop()
        elif name == "isready" and self._is_searching():
            output.write("readyok")
        elif name == "help":
            output.write(HELP)
        elif name in self._handlers:
            self._received += 1
            self._queue.put((self._received, words, line))
        else:
            output.write(f"Unknown command: '{line}'. Type help for more information.")

    def _uci(self) -> None:
        output.write(
            f"id name {NAME}",
            f"id author {AUTHORS}",
            "",
            *(option.declaration() for option in OPTIONS),
            "uciok",
        )

    def _is_searching(self) -> bool:
        search = self._search
        return search is not None and not search.done

    def _stop(self) -> None:
        """Stop what runs, and what was asked for before and has not begun."""
        self._stopped_up_to = self._received
        if not self._loader.is_loading:
            self._engine().stop()

    def _is_stopped(self, number: int) -> bool:
        return number <= self._stopped_up_to

    def _execute(self) -> None:
        """Body of the executor."""
        while (item := self._queue.get()) is not None:
            number, words, line = item
            try:
                handler = self._handlers.get(words[0])
                if handler is None:
                    raise CommandError(f"Unknown command: '{line}'. Type help for more information.")
                handler(number, words[1:])
            except OptionError as error:
                output.info(str(error))
            except Exception as error:
                kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
                output.info(f"CRITICAL ERROR: Command `{line}` failed. Reason: {kind}{error}")
                self._exit_status = 1
                break
        self._wait_for_search()
        if self._exit_status and threading.current_thread() is not threading.main_thread():
            os._exit(self._exit_status)  # the reader may be waiting for a line that never comes

    def _engine(self):
        return self._loader.wait()

    def _wait_for_search(self) -> None:
        if self._search is not None:
            self._search.wait()

    def _isready(self, _number: int, _words: list[str]) -> None:
        self._loader.wait(lambda seconds: output.info(f"Getting ready, {seconds:.0f} s so far"))
        output.write("readyok")

    def _ucinewgame(self, _number: int, _words: list[str]) -> None:
        self._wait_for_search()
        self._engine().new_game()

    def _position(self, _number: int, words: list[str]) -> None:
        command = parse_position(words)
        engine = self._engine()
        from games.xiangqi.fen import START_FEN
        from games.xiangqi.game import Game

        engine.set_position(Game(START_FEN if command.fen is None else command.fen, command.moves))

    def _setoption(self, _number: int, words: list[str]) -> None:
        name, text = parse_setoption(words)
        option = find_option(name)
        value = option.parse(text)
        self._wait_for_search()
        engine = self._engine()
        if option.name == "Threads":
            engine.set_threads(value)
            output.info(f"Using {value} thread{'s' if value > 1 else ''}")
        elif option.name == "Move Overhead":
            engine.move_overhead_ms = value
        elif option.name == "Clear Hash":
            engine.new_game()
        else:
            self._set_resource(engine, option.name, value)

    def _set_resource(self, engine, name: str, value) -> None:
        """Hash or EvalFile: what cannot be had leaves the old one in place."""
        from nets import DEFAULT_NETWORK
        from nnue_jax.network_file import NetworkError, read_network
        from search.transposition import HashTableError

        try:
            if name == "Hash":
                engine.set_hash(value)
            else:
                engine.set_network(read_network(value or DEFAULT_NETWORK))
                output.info(f"NNUE evaluation using {value or DEFAULT_NETWORK.name} {engine.network.architecture}")
        except (HashTableError, NetworkError) as error:
            raise OptionError(str(error)) from error

    def _go(self, number: int, words: list[str]) -> None:
        command = parse_go(words)
        self._wait_for_search()
        engine = self._engine()
        if "perft" in command.numbers:
            self._perft(engine, command.numbers["perft"], number)
            return
        from uci import text

        limits = _limits(command)
        self._search = engine.go(
            limits,
            on_report=lambda report: output.write(text.report_line(report)),
            on_result=lambda result: output.write(text.result_line(result)),
        )
        if self._is_stopped(number):
            self._search.stop()

    def _perft(self, engine, depth: int, number: int) -> None:
        from games.xiangqi.divide import divide

        total = 0
        for move, count in divide(engine.game.position, max(1, depth)):
            output.write(f"{move}: {count}")
            total += count
            if self._is_stopped(number):
                return
        output.write("", f"Nodes searched: {total}", "")

    def _display(self, _number: int, _words: list[str]) -> None:
        engine = self._engine()
        from uci import text

        output.write(*text.board_lines(engine.game))

    def _bench(self, number: int, words: list[str]) -> None:
        self._wait_for_search()
        engine = self._engine()
        from uci.bench import run_bench

        run_bench(engine, words, lambda: self._is_stopped(number))

    def _export_net(self, _number: int, words: list[str]) -> None:
        """Write the network in use; where that fails the engine goes on, and its exit status tells."""
        engine = self._engine()
        from nnue_jax.network_file import QUICK_LEVEL, NetworkError, write_network

        path = " ".join(words) or EXPORTED_NETWORK
        try:
            write_network(engine.network, path, QUICK_LEVEL)
        except NetworkError as error:
            self._exit_status = 1
            output.info(f"Failed to export a net. {error}")
        else:
            output.write(f"Network saved successfully to {path}")


def _limits(command: GoCommand):
    """Limits of a `go`; a side without a clock has none, and time left may be negative."""
    from search.limits import Limits

    clocks = (command.get("wtime"), command.get("btime"))
    return Limits(
        depth=command.get("depth"),
        nodes=command.get("nodes"),
        movetime_ms=command.get("movetime"),
        time_ms=clocks if any(clock is not None for clock in clocks) else None,
        increment_ms=(command.get("winc") or 0, command.get("binc") or 0),
        movestogo=command.get("movestogo"),
        infinite=command.infinite,
        root_moves=command.search_moves,
    )
