"""The command `jaxfish`: without arguments a UCI session, with arguments one command.

jaxfish [--network FILE] [COMMAND ...]
"""

import os
import sys
from typing import NoReturn

from uci import output
from uci.session import AUTHORS, NAME, Session
from uci.startup import quick_loading

EVALUATE = "evaluate"
NETWORK = "--network"
USAGE_ERROR = 2  # exit status


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == [EVALUATE]:
        with quick_loading():
            from uci.evaluate import main as evaluate  # loads what no other command needs

        _leave_at_once(evaluate(arguments[1:]))
    network_file = None
    if arguments[:1] == [NETWORK]:
        if len(arguments) < 2:
            output.error_line(f"{NETWORK} has no value; expected the name of a network file.")
            return USAGE_ERROR
        network_file, arguments = arguments[1], arguments[2:]
    output.write(f"{NAME} by {AUTHORS}")
    session = Session(network_file)
    if arguments:
        return session.run_command(" ".join(arguments).split())
    return session.run(sys.stdin)


def _leave_at_once(status: int) -> NoReturn:
    """End the process without taking down Numba and Arrow piece by piece, which takes a quarter of a second."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = status or 1
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
