"""The command `jaxfish`: without arguments a UCI session, with arguments one command."""

import sys

from uci import output
from uci.session import AUTHORS, NAME, Session


def main() -> int:
    output.write(f"{NAME} by {AUTHORS}")
    session = Session()
    arguments = sys.argv[1:]
    if arguments:
        return session.run_command(" ".join(arguments).split())
    return session.run(sys.stdin)


if __name__ == "__main__":
    sys.exit(main())
