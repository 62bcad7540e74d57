"""Searching many roots at once: every searcher has a root of its own, and takes the next one when it is done.

Roots come from an iterator and outcomes go out in the same order; between them lie a limited number, so memory does not
grow with the number of roots. With a batched evaluator each thread advances two groups of searchers in turn, or one
where it evaluates itself; without one it searches one root after the other.
"""

import queue
import threading
import time
from collections.abc import Iterable, Iterator

import numpy as np

from search.group import FREE
from search.layout import NEVER
from search.leaf_queue import STOP_PERIOD_S, LeafQueue, Telemetry, Ticket
from search.limits import Limits
from search.root_blocks import Outcome, RootBlock
from search.roots import ROOT
from search.searcher_group import SearcherGroup

WINDOW_SHARE = 8  # roots that may be given out beyond the oldest unfinished one, by searcher
CLOCK_PERIOD_S = 0.001


class _Source:
    """Hands out roots in order, not too far beyond the first whose outcome has not been taken.

    Iterating is done by whichever thread needs roots.
    """

    def __init__(self, blocks: Iterable[RootBlock], window: int):
        self._blocks = iter(blocks)
        self._window = window
        self._block = RootBlock(np.zeros(0, ROOT))
        self._next = 0  # in the block
        self._given = 0
        self._taken = 0
        self._condition = threading.Condition()
        self.failure: BaseException | None = None
        self.is_exhausted = False

    def take(self, count: int, may_wait: bool) -> RootBlock:
        """At most `count` roots; none if there are no more, or for the moment unless may_wait."""
        with self._condition:
            while may_wait and not self.is_exhausted and self._room == 0:
                self._condition.wait()
            count = min(count, self._room)
            if count == 0 or not self._has_next():
                return RootBlock(np.zeros(0, ROOT))
            part = slice(self._next, min(self._next + count, len(self._block.roots)))
            roots = self._block.roots[part].copy()
            roots["number"] = self._given + np.arange(len(roots))
            self._next = part.stop
            self._given += len(roots)
            return RootBlock(roots, None if self._block.lines is None else self._block.lines[part])

    @property
    def _room(self) -> int:
        return self._taken + self._window - self._given

    def _has_next(self) -> bool:
        try:
            while not self.is_exhausted and self._next == len(self._block.roots):
                block = next(self._blocks, None)
                if block is None:
                    self.is_exhausted = True
                else:
                    self._block, self._next = block, 0
        except BaseException as error:
            self.failure = error
            self.is_exhausted = True
        return not self.is_exhausted

    def note_taken(self, count: int) -> None:
        """So many outcomes have gone out, in order."""
        with self._condition:
            self._taken = count
            self._condition.notify_all()

    def end(self) -> None:
        with self._condition:
            self.is_exhausted = True
            self._condition.notify_all()

    @property
    def given(self) -> int:
        return self._given


