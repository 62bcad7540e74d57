"""The threads of a search: what they have in common, and the one whose searcher evaluates by itself.

A worker is what one thread of a search works with. It owns one or more searchers, and the tables that they share.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from games.xiangqi.game import Game
from nnue_jax.numba_evaluator import SharedParameters
from search.nodes import ITERATION_DONE, ROOT_LINE_DONE, ROOT_MOVE_CHOSEN, ROOT_OUTSIDE
from search.searcher import Searcher, ThreadTables
from search.transposition import TranspositionTable

NEWS = (ITERATION_DONE, ROOT_MOVE_CHOSEN, ROOT_OUTSIDE, ROOT_LINE_DONE)


class Tree:
    """What one SEARCHER record has found of its tree."""

    def __init__(self, record):
        self.record = record

    @property
    def nodes(self) -> int:
        return int(self.record["nodes"])

    @property
    def completed_depth(self) -> int:
        """Depth of the last iteration that was not cut short; 0 for none."""
        return int(self.record["completed_depth"])

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


class Worker(ABC):
    """trees: of its searchers; the first tree of the first worker is the one whose progress is told."""

    trees: Sequence[Tree]

    @abstractmethod
    def set_up(self, game: Game, root_moves: Sequence[int], max_depth: int, multi_pv: int) -> None:
        """Get ready to search `game`'s position, with at least one move to choose from."""

    @abstractmethod
    def run(self) -> Iterator[int]:
        """Search until a limit is reached; yields the codes of `machine` by which the first tree tells something."""

    @abstractmethod
    def use_table(self, table: TranspositionTable) -> None:
        """Search with another transposition table from now on."""

    @abstractmethod
    def clear(self) -> None:
        """Forget what was learnt in earlier searches."""


class InlineWorker(Worker):
    """One searcher that evaluates by itself."""

    def __init__(self, parameters: SharedParameters, table: TranspositionTable, shared: np.ndarray, thread: int):
        self._searcher = Searcher(parameters, table, shared, thread)
        self._tables = ThreadTables()
        self.trees = (Tree(self._searcher.record),)

    def set_up(self, game: Game, root_moves: Sequence[int], max_depth: int, multi_pv: int) -> None:
        self._searcher.set_up(game, root_moves, max_depth, multi_pv)

    def run(self) -> Iterator[int]:
        while (code := self._searcher.advance(self._tables)) in NEWS:
            yield code

    def use_table(self, table: TranspositionTable) -> None:
        self._searcher.use_table(table)

    def clear(self) -> None:
        self._tables.clear()
