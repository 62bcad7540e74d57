"""The command `jaxfish evaluate`: a file of positions in, a table of evaluations out."""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

from games.xiangqi.fen import PositionError
from nets import DEFAULT_NETWORK
from nnue_jax.backends import BACKENDS, BackendError
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import NetworkError
from uci import output
from uci.evaluation_journal import JournalError
from uci.evaluation_run import RunSettings, evaluate_file
from uci.position_files import STANDARD_INPUT, InputError, same_file
from uci.result_files import OutputError, writer_class
from uci.session import INTERRUPTED
from uci.startup import quick_loading

REFRESH_PERIOD_S = 0.2  # of the line that shows the progress
ERROR_MODES = ("stop", "row")


class UsageError(ValueError):
    """Arguments that make no sense; the message is a sentence."""


class _Parser(argparse.ArgumentParser):
    """Complains like the rest of the command."""

    def error(self, message: str):
        raise UsageError(f"{message[:1].upper()}{message[1:]}. {self.format_usage().strip()}")


def main(arguments: list[str]) -> int:
    """Carry out the command; returns the exit status."""
    try:
        options = _parse(arguments)
        settings = _settings(options)
        with quick_loading():
            evaluator = Evaluator.load(options.network, options.backend)
        progress = _Progress()
        try:
            summary = evaluate_file(settings, evaluator, _identity(options.network), progress.show, progress.info)
        finally:
            progress.end()
    except (UsageError, InputError, OutputError, JournalError, BackendError, NetworkError, PositionError) as error:
        output.error_line(str(error))
        return 1
    except BrokenPipeError:
        # Nobody reads any more; what is still in the buffer of standard output cannot be delivered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        output.error_line(f"Reading or writing failed: {error.strerror}.")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    if summary.refused:
        output.error_line(f"{summary.refused} of {summary.positions} positions were refused; see the column error.")
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="jaxfish evaluate",
        description="Evaluate every position of a file with the network. An interrupted run goes on where it was "
        "when the same command is given again.",
    )
    parser.add_argument("input", help="FEN or EPD lines, a .parquet file with a column fen, or - for standard input")
    parser.add_argument("--output", metavar="OUT", help=".csv, .jsonl or .parquet (default: CSV to standard output)")
    parser.add_argument("--backend", default="auto", help=f"one of {', '.join(BACKENDS)} (default %(default)s)")
    parser.add_argument("--network", default=DEFAULT_NETWORK, help="a .nnue file (default: the one of the engine)")
    parser.add_argument("--batch", metavar="N", help="positions evaluated at once (default: what suits the backend)")
    parser.add_argument(
        "--errors",
        default="stop",
        help="stop: end at a FEN that is refused (default); row: write it with the reason in a column error",
    )
    return parser.parse_args(arguments)


def _settings(options: argparse.Namespace) -> RunSettings:
    """Check what can be checked before anything is loaded."""
    if options.errors not in ERROR_MODES:
        raise UsageError(f"--errors is '{options.errors}'; expected {' or '.join(ERROR_MODES)}.")
    return RunSettings(
        source=options.input,
        output=None if options.output is None else _output_path(options),
        keep_refused=options.errors == "row",
        batch=None if options.batch is None else _batch(options.batch),
    )


def _batch(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"--batch is '{text}'; expected a number of positions, at least 1.")
    return int(text)


def _output_path(options: argparse.Namespace) -> Path:
    path = Path(options.output)
    writer_class(path)
    if not path.parent.is_dir():
        raise OutputError(f"The folder of the output, '{path.parent}', does not exist.")
    if path.is_dir():
        raise OutputError(f"The output '{path}' is a folder.")
    if options.input != STANDARD_INPUT and same_file(options.input, path):
        raise OutputError(f"The output '{path}' is the input; expected another file.")
    return path


def _identity(network: str | os.PathLike) -> bytes:
    with open(network, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


class _Progress:
    """One line on standard error that is written over and over, if that is a terminal; and lines that stay."""

    def __init__(self):
        self._is_shown = sys.stderr.isatty() and not sys.stdout.isatty()
        self._start = self._last = time.perf_counter()
        self._text = ""

    def show(self, positions: int, fraction: float | None) -> None:
        now = time.perf_counter()
        if not self._is_shown or now - self._last < REFRESH_PERIOD_S:
            return
        self._last = now
        share = "" if fraction is None else f"{100 * fraction:5.1f} %  "
        rate = positions / (now - self._start)
        self._write(f"{share}{positions:,} positions  {rate:,.0f}/s")

    def info(self, text: str) -> None:
        self.end()
        output.error_line(text)

    def end(self) -> None:
        """Leave the line as it is."""
        if self._text:
            sys.stderr.write("\n")
            self._text = ""

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(len(self._text)))
        sys.stderr.flush()
        self._text = text
