"""One thread of a search: its searcher and tables, and the best lines it has found."""

from collections.abc import Iterator

import numpy as np

from nnue_jax.numba_evaluator import SharedParameters
from search.nodes import ITERATION_DONE, ROOT_LINE_DONE, ROOT_MOVE_CHOSEN, ROOT_OUTSIDE
from search.searcher import Searcher, ThreadTables
from search.transposition import TranspositionTable

_NEWS = (ITERATION_DONE, ROOT_MOVE_CHOSEN, ROOT_OUTSIDE, ROOT_LINE_DONE)


class Worker:
    """completed_depth: of the last iteration that was not cut short; 0 for none."""

    def __init__(self, parameters: SharedParameters, table: TranspositionTable, shared: np.ndarray, thread: int):
        self.searcher = Searcher(parameters, table, shared, thread)
        self.tables = ThreadTables()
        self.completed_depth = 0

    @property
    def record(self):
        return self.searcher.record

    @property
    def nodes(self) -> int:
        return int(self.record["nodes"])

    def run(self) -> Iterator[int]:
        """Search until a limit is reached; yields the codes of `machine` that have something to tell."""
        while (code := self.searcher.advance(self.tables)) in _NEWS:
            if code == ITERATION_DONE:
                self.completed_depth = int(self.record["depth"])
            yield code

    def take_best_move_changes(self) -> int:
        """How often the best move has changed since this was asked last."""
        changes = int(self.record["best_move_changes"])
        self.record["best_move_changes"] = 0
        return changes

    def best_lines(self, count: int) -> list[np.ndarray]:
        """ROOT_MOVE records of the best lines of the iteration that is complete or was cut short."""
        record = self.record
        roots = record["root_moves"]
        order = record["root_order"][: record["root_count"]]
        done = int(record["pv_index"])
        if done < count:
            # What the running line has found so far is not sorted yet.
            order = order.copy()
            order[done:] = order[done:][np.argsort(-roots["score"][order[done:]], kind="stable")]
        return [roots[i] for i in order[:count].tolist()]
