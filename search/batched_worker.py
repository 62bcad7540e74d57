"""The thread of a search whose searchers wait for a batched evaluator: many searchers on one root.

The searchers form two groups, so that one is advanced while the batch of the other is on the device; one where the
thread itself evaluates. They share the transposition table, the histories of the thread and the evaluation cache; what
keeps them on different work is told in `spread`.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from games.xiangqi.game import Game
from games.xiangqi.packed import pack_position
from search.layout import STOP_FLAG
from search.leaf_queue import STOP_PERIOD_S, LeafQueue, Telemetry, Ticket
from search.nodes import FINISHED, STOPPED
from search.roots import ROOT
from search.searcher import ThreadTables
from search.searcher_group import EvaluationCache, SearcherGroup
from search.spread import Spread
from search.transposition import TranspositionTable
from search.worker import NEWS, Tree, Worker


class BatchedWorker(Worker):
    """`searchers` of them, with the numbers from first_thread on; batches have at most batch_size positions."""

    def __init__(
        self,
        leaf_queue: LeafQueue,
        cache: EvaluationCache,
        table: TranspositionTable,
        shared: np.ndarray,
        first_thread: int,
        searchers: int,
    ):
        self._queue = leaf_queue
        self._shared = shared
        self._tables = ThreadTables()
        self._groups = []
        for size in leaf_queue.group_sizes(searchers):
            self._groups.append(
                SearcherGroup(
                    size, self._tables.array, table, shared, first_thread, cache, leaf_queue.guess_room, inbox_size=0
                )
            )
            Spread().apply(self._groups[-1].arrays.searchers, first_thread)
            first_thread += size
        self.trees = [Tree(record) for group in self._groups for record in group.arrays.searchers]
        self._tickets: list[Ticket | None] = [None] * len(self._groups)
        self._waiting_s = 0.0

    def set_up(self, game: Game, root_moves: Sequence[int], max_depth: int, multi_pv: int) -> None:
        root = np.zeros(1, ROOT)
        root["packed"] = pack_position(game.position, game.rule60)
        root["counters"] = game.counters
        root["last"] = game.last
        self._tables.is_used = True
        for number, group in enumerate(self._groups):
            group.begin_search(root, game.line, root_moves, max_depth, multi_pv, reports=number == 0)

    def run(self) -> Iterator[int]:
        self._waiting_s = 0.0
        try:
            if self._settle():
                yield from self._rounds()
        finally:
            self._count()

    def _rounds(self) -> Iterator[int]:
        """Advance the groups in turn until the first tree is done, or somebody says stop."""
        while True:
            for number, group in enumerate(self._groups):
                if not self._receive(number):
                    return
                while (code := group.advance()) in NEWS:
                    yield code
                if code in (FINISHED, STOPPED):
                    return
                if len(group.batch):
                    self._tickets[number] = self._queue.submit(group.batch, group.outputs)
            if not any(self._tickets):
                return

    def _receive(self, number: int) -> bool:
        """Wait for the outputs of a group's batch, if there is one; False if the search is to stop."""
        ticket = self._tickets[number]
        started = time.perf_counter()
        while ticket is not None and not ticket.wait(STOP_PERIOD_S):
            if self._shared[STOP_FLAG]:
                return False
        self._waiting_s += time.perf_counter() - started
        self._tickets[number] = None
        return not self._shared[STOP_FLAG]

    def _settle(self) -> bool:
        """Wait for batches that the last search has left behind: their memory is about to be used again.

        False if the search is to stop before that: the device may have hung.
        """
        for number, ticket in enumerate(self._tickets):
            while ticket is not None and not ticket.settle(STOP_PERIOD_S):
                if self._shared[STOP_FLAG]:
                    return False
            self._tickets[number] = None
        return True

    def _count(self) -> None:
        taken = Telemetry(waiting_s=self._waiting_s)
        for group in self._groups:
            taken += group.take_telemetry()
        self._queue.add_telemetry(taken)

    def use_table(self, table: TranspositionTable) -> None:
        for group in self._groups:
            group.use_table(table)

    def clear(self) -> None:
        self._tables.clear()