class Analysis:
    """One run over many roots; iterate over it once for [Outcome]s, in the order of the roots.

    thread_groups: the groups of each thread: one or two for a batched evaluator, one of one searcher otherwise.
    """

    def __init__(
        self,
        blocks: Iterable[RootBlock],
        limits: Limits,
        thread_groups: list[list[SearcherGroup]],
        leaf_queue: LeafQueue | None,
    ):
        self._groups = [group for groups in thread_groups for group in groups]
        searchers = sum(group.size for group in self._groups)
        self._source = _Source(blocks, max(64, WINDOW_SHARE * searchers))
        self._queue = leaf_queue
        self._movetime_s = None if limits.movetime_ms is None else limits.movetime_ms / 1000
        self._results: queue.SimpleQueue = queue.SimpleQueue()
        self._stopped = threading.Event()
        for group in self._groups:
            group.take_roots(NEVER if limits.nodes is None else max(1, limits.nodes), limits.max_depth)
        self._threads = [
            threading.Thread(target=self._work, args=(groups,), name="analysis", daemon=True)
            for groups in thread_groups
        ]
        if self._movetime_s is not None:
            self._clock = threading.Thread(target=self._watch_clock, name="analysis clock", daemon=True)

    def __iter__(self) -> Iterator[Outcome]:
        for thread in self._threads:
            thread.start()
        if self._movetime_s is not None:
            self._clock.start()
        try:
            yield from self._in_order()
        finally:
            self.stop()
            for thread in self._threads:
                thread.join()

    def stop(self) -> None:
        """End all searches now."""
        self._stopped.set()
        self._source.end()
        for group in self._groups:
            group.stop()

    def _in_order(self) -> Iterator[Outcome]:
        waiting: dict[int, Outcome] = {}
        working = len(self._threads)
        number = 0
        while working or number in waiting:  # what was finished out of turn is left when somebody has said stop
            if number in waiting:
                yield waiting.pop(number)
                number += 1
                continue
            self._source.note_taken(number)
            found = self._results.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                working -= 1
                if working == 0 and self._source.failure is not None and number == self._source.given:
                    raise self._source.failure
                continue
            outcomes, lines = found
            for outcome, best in zip(outcomes.tolist(), lines, strict=True):
                *facts, line_count = outcome
                waiting[facts[0]] = Outcome(*facts, best[:line_count])
        if self._source.failure is not None:
            raise self._source.failure

    def _work(self, groups: list[SearcherGroup]) -> None:
        """Body of a thread."""
        tickets: list[Ticket | None] = [None] * len(groups)
        waited_s = 0.0
        try:
            while not self._stopped.is_set():
                for number, group in enumerate(groups):
                    waited_s += self._wait_for(tickets[number])
                    if self._stopped.is_set():
                        break
                    tickets[number] = None
                    self._give_roots(group, may_wait=all(other.is_idle for other in groups))
                    group.advance()
                    outcomes = group.take_outcomes()
                    if len(outcomes[0]):
                        self._results.put(outcomes)
                    if len(group.batch):
                        tickets[number] = self._queue.submit(group.batch, group.outputs)
                if self._source.is_exhausted and all(group.is_idle for group in groups):
                    break
            self._results.put(None)
        except BaseException as error:
            self._results.put(error)
        finally:
            if self._queue is not None:
                counted = (group.take_telemetry() for group in groups)
                self._queue.add_telemetry(sum(counted, Telemetry(waiting_s=waited_s)))

    def _wait_for(self, ticket: Ticket | None) -> float:
        """Seconds that it took until the outputs were there, or somebody said stop."""
        started = time.perf_counter()
        while ticket is not None and not ticket.wait(STOP_PERIOD_S) and not self._stopped.is_set():
            pass
        return time.perf_counter() - started

    def _give_roots(self, group: SearcherGroup, may_wait: bool) -> None:
        wanted = group.roots_wanted
        if wanted == 0 or self._source.is_exhausted:
            return
        block = self._source.take(wanted, may_wait)
        if len(block.roots):
            group.add_roots(block.roots, block.lines)

    def _watch_clock(self) -> None:
        """Stop every search when its time is over."""
        clocks = [_GroupClock(group, self._movetime_s) for group in self._groups]
        while not self._stopped.wait(CLOCK_PERIOD_S):
            now = time.perf_counter()
            for clock in clocks:
                clock.stop_late(now)


class _GroupClock:
    """When the roots of a group were begun."""

    def __init__(self, group: SearcherGroup, movetime_s: float):
        self._group = group
        self._movetime_s = movetime_s
        self._roots = np.full(group.size, -1, np.int64)
        self._begun = np.zeros(group.size)

    def stop_late(self, now: float) -> None:
        slots = self._group.arrays.slots
        roots = slots["root"].copy()
        is_new = roots != self._roots
        self._roots[is_new] = roots[is_new]
        self._begun[is_new] = now
        is_late = (slots["state"] != FREE) & ~is_new & (now - self._begun >= self._movetime_s)
        for number in np.flatnonzero(is_late).tolist():
            self._group.stop_root(number, int(roots[number]))
