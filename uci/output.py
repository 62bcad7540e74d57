"""Standard output, one whole line at a time."""

import os
import sys
import threading

_lock = threading.Lock()


def write(*lines: str) -> None:
    """Print lines together, and flush them."""
    with _lock:
        try:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
        except BrokenPipeError:
            os._exit(1)  # nobody listens any more, and every thread would fail on its next line


def info(text: str) -> None:
    """Tell the user something that is not part of the protocol."""
    write(f"info string {text}")


def error_line(text: str) -> None:
    """Print to standard error, where bench reports."""
    with _lock:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
