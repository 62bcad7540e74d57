"""The command `jaxfish`: without arguments a UCI session, with arguments one command.

jaxfish [--network FILE] [--backend NAME] [COMMAND ...]
"""

import os
import sys
from importlib import import_module
from typing import NoReturn

from uci import output
from uci.commands import BACKEND_FLAG
from uci.help import FILE_COMMANDS
from uci.session import AUTHORS, NAME, Session
from uci.startup import quick_loading

# What may stand before the command, and what its value is.
FLAGS = {"--network": "the name of a network file", BACKEND_FLAG: "the name of a backend"}
USAGE_ERROR = 2  # exit status


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in FILE_COMMANDS:
        with quick_loading():
            command = import_module(f"uci.{arguments[0]}")  # loads what no other command needs
        _leave_at_once(command.main(arguments[1:]))
    values: dict[str, str] = {}
    while arguments and arguments[0] in FLAGS:
        flag, *arguments = arguments
        if not arguments:
            output.error_line(f"{flag} has no value; expected {FLAGS[flag]}.")
            return USAGE_ERROR
        values[flag], *arguments = arguments
    _make_streams_forgiving()
    output.write(f"{NAME} by {AUTHORS}")
    session = Session(values.get("--network"), values.get(BACKEND_FLAG))
    if arguments:
        _leave_at_once(session.run_command(" ".join(arguments).split()))
    _leave_at_once(session.run(sys.stdin))


def _make_streams_forgiving() -> None:
    """Bytes that are no text, and letters that the terminal cannot show, become escapes instead of errors."""
    sys.stdin.reconfigure(errors="backslashreplace")
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")


def _leave_at_once(status: int) -> NoReturn:
    """End the process without taking down Numba and Arrow piece by piece, which takes up to a second.

    Some hosts kill an engine that has not left a second after `quit`, and call that a failure.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = status or 1
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
