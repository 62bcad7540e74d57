"""Analysing a file of positions: many are searched at once, and what is found about them is written in order.

The input is read in blocks, but searched without a pause between them. What is found goes into the journal and the
output every second, or when a block is complete; blocks that the journal knows are not searched again. Memory does not
grow with the file.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from games.xiangqi.bulk_fen import BulkFens
from search.engine import Engine
from search.limits import Limits
from search.root_blocks import Outcome, RootBlock, packed_block
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
from uci.findings import Findings, columns
from uci.journal import Journal
from uci.position_files import Block, InputError, PositionFile, open_positions
from uci.read_ahead import ReadAhead
from uci.result_files import Cells, ResultWriter, Texts

BLOCK_BYTES = 1 << 14  # some 250 positions; a longer line is refused
BLOCK_ROWS = 256
PART_PERIOD_S = 1.0
PATIENCE_S = 0.05  # with which searchers wait for input; if there is none then, what was found comes first


@dataclass(frozen=True)
class AnalysisSettings(FileSettings):
    """What is searched, and how.

    limits       of each position: depth, nodes and movetime_ms
    multi_pv     number of best lines
    isolated     whether each position has tables of its own
    searchers    positions that are searched at once with a batched evaluator; 0 for what suits the device
    """

    limits: Limits = field(default_factory=Limits)
    multi_pv: int = 1
    isolated: bool = False
    searchers: int = 0
    block_bytes: int = BLOCK_BYTES
    block_rows: int = BLOCK_ROWS


@dataclass(frozen=True)
class _Task:
    """A block, read.

    fraction   share of the input that ends with it, None if unknown
    noted      what the journal knows, if anything
    refusal    (line or row in the block, sentence) that ends the run
    """

    number: int
    checksum: int
    unit: str
    units: int
    fraction: float | None
    fens: BulkFens
    noted: Findings | None
    refusal: tuple[int, str] | None = None

    @cached_property
    def sound(self) -> np.ndarray:
        """Numbers of the FENs that were not refused."""
        is_sound = np.ones(len(self.fens), np.bool_)
        is_sound[list(self.fens.refusals)] = False
        return np.flatnonzero(is_sound)

    @cached_property
    def texts(self) -> list[str]:
        return Texts(*self.fens.compact()).strings()

    @property
    def known(self) -> int:
        return 0 if self.noted is None else len(self.noted)

    @property
    def is_known(self) -> bool:
        """Whether there is nothing to search."""
        return self.refusal is not None or self.known == len(self.sound)

    def roots(self) -> RootBlock:
        return packed_block(self.fens.packed[self.sound[self.known :]])


@dataclass(frozen=True)
class _Part:
    """What was found about the sound positions of a task, from number `first` of them on; None if that is nothing.

    is_new: whether it was found by this run.
    """

    task: _Task
    first: int
    findings: Findings | None
    is_new: bool

    @property
    def end(self) -> int:
        return self.first + (0 if self.findings is None else len(self.findings))

    @property
    def is_last(self) -> bool:
        return self.end == len(self.task.sound)

    def numbers(self) -> range:
        """Of the FENs that belong to it: the sound ones, and the refused ones up to the next part."""
        sound = self.task.sound
        begin = 0 if self.first == 0 else int(sound[self.first - 1]) + 1
        return range(begin, len(self.task.fens) if self.is_last else int(sound[self.end - 1]) + 1)


def analyse_file(
    settings: AnalysisSettings,
    engine: Engine,
    identity: bytes,
    on_progress: OnProgress = say_nothing,
    on_info: OnInfo = say_nothing,
) -> Summary:
    """Search all positions of a file.

    identity names all that decides what is found, in 32 bytes. on_info gets sentences for the user.
    InputError, OutputError, JournalError or EvaluationFailure; what was found until then is kept in the journal for the
    next run.
    """
    with (
        open_positions(settings.source, settings.block_bytes, settings.block_rows) as positions,
        open_results(settings, columns(settings.multi_pv, settings.keep_refused)) as writer,
        open_journal(settings, identity, on_info) as journal,
        closing(_FileSearch(settings, engine, journal).parts(positions)) as parts,
    ):
        report = _Report(settings, engine, writer, on_progress)
        writer.begin()
        for part in parts:
            report.add(part)
        writer.finish()
        return report.summary()


class _FileSearch:
    """From an input to the parts of its tasks, in order."""

    def __init__(self, settings: AnalysisSettings, engine: Engine, journal: Journal | None):
        self._settings = settings
        self._engine = engine
        self._journal = journal

    def parts(self, positions: PositionFile) -> Iterator[_Part]:
        with ReadAhead(self._tasks(positions)) as tasks:
            while (task := tasks.take()) is not None:
                if task.is_known:
                    yield _known_part(task)
                else:
                    yield from self._searched(task, tasks)

    def _tasks(self, positions: PositionFile) -> Iterator[_Task]:
        for block in positions.blocks:
            yield self._task(block, positions.fraction_read())

    def _task(self, block: Block, fraction: float | None) -> _Task:
        checksum = block.checksum()
        fens = block.parse(stop=not self._settings.keep_refused)
        noted = refusal = None
        if fens.refusals and not self._settings.keep_refused:
            number, sentence = next(iter(fens.refusals.items()))
            refusal = block.unit_of(fens, number), sentence
        elif self._journal is not None and (records := self._journal.find(block.number, checksum)):
            noted = Findings.from_records(records)
        return _Task(block.number, checksum, block.unit, block.count_units(), fraction, fens, noted, refusal)

    def _searched(self, first: _Task, tasks: ReadAhead[_Task]) -> Iterator[_Part]:
        """The parts of the first task, and of all those that follow it closely and have something to search."""
        given = deque([first])

        def roots() -> Iterator[RootBlock]:
            """Asked for by the threads that search."""
            yield first.roots()
            while (task := tasks.peek(PATIENCE_S)) is not None and not task.is_known:
                given.append(tasks.take())
                yield task.roots()

        settings = self._settings
        analysis = self._engine.analyse_blocks(
            roots(), settings.limits, settings.multi_pv, settings.isolated, settings.searchers
        )
        with closing(iter(analysis)) as outcomes:
            yield from self._cut(outcomes, given)

    def _cut(self, outcomes: Iterator[Outcome], given: deque[_Task]) -> Iterator[_Part]:
        """Outcomes, in order, as parts of the tasks that they belong to."""
        found: list[Outcome] = []
        task = None
        first = 0
        noted_at = time.perf_counter()
        try:
            for outcome in outcomes:
                if task is None:
                    task = given.popleft()
                    first = task.known
                    if task.known:
                        yield _known_part(task)
                found.append(outcome)
                now = time.perf_counter()
                if first + len(found) == len(task.sound) or now - noted_at >= PART_PERIOD_S:
                    part = self._new_part(task, first, found)
                    first, found, noted_at = part.end, [], now
                    if part.is_last:
                        task = None
                    yield part
        finally:
            if found:
                self._new_part(task, first, found)

    def _new_part(self, task: _Task, first: int, found: list[Outcome]) -> _Part:
        """Outcomes about a task, noted in the journal."""
        findings = Findings.of(found)
        if self._journal is not None:
            self._journal.add(task.number, task.checksum, first, len(findings), findings.to_bytes())
        return _Part(task, first, findings, is_new=True)


def _known_part(task: _Task) -> _Part:
    return _Part(task, 0, task.noted, is_new=False)


class _Report:
    """Writes parts, and tells how far the run has come."""

    def __init__(self, settings: AnalysisSettings, engine: Engine, writer: ResultWriter, on_progress: OnProgress):
        self._keep_refused = settings.keep_refused
        self._multi_pv = settings.multi_pv
        self._columns = columns(settings.multi_pv, settings.keep_refused)
        self._model = engine.network.win_rate_model
        self._writer = writer
        self._on_progress = on_progress
        self._positions = self._refused = self._found = self._nodes = 0
        self._units = 0  # in tasks that are complete
        self._fraction: float | None = 0.0  # the share of the input that these are

    def add(self, part: _Part) -> None:
        """Write the next part; InputError if it is of a task that ends the run."""
        task = part.task
        if task.refusal is not None:
            unit, sentence = task.refusal
            raise InputError(f"{task.unit.capitalize()} {self._units + unit + 1}: {sentence}")
        numbers = part.numbers()
        rows = self._rows(part, numbers)
        if rows:
            table = [Cells.of(*column) for column in zip(self._columns, zip(*rows, strict=True), strict=True)]
            self._writer.write(self._writer.encode(table))
        self._count(part, numbers)

    def _rows(self, part: _Part, numbers: range) -> list[tuple]:
        texts, refusals = part.task.texts, part.task.fens.refusals
        found = iter(()) if part.findings is None else part.findings.rows(self._model)
        rows = []
        for number in numbers:
            if number in refusals:
                rows.append((texts[number], *[None] * (len(self._columns) - 2), refusals[number]))
                continue
            for line, cells in enumerate(next(found), 1):
                line_number = (line,) if self._multi_pv > 1 else ()
                error = (None,) if self._keep_refused else ()
                rows.append((texts[number], *line_number, *cells, *error))
        return rows

    def _count(self, part: _Part, numbers: range) -> None:
        task = part.task
        self._positions += len(numbers)
        if part.is_new:
            self._found += len(part.findings)
            self._nodes += part.findings.nodes
        fraction = task.fraction
        if part.is_last:
            self._refused += len(task.fens.refusals)
            self._units += task.units
            self._fraction = fraction
        elif fraction is not None:
            fraction = self._fraction + (fraction - self._fraction) * numbers.stop / len(task.fens)
        self._on_progress(Progress(self._positions, fraction, self._found, self._nodes))

    def summary(self) -> Summary:
        return Summary(self._positions, self._refused)
