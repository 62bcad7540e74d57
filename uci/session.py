"""The conversation: a reader that is never busy, and an executor that carries out commands in order.

The reader answers what must be answered at once: `uci`, `stop`, `ponderhit`, `quit`, `isready` while work goes on, and
the option of the log, which is about the lines that the reader reads next. All else goes through a queue to the
executor, which waits for a running search before it carries out a command that would disturb it. A `stop` also ends
the searches that were asked for before it and have not begun, so none is lost, whatever waits in the queue.
"""

import os
import queue
import sys
import threading
from importlib.metadata import version

from uci import output
from uci.commands import BACKEND_FLAG, Commands, Request
from uci.dialects import translate
from uci.help import HELP_NAMES, LICENSE_LINES, LICENSE_NAMES, help_lines
from uci.options import OPTIONS, OptionError

NAME = f"jaxfish {version('jaxfish')}"
AUTHORS = "the jaxfish developers"
HANDSHAKES = {"uci": "uciok", "ucci": "ucciok"}
QUIT = "quit"
FAILURE = 1  # exit status
INTERRUPTED = 130  # exit status, as a shell reports a program ended by Ctrl-C


class Session:
    """One conversation with a GUI, a terminal or a script.

    network_file, backend: what to begin with; None for the network that comes with the engine, and for the default.
    """

    def __init__(self, network_file: str | None = None, backend: str | None = None):
        self._commands = Commands(network_file)
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._received = 0  # number of commands queued
        self._exit_status = 0
        if backend is not None:
            self._received += 1
            self._queue.put(Request(self._received, [BACKEND_FLAG, backend], f"{BACKEND_FLAG} {backend}"))

    def run(self, lines) -> int:
        """Carry out commands until `quit` or the end of the input; returns the exit status."""
        executor = threading.Thread(target=self._execute, name="executor", daemon=True)
        executor.start()
        try:
            has_quit = self._read(lines)
        except KeyboardInterrupt:
            self._exit_status = INTERRUPTED
            has_quit = True
        self._commands.stop(self._received)
        if not (has_quit and self._commands.loader.is_loading):  # compiling for a minute is no way to say goodbye
            self._queue.put(None)
            executor.join()
        return self._leave()

    def run_command(self, words: list[str]) -> int:
        """Carry out one command, and return when it and its search are done; unknown ones are a failure."""
        if not _says_nothing(words) and words[0] != QUIT:
            if not self._receive(translate(words), " ".join(words)):
                self._exit_status = FAILURE
        self._queue.put(None)
        try:
            self._execute()
        except KeyboardInterrupt:
            self._exit_status = INTERRUPTED
            self._commands.stop(self._received)
            self._end_search()
        return self._leave()

    def _read(self, lines) -> bool:
        """Receive commands until `quit` or the end of the input; whether it was `quit`."""
        for line in lines:
            output.note_input(line.rstrip("\r\n"))
            words = line.split()
            if _says_nothing(words):
                continue
            if words[0] == QUIT:
                return True
            self._receive(translate(words), line.strip())
        return False

    def _receive(self, words: list[str], line: str) -> bool:
        """The reader's part of a command; whether it is one."""
        name = words[0]
        if name in HANDSHAKES:
            self._shake_hands(HANDSHAKES[name])
        elif name == "stop":
            self._commands.stop(self._received)
        elif name == "ponderhit":
            self._commands.ponderhit(self._received)
        elif name == "isready":
            self._received += 1
            if not self._commands.readiness.ask(self._received):
                self._queue.put(Request(self._received, words, line))
        elif name == "setoption" and self._commands.is_for_log(words[1:]):
            self._set_log(words[1:])
        elif name in HELP_NAMES:
            output.write(*help_lines())
        elif name in LICENSE_NAMES:
            output.write(*LICENSE_LINES)
        elif self._commands.knows(name):
            self._received += 1
            self._queue.put(Request(self._received, words, line))
        else:
            output.info(f"Unknown command: '{line}'. Type help for more information.")
            return False
        return True

    def _set_log(self, words: list[str]) -> None:
        try:
            self._commands.set_option(words)
        except OptionError as error:
            output.info(str(error))

    def _shake_hands(self, end: str) -> None:
        options = [option.declaration() for option in OPTIONS if option.is_listed]
        output.write(f"id name {NAME}", f"id author {AUTHORS}", "", *options, end)

    def _execute(self) -> None:
        """Body of the executor."""
        while (request := self._queue.get()) is not None:
            try:
                self._commands.carry_out(request)
            except OptionError as error:
                output.info(str(error))
            except Exception as error:
                output.write(*_critical_error(request.line, error))
                if not self._commands.settings.survives_errors:
                    self._exit_status = FAILURE
                    self._commands.stop(self._received)
                    break
        self._end_search()
        if self._exit_status and threading.current_thread() is not threading.main_thread():
            sys.stdout.flush()
            os._exit(self._exit_status)  # the reader may be waiting for a line that never comes

    def _end_search(self) -> None:
        try:
            self._commands.wait_for_search()
        except Exception as error:
            output.write(*_critical_error("go", error))
            self._exit_status = FAILURE

    def _leave(self) -> int:
        status = self._exit_status or int(self._commands.has_failed)
        sys.stdout.flush()
        if self._commands.loader.is_loading:
            os._exit(status)  # the interpreter cannot be taken down while the compiler runs
        return status


def _says_nothing(words: list[str]) -> bool:
    """Whether a line is blank or a comment."""
    return not words or words[0].startswith("#")


def _critical_error(line: str, error: Exception) -> tuple[str, str]:
    """What is printed when a command cannot be carried out."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    reason = " ".join(f"{kind}{error}".splitlines())
    return f"info string CRITICAL ERROR: Command `{line}` failed. Reason: {reason}", ""
