"""Memory of one searcher and of the tables of one thread, and how a root position gets into it."""

from collections.abc import Sequence

import numpy as np

from games.memory import address_of, aligned_zeros
from games.xiangqi.game import Game
from games.xiangqi.movegen import MAX_MOVES
from nnue_jax.numba_evaluator import EvaluatorMemory, SharedParameters
from search.layout import HISTORIES, INFINITE, NEVER, NO_VALUE, SCRATCH_LISTS, SEARCHER, STACK_HEIGHT
from search.machine import advance, start
from search.transposition import TranspositionTable


class ThreadTables:
    """HISTORIES of one thread, array [1] and record; searchers of the thread may share it.

    is_used: whether it may hold anything.

    Until then it takes no memory.
    """

    def __init__(self):
        self.array = aligned_zeros(1, HISTORIES)
        self.record = self.array[0]
        self.is_used = False

    def clear(self) -> None:
        if self.is_used:
            for name in HISTORIES.names:
                self.record[name] = 0
        self.is_used = False


class Searcher:
    """A SEARCHER record and all that it points to.

    evaluates_inline: whether `advance` computes values itself; otherwise it returns wherever it needs one.
    """

    def __init__(self, parameters: SharedParameters, table: TranspositionTable, shared: np.ndarray, thread: int = 0):
        self._array = aligned_zeros(1, SEARCHER)
        self.record = self._array[0]
        self._moves = aligned_zeros((STACK_HEIGHT + SCRATCH_LISTS) * MAX_MOVES, np.int32)
        self._ranks = aligned_zeros((STACK_HEIGHT + 1) * MAX_MOVES, np.int32)  # `picker` reads past the last
        self._shared = shared
        self.record["moves"] = address_of(self._moves)
        self.record["ranks"] = address_of(self._ranks)
        self.record["shared"] = address_of(shared)
        self.record["thread"] = thread
        self.record["evaluates_inline"] = 1
        self.use_network(parameters)
        self.use_table(table)

    def use_network(self, parameters: SharedParameters) -> None:
        self._evaluator_memory = EvaluatorMemory(parameters)
        self._evaluator_memory.attach(self.record["evaluator"])

    def use_table(self, table: TranspositionTable) -> None:
        self._table = table
        table.attach(self.record)

    def set_up(self, game: Game, root_moves: Sequence[int], max_depth: int, multi_pv: int = 1) -> None:
        """Make `game`'s position the root, with at least one move to choose from, and get ready to search."""
        record = self.record
        record["position"] = game.position[0]
        record["root_index"] = game.last
        record["line"] = game.line[0]
        record["root_counters"] = game.counters[0]
        record["root_count"] = len(root_moves)
        record["root_order"][: len(root_moves)] = range(len(root_moves))
        roots = record["root_moves"][: len(root_moves)]
        roots["move"] = root_moves
        for field in ("score", "previous_score"):
            roots[field] = -INFINITE
        roots["average_score"] = NO_VALUE
        roots["nodes"] = 0
        roots["pv_length"] = 1
        roots["pv"][:, 0] = root_moves
        record["max_depth"] = max_depth
        record["verbose_from"] = NEVER
        record["multi_pv"] = multi_pv
        self._table.attach(record)
        start(record)

    def advance(self, tables: ThreadTables) -> int:
        """Search on; returns one of the codes of `machine`."""
        tables.is_used = True
        return int(advance(self.record, tables.record))
