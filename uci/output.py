"""Standard output, one whole line at a time, and the log of all that comes in and goes out."""

import os
import sys
import threading

IN_MARK, OUT_MARK = ">> ", "<< "

# What would end a line, ring a bell or move a cursor for somebody is shown as an escape. The tab is left.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(9), *range(10, 32), *range(127, 160))}
_ESCAPES |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029)}

_lock = threading.Lock()
_log = None  # open text file, or None


class LogError(ValueError):
    """A log that cannot be written; the message is a sentence."""


def set_log(path: str) -> None:
    """Append to this file from now on, or to none if `path` is empty; LogError if it cannot be written."""
    global _log
    log = None
    if path:
        try:
            log = open(path, "a", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
        except (OSError, ValueError) as error:
            raise LogError(f"The log file '{path}' cannot be written: {error}.") from error
    with _lock:
        if _log is not None:
            _log.close()
        _log = log


def note_input(line: str) -> None:
    """Log a line that came in."""
    with _lock:
        _note(IN_MARK, line)


def write(*lines: str) -> None:
    """Print lines together, and flush them; what of them is no text, such as control characters, as escapes."""
    lines = tuple(line.translate(_ESCAPES) for line in lines)
    with _lock:
        for line in lines:
            _note(OUT_MARK, line)
        try:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
        except BrokenPipeError:
            os._exit(1)  # nobody listens any more, and every thread would fail on its next line


def _note(mark: str, line: str) -> None:
    """A log that cannot be written any more is given up, with a complaint, rather than the game."""
    global _log
    if _log is None:
        return
    try:
        _log.write(f"{mark}{line}\n")
    except OSError as error:
        _log = None
        sys.stderr.write(f"The log file cannot be written any more: {error}.\n")


def info(text: str) -> None:
    """Tell the user something that is not part of the protocol; line breaks become blanks."""
    write(f"info string {' '.join(text.splitlines())}")


def error_line(text: str) -> None:
    """Print to standard error, where bench reports."""
    with _lock:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
