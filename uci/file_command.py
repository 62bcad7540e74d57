"""What the commands that make a table of a file of positions have in common: flags, errors, the line of progress."""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from games.xiangqi.fen import PositionError
from nets import DEFAULT_NETWORK
from nnue_jax.backends import BackendError
from nnue_jax.network_file import NetworkError
from uci import output
from uci.file_run import Progress, Summary
from uci.journal import JournalError
from uci.position_files import STANDARD_INPUT, InputError, same_file
from uci.result_files import OutputError, writer_class
from uci.session import INTERRUPTED

REFRESH_PERIOD_S = 0.2  # of the line that shows the progress
ERROR_MODES = ("stop", "row")
MAX_NUMBER = 10**12  # of anything: 32 years of milliseconds

INPUT_HELP = "FEN or EPD lines, a .parquet file with a column fen, or - for standard input"


class UsageError(ValueError):
    """Arguments that make no sense; the message is a sentence."""


@dataclass(frozen=True)
class Flag:
    """name: such as `--output`; value: what follows it in usage lines, empty for a flag that takes none.

    default: the value without the flag. default_meaning: in words, where the value does not say it.
    """

    name: str
    value: str
    meaning: str
    default: str | None = None
    default_meaning: str = ""

    @property
    def usage(self) -> str:
        return f"{self.name} {self.value}".rstrip()

    @property
    def default_text(self) -> str:
        return self.default_meaning or ("" if self.default is None else f"`{self.default}`")

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        default = f" (default: {self.default_text})" if self.default_text else ""
        text = f"{self.meaning}{default}".replace("`", "").replace("%", "%%")
        if self.value:
            parser.add_argument(self.name, metavar=self.value, default=self.default, help=text)
        else:
            parser.add_argument(self.name, action="store_true", help=text)


OUTPUT = Flag(
    "--output",
    "OUT",
    "the file to write, .csv, .jsonl or .parquet; it appears under its name only when it is complete",
    default_meaning="CSV to standard output",
)
NETWORK = Flag("--network", "N", "a `.nnue` file", os.fspath(DEFAULT_NETWORK), "the engine's")
ERRORS = Flag(
    "--errors",
    "stop|row",
    "at a FEN that is refused: end with its line number and the reason, or write a row with the reason in a further "
    "column `error`",
    "stop",
)


def flag_table(flags: Sequence[Flag]) -> list[str]:
    """The flags as a Markdown table."""
    rows = [f"| `{flag.usage.replace('|', chr(92) + '|')}` | {flag.default_text} | {flag.meaning} |" for flag in flags]
    return ["| option | default | meaning |", "|---|---|---|", *rows]


class _Parser(argparse.ArgumentParser):
    """Complains like the rest of the command."""

    def error(self, message: str):
        raise UsageError(f"{message[:1].upper()}{message[1:]}. {' '.join(self.format_usage().split())}")


def parse(command: str, description: str, flags: Sequence[Flag], arguments: list[str]) -> argparse.Namespace:
    """`input`, and the flags' values as text; UsageError if that is not what the arguments say."""
    parser = _Parser(
        prog=f"jaxfish {command}",
        description=f"{description} When the same command with {OUTPUT.name} is given again after an interruption, it "
        "goes on where it was.",
    )
    parser.add_argument("input", help=INPUT_HELP)
    for flag in flags:
        flag.add_to(parser)
    options = parser.parse_args(arguments)
    if options.errors not in ERROR_MODES:
        raise UsageError(f"{ERRORS.name} is '{options.errors}'; expected {' or '.join(ERROR_MODES)}.")
    return options


def whole_number(name: str, text: str | None, meaning: str, most: int = MAX_NUMBER) -> int | None:
    """The number from 1 to `most` that the value of a flag spells, None if there is none; UsageError if it is none."""
    if text is None:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not (is_number and 1 <= int(text) <= most):
        bound = "at least 1" if most == MAX_NUMBER else f"1 to {most}"
        raise UsageError(f"{name} is '{text}'; expected {meaning}, {bound}.")
    return int(text)


def output_path(options: argparse.Namespace) -> Path | None:
    """The file to write, None for standard output; OutputError if it cannot be one."""
    if options.output is None:
        return None
    path = Path(options.output)
    writer_class(path)
    if not path.parent.is_dir():
        raise OutputError(f"The folder of the output, '{path.parent}', does not exist.")
    if path.is_dir():
        raise OutputError(f"The output '{path}' is a folder.")
    if options.input != STANDARD_INPUT and same_file(options.input, path):
        raise OutputError(f"The output '{path}' is the input; expected another file.")
    return path


def run_identity(network: str | os.PathLike, *facts: str) -> bytes:
    """32 bytes that name the contents of a network file and all else that decides what a run finds."""
    with open(network, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update("\0".join(facts).encode())
    return digest.digest()


def carry_out(run: Callable[[], Summary], errors: tuple[type[Exception], ...] = ()) -> int:
    """Run a command and say what went wrong; returns the exit status. errors: those that are sentences, too."""
    try:
        summary = run()
    except (UsageError, InputError, OutputError, JournalError, BackendError, NetworkError, PositionError, *errors) as e:
        output.error_line(str(e))
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


class ProgressLine:
    """One line on standard error that is written over and over, if that is a terminal; and lines that stay.

    It is not shown where it would come between the results.
    """

    def __init__(self, output_file: Path | None):
        self._is_shown = sys.stderr.isatty() and (output_file is not None or not sys.stdout.isatty())
        self._start = self._last = time.perf_counter()
        self._text = ""

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def show(self, progress: Progress) -> None:
        now = time.perf_counter()
        if not self._is_shown or now - self._last < REFRESH_PERIOD_S:
            return
        self._last = now
        elapsed_s = now - self._start
        share = "" if progress.fraction is None else f"{100 * progress.fraction:5.1f} %  "
        text = f"{share}{progress.positions:,} positions  {progress.found / elapsed_s:,.0f}/s"
        if progress.nodes is not None:
            text += f"  {progress.nodes / elapsed_s:,.0f} nodes/s"
        self._write(text)

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
