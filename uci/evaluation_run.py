"""Evaluating a file of positions: blocks are read, evaluated by several threads, and written in order.

Only a few blocks are held at a time, so memory does not grow with the file. What is written depends on the input
and the network alone: not on the evaluator, the number of threads, the batches, or interruptions.
"""

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from games.processors import available_processors
from games.xiangqi.bulk_fen import BulkFens
from nnue_jax.evaluator import Evaluator, evaluations
from uci.file_run import (
    FileSettings,
    OnInfo,
    OnProgress,
    Progress,
    Summary,
    open_journal,
    open_results,
    say_nothing,
)
from uci.journal import Journal
from uci.position_files import BLOCK_BYTES, BLOCK_ROWS, Block, InputError, PositionFile, open_positions
from uci.result_files import ERROR, FEN, Cells, Column, ResultWriter, Texts

DEFAULT_BATCH = 16_384  # large enough for any backend, small enough that a run soon notices that it is to end
SPARE_BLOCKS = 2  # that wait for a thread or for their turn to be written, besides those being evaluated

OUTPUTS = ("psqt", "positional")
OUTCOMES = ("value", "cp", "win", "draw", "loss")  # nothing for a side to move that is in check
COLUMNS = (FEN, *map(Column, OUTPUTS + OUTCOMES))

_VALUE = np.dtype("<i4")  # of the journal: all psqt outputs of a block, then all positional ones


@dataclass(frozen=True)
class RunSettings(FileSettings):
    """What is evaluated, and how.

    batch        positions that the evaluator gets at once, None for the default
    threads      None for one for each processor that this process may use
    """

    batch: int | None = None
    threads: int | None = None
    block_bytes: int = BLOCK_BYTES
    block_rows: int = BLOCK_ROWS


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
    on_progress: OnProgress = say_nothing,
    on_info: OnInfo = say_nothing,
) -> Summary:
    """Evaluate all positions of a file.

    identity names the network, in 32 bytes. on_info gets sentences for the user.
    InputError, OutputError or JournalError; what was evaluated until then is kept in the journal for the next run.
    """
    columns = (*COLUMNS, ERROR) if settings.keep_refused else COLUMNS
    with (
        open_positions(settings.source, settings.block_bytes, settings.block_rows) as positions,
        open_results(settings, columns) as writer,
        open_journal(settings, identity, on_info) as journal,
    ):
        workshop = _Workshop(settings, evaluator, journal, writer)
        return _write_all(workshop, positions, writer, on_progress)


def _write_all(
    workshop: "_Workshop", positions: PositionFile, writer: ResultWriter, on_progress: OnProgress
) -> Summary:
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
        on_progress(Progress(total, positions.fraction_read(), total))
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

    def _evaluate(self, block: Block, fens: BulkFens) -> list[Cells]:
        is_refused = np.zeros(len(fens), np.bool_)
        is_refused[list(fens.refusals)] = True
        packed = fens.packed[~is_refused] if fens.refusals else fens.packed
        found = evaluations(packed, *self._outputs(block, packed), self._evaluator.win_rate_model)
        is_unknown = _spread(found.in_check, is_refused) | is_refused
        table = [Cells(Texts(*fens.compact()))]
        for names, is_missing in ((OUTPUTS, is_refused), (OUTCOMES, is_unknown)):
            table += [Cells(_spread(getattr(found, name), is_refused), is_missing) for name in names]
        if self._settings.keep_refused:
            table.append(Cells.of(ERROR, [fens.refusals.get(number) for number in range(len(fens))]))
        return table

    def _outputs(self, block: Block, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(psqt, positional) from the journal, or from the evaluator and then noted in the journal."""
        if self._journal is None:
            return self._evaluate_packed(packed)
        checksum = block.checksum()
        noted = b"".join(data for _, data in self._journal.find(block.number, checksum))
        if len(noted) == 2 * _VALUE.itemsize * len(packed):
            psqt, positional = np.frombuffer(noted, _VALUE).reshape(2, -1).astype(np.int32)
            return psqt, positional
        found = self._evaluate_packed(packed)
        self._journal.add(block.number, checksum, 0, len(packed), np.stack(found).astype(_VALUE).tobytes())
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
    if len(values) == len(is_refused):
        return values
    spread = np.zeros(len(is_refused), values.dtype)
    spread[~is_refused] = values
    return spread
