"""The command `jaxfish`: without arguments a UCI session, with arguments one command.

jaxfish [--network FILE] [COMMAND ...]
"""

import sys

from uci import output
from uci.session import AUTHORS, NAME, Session

EVALUATE = "evaluate"
NETWORK = "--network"
USAGE_ERROR = 2  # exit status


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == [EVALUATE]:
        from uci.evaluate import main as evaluate  # loads what no other command needs

        return evaluate(arguments[1:])
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


if __name__ == "__main__":
    sys.exit(main())
