"""The command `jaxfish`: without arguments a UCI session, with arguments one command."""

import sys

from uci import output
from uci.session import AUTHORS, NAME, Session

EVALUATE = "evaluate"


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == [EVALUATE]:
        from uci.evaluate import main as evaluate  # loads what no other command needs

        return evaluate(arguments[1:])
    output.write(f"{NAME} by {AUTHORS}")
    session = Session()
    if arguments:
        return session.run_command(" ".join(arguments).split())
    return session.run(sys.stdin)


if __name__ == "__main__":
    sys.exit(main())
