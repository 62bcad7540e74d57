"""What runs over a file of positions have in common: their settings, output, journal, and what they tell."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from uci.journal import Journal
from uci.result_files import Column, ResultFile, ResultWriter, beside


@dataclass(frozen=True)
class FileSettings:
    """What is read, and where it goes.

    source       file name, or `-` for standard input
    output       None for standard output
    keep_refused whether a FEN that is refused becomes a row with the sentence why, instead of ending the run
    """

    source: str
    output: Path | None = None
    keep_refused: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    positions   that were written
    fraction    share of the input that they are, None if unknown
    found       those of the positions that no earlier run had found
    nodes       that were searched for them; None if nothing is searched
    """

    positions: int
    fraction: float | None
    found: int
    nodes: int | None = None


@dataclass(frozen=True)
class Summary:
    """How many positions were read, and how many of them refused."""

    positions: int
    refused: int


OnProgress = Callable[[Progress], None]
OnInfo = Callable[[str], None]


def say_nothing(told: Progress | str) -> None:
    """For callers whom neither progress nor sentences interest."""


@contextmanager
def open_results(settings: FileSettings, columns: Sequence[Column]) -> Iterator[ResultWriter]:
    """A writer whose file gets its name if all goes well."""
    result_file = ResultFile(settings.output, columns)
    try:
        yield result_file.writer
    except BaseException:
        result_file.discard()
        raise
    result_file.complete()


@contextmanager
def open_journal(settings: FileSettings, identity: bytes, on_info: OnInfo) -> Iterator[Journal | None]:
    """The journal beside the output, if that is a file; deleted when the run is over, or if there is nothing in it.

    identity: of all that decides what is found, in 32 bytes.
    """
    if settings.output is None:
        yield None
        return
    journal = Journal(beside(settings.output, ".journal"), identity)
    if journal.is_foreign:
        on_info(
            f"'{journal.path}' is about another network or was made with other settings; all positions are done anew."
        )
    elif len(journal):
        on_info(f"Going on from '{journal.path}', which holds {len(journal):,} positions.")
    try:
        yield journal
    except BaseException as error:
        if len(journal):
            journal.close()
            on_info(f"What has been found is kept in '{journal.path}'; the same command goes on from there.")
        else:
            journal.remove()
            if isinstance(error, KeyboardInterrupt):
                on_info("Nothing had been found yet.")
        raise
    journal.remove()
