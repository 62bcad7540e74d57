"""Evaluating a file of positions: blocks are read, evaluated by several threads, and written in order.

Only a few blocks are held at a time, so memory does not grow with the file. What is written depends on the input
and the network alone: not on the evaluator, the number of threads, the batches, or interruptions.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from games.processors import available_processors
from games.xiangqi.bulk_fen import BulkFens
from nnue_jax.evaluator import Evaluator, evaluations
from uci.evaluation_journal import Journal
from uci.position_files import BLOCK_BYTES, BLOCK_ROWS, Block, InputError, PositionFile, open_positions
from uci.result_files import NUMBER_COLUMNS, ResultFile, Results, ResultWriter, beside

DEFAULT_BATCH = 16_384  # large enough for any backend, small enough that a run soon notices that it is to end
SPARE_BLOCKS = 2  # that wait for a thread or for their turn to be written, besides those being evaluated

Progress = Callable[[int, float | None], None]


@dataclass(frozen=True)
class RunSettings:
    """What is evaluated, and how.

    source       file name, or `-` for standard input
    output       None for standard output
    keep_refused whether a FEN that is refused becomes a row with the sentence why, instead of ending the run
    batch        positions that the evaluator gets at once, None for the default
    threads      None for one for each processor that this process may use
    """

    source: str
    output: Path | None = None
    keep_refused: bool = False
    batch: int | None = None
    threads: int | None = None
    block_bytes: int = BLOCK_BYTES
    block_rows: int = BLOCK_ROWS


@dataclass(frozen=True)
class Summary:
    """How many positions were read, and how many of them refused."""

    positions: int
    refused: int


@dataclass(frozen=True)
class _Done:
    """A finished block. units: lines or rows in it. refusal: (its unit, the sentence) that ends the run."""

    positions: int
    refused: int
    units: int
    encoded: Any = None
    refusal: tuple[int, str] | None = None


class _Stopped(Exception):
    """The run is to end; what a thread does is no longer wanted."""


def evaluate_file(
    settings: RunSettings,
    evaluator: Evaluator,
    identity: bytes,
    on_progress: Progress = lambda positions, fraction: None,
    on_info: Callable[[str], None] = lambda text: None,
) -> Summary:
    """Evaluate all positions of a file.

    identity names the network, in 32 bytes. on_progress gets the number of positions written and the share of
    the input that was read, None if unknown; on_info sentences for the user.
    InputError, OutputError or JournalError; what was evaluated until then is kept in the journal for the next run.
    """
    with (
        open_positions(settings.source, settings.block_bytes, settings.block_rows) as positions,
        _open_results(settings) as writer,
        _open_journal(settings, identity, on_info) as journal,
    ):
        workshop = _Workshop(settings, evaluator, journal, writer)
        return _write_all(workshop, positions, writer, on_progress)


@contextmanager
def _open_results(settings: RunSettings) -> Iterator[ResultWriter]:
    """A writer whose file gets its name if all goes well."""
    result_file = ResultFile(settings.output, settings.keep_refused)
    try:
        yield result_file.writer
    except BaseException:
        result_file.discard()
        raise
    result_file.complete()


@contextmanager
def _open_journal(settings: RunSettings, identity: bytes, on_info) -> Iterator[Journal | None]:
    """The journal beside the output, if that is a file; deleted when the run is over, or if there is nothing in it."""
    if settings.output is None:
        yield None
        return
    journal = Journal(beside(settings.output, ".journal"), identity)
    if journal.is_foreign:
        on_info(f"'{journal.path}' is about another network; all positions are evaluated anew.")
    elif len(journal):
        on_info(f"Going on from '{journal.path}', which holds {len(journal)} blocks.")
    try:
        yield journal
    except BaseException:
        if len(journal):
            journal.close()
            on_info(f"What has been evaluated is kept in '{journal.path}'; the same command goes on from there.")
        else:
            journal.remove()
        raise
    journal.remove()


def _write_all(workshop: "_Workshop", positions: PositionFile, writer: ResultWriter, on_progress: Progress) -> Summary:
    total = refused = units = 0
    writer.begin()
    for block, done in workshop.process(positions.blocks):
        if done.refusal is not None:
            unit, sentence = done.refusal
            raise InputError(f"{block.unit.capitalize()} {units + unit + 1}: {sentence}")
        writer.write(done.encoded)
        total += done.positions
        refused += done.refused
        units += done.units
        on_progress(total, positions.fraction_read())
    writer.finish()
    return Summary(total, refused)


class _Workshop:
    """The threads that turn blocks into what the writer takes."""

    def __init__(self, settings: RunSettings, evaluator: Evaluator, journal: Journal | None, writer: ResultWriter):
        self._settings = settings
        self._evaluator = evaluator
        self._journal = journal
        self._writer = writer
        self._batch = settings.batch or max(DEFAULT_BATCH, evaluator.preferred_batch)
        self._stopped = threading.Event()

    def process(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, _Done]]:
        """Blocks, in order, with what was made of them; no more are taken than `SPARE_BLOCKS` allows."""
        threads = self._settings.threads or len(available_processors())
        waiting: deque[tuple[Block, Future[_Done]]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="block") as pool:
            try:
                for block in blocks:
                    waiting.append((block, pool.submit(self._process_block, block)))
                    if len(waiting) >= threads + SPARE_BLOCKS:
                        yield self._next_of(waiting)
                while waiting:
                    yield self._next_of(waiting)
            finally:
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _next_of(self, waiting: deque) -> tuple[Block, _Done]:
        block, future = waiting.popleft()
        return block, future.result()

    def _process_block(self, block: Block) -> _Done:
        fens = block.parse(stop=not self._settings.keep_refused)
        units = block.count_units()
        if fens.refusals and not self._settings.keep_refused:
            number, sentence = next(iter(fens.refusals.items()))
            return _Done(len(fens), 1, units, refusal=(block.unit_of(fens, number), sentence))
        encoded = self._writer.encode(self._evaluate(block, fens))
        return _Done(len(fens), len(fens.refusals), units, encoded)

    def _evaluate(self, block: Block, fens: BulkFens) -> Results:
        is_refused = np.zeros(len(fens), np.bool_)
        is_refused[list(fens.refusals)] = True
        packed = fens.packed[~is_refused] if fens.refusals else fens.packed
        found = evaluations(packed, *self._outputs(block, packed), self._evaluator.win_rate_model)
        numbers = {name: getattr(found, name) for name in NUMBER_COLUMNS}
        is_unknown = found.in_check
        if fens.refusals:
            numbers = {name: _spread(column, is_refused) for name, column in numbers.items()}
            is_unknown = _spread(is_unknown, is_refused) | is_refused
        return Results(*fens.compact(), numbers, is_refused, is_unknown, fens.refusals)

    def _outputs(self, block: Block, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(psqt, positional) from the journal, or from the evaluator and then noted in the journal."""
        if self._journal is None:
            return self._evaluate_packed(packed)
        checksum = block.checksum()
        found = self._journal.find(block.number, checksum, len(packed))
        if found is None:
            found = self._evaluate_packed(packed)
            self._journal.add(block.number, checksum, *found)
        return found

    def _evaluate_packed(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        psqt, positional = np.zeros(len(packed), np.int32), np.zeros(len(packed), np.int32)
        for start in range(0, len(packed), self._batch):
            if self._stopped.is_set():
                raise _Stopped
            part = slice(start, start + self._batch)
            psqt[part], positional[part] = self._evaluator.outputs(packed[part])
        return psqt, positional


def _spread(values: np.ndarray, is_refused: np.ndarray) -> np.ndarray:
    """The values in the places that are not refused, and zeros in the others."""
    spread = np.zeros(len(is_refused), values.dtype)
    spread[~is_refused] = values
    return spread
