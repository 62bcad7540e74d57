"""Memory of a group of searchers, and how it is given work, batches and their outputs."""

from collections.abc import Sequence

import numpy as np

from games.memory import address_of, aligned_zeros, sparse_zeros
from games.xiangqi.line import LINE
from games.xiangqi.movegen import MAX_MOVES
from games.xiangqi.packed import PACKED
from nnue_jax.numba_evaluator import EvaluatorMemory, SharedParameters
from search.group import FREE, GROUP, SLOT, Arrays, advance_group, begin_search
from search.layout import FIRST_NODE_COUNT, HISTORIES, SCRATCH_LISTS, SEARCHER, STACK_HEIGHT, STOP_FLAG
from search.leaf_queue import Telemetry
from search.roots import FOUND_LINE, NO_LINE, OUTCOME, ROOT
from search.transposition import BUCKET_BYTES, TranspositionTable

# The same field of all searchers must not fall into the same sets of the caches: odd numbers of lines of 64 bytes.
_MOVES_LENGTH = ((STACK_HEIGHT + SCRATCH_LISTS) * MAX_MOVES // 16 | 1) * 16


class EvaluationCache:
    """Outputs by position, for all searchers that use one network; 16 bytes an entry, 2 ** bits entries."""

    def __init__(self, bits: int = 20):
        self.words = aligned_zeros(2 << bits, np.int64)
        self.mask = (1 << bits) - 1

    def clear(self) -> None:
        self.words[:] = 0


class SearcherGroup:
    """`size` searchers.

    guess_room  size up to which batches are filled with guesses, which the cache keeps
    histories   HISTORIES array [1] that the searchers share, or None: each has its own, and a table of table_bytes
    table       transposition table that they share, if they share the histories
    shared      words at SEARCHER.shared of all searchers together, or None: each has its own
    inbox_size  roots that may wait for a searcher, by default one for each
    parameters  if given, searchers evaluate inline
    """

    def __init__(
        self,
        size: int,
        histories: np.ndarray | None,
        table: TranspositionTable | None,
        shared: np.ndarray | None = None,
        first_thread: int = 0,
        cache: EvaluationCache | None = None,
        guess_room: int = 0,
        table_bytes: int = 0,
        inbox_size: int | None = None,
        multi_pv: int = 1,
        parameters: SharedParameters | None = None,
    ):
        room = max(guess_room, size)
        inbox_size = size if inbox_size is None else inbox_size
        self.size = size
        self._group = np.zeros(1, GROUP)
        self.record = self._group[0]
        self._stop = np.zeros(1, np.int64) if shared is None else shared[STOP_FLAG : STOP_FLAG + 1]
        self._cache = cache
        self._table = table
        self._shared = shared
        self.record["searchers"] = size
        self.record["stop"] = address_of(self._stop)
        self.record["multi_pv"] = multi_pv
        self.record["guess_room"] = guess_room if cache is not None else 0
        self.record["isolated"] = histories is None
        if cache is not None:
            self.record["cache"] = address_of(cache.words)
            self.record["cache_mask"] = cache.mask
        if histories is None:
            histories = sparse_zeros(size, HISTORIES)
        self.arrays = Arrays(
            searchers=sparse_zeros(size, SEARCHER),
            histories=histories,
            slots=np.zeros(size, SLOT),
            batch=np.zeros(room, PACKED),
            keys=np.zeros(room, np.int64),
            outputs=np.zeros((2, room), np.int32),
            inbox=np.zeros(inbox_size, ROOT),
            lines=sparse_zeros(inbox_size, LINE),
            noted=np.zeros((size, multi_pv), FOUND_LINE),
            outbox=np.zeros(inbox_size + size, OUTCOME),
            found=np.zeros((inbox_size + size, multi_pv), FOUND_LINE),
        )
        if len(histories) == size:
            self.arrays.slots["tables"] = range(size)
        self._words = np.zeros((size, FIRST_NODE_COUNT + 1), np.int64)
        self._moves = sparse_zeros((size, _MOVES_LENGTH), np.int32)
        self._ranks = sparse_zeros((size, _MOVES_LENGTH), np.int32)
        searchers = self.arrays.searchers
        searchers["moves"] = address_of(self._moves) + np.arange(size) * self._moves[0].nbytes
        searchers["ranks"] = address_of(self._ranks) + np.arange(size) * self._ranks[0].nbytes
        if shared is None:
            searchers["shared"] = address_of(self._words) + np.arange(size) * self._words[0].nbytes
        else:
            searchers["shared"] = address_of(shared)
            searchers["thread"] = first_thread + np.arange(size)
        self._use_tables(table_bytes)
        self._inline_memory = self._evaluate_inline(parameters) if parameters is not None else []

    def _use_tables(self, table_bytes: int) -> None:
        searchers = self.arrays.searchers
        if self._table is not None:
            self.use_table(self._table)
            return
        buckets = max(1, table_bytes // BUCKET_BYTES)
        self._own_tables = sparse_zeros((self.size, buckets * BUCKET_BYTES), np.uint8)
        searchers["tt_buckets"] = buckets
        searchers["tt_entries"] = address_of(self._own_tables) + np.arange(self.size) * buckets * BUCKET_BYTES

    def _evaluate_inline(self, parameters: SharedParameters) -> list[EvaluatorMemory]:
        memory = [EvaluatorMemory(parameters) for _ in range(self.size)]
        self.arrays.searchers["evaluates_inline"] = 1
        for searcher, own in zip(self.arrays.searchers, memory, strict=True):
            own.attach(searcher["evaluator"])
        return memory

    def take_roots(self, node_limit: int, max_depth: int) -> None:
        """Search roots from now on, as they are given to `add_roots`; whatever was going on before is forgotten."""
        record = self.record
        record["takes_roots"] = 1
        record["node_limit"] = node_limit
        record["max_depth"] = max_depth
        for name in ("cursor", "requests", "waiting", "running", "inbox_next", "inbox_count", "outbox_count"):
            record[name] = 0
        self.arrays.slots["state"] = FREE
        self.arrays.slots["root"] = -1
        self._stop[0] = 0
        if self._table is not None:
            self.use_table(self._table)

    def add_roots(self, roots: np.ndarray, lines: np.ndarray | None) -> None:
        """[n] ROOT, for which there is room: see `roots_wanted`; and [n] LINE that led to them, see ROOT."""
        record, arrays = self.record, self.arrays
        first, end = int(record["inbox_next"]), int(record["inbox_count"])
        left, total = end - first, end - first + len(roots)
        for array, added in ((arrays.inbox, roots), (arrays.lines, lines)):
            array[:left] = array[first:end].copy()
            if added is not None:
                array[left:total] = added
        has_line = arrays.inbox["line"][:total] != NO_LINE
        arrays.inbox["line"][:total] = np.where(has_line, np.arange(total), NO_LINE)
        record["inbox_next"], record["inbox_count"] = 0, total

    def begin_search(
        self,
        root: np.ndarray,
        line: np.ndarray,
        root_moves: Sequence[int],
        max_depth: int,
        multi_pv: int,
        reports: bool,
    ) -> None:
        """Let all searchers search one ROOT, array [1], among at least one move.

        line: the LINE array [1] that led to it.
        reports: whether `advance` returns what the first searcher has to tell.
        """
        record = self.record
        record["max_depth"], record["multi_pv"], record["reports"] = max_depth, multi_pv, reports
        if self._table is not None:
            self.use_table(self._table)
        begin_search(record, self.arrays._replace(lines=line), root[0], np.array(root_moves, np.int64))

    def use_table(self, table: TranspositionTable) -> None:
        """Search with this transposition table, of its present generation."""
        self._table = table
        for searcher in self.arrays.searchers:
            table.attach(searcher)

    def take_telemetry(self) -> Telemetry:
        """What the group knows of its evaluations since this was asked last."""
        counts = {name: int(self.record[name]) for name in ("guesses", "guess_hits", "cache_hits")}
        for name in counts:
            self.record[name] = 0
        return Telemetry(**counts)

    @property
    def roots_wanted(self) -> int:
        return len(self.arrays.inbox) - int(self.record["inbox_count"] - self.record["inbox_next"])

    def take_outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """([n] OUTCOME, [n, multi_pv] FOUND_LINE) of the roots that are done since this was asked last."""
        count = int(self.record["outbox_count"])
        self.record["outbox_count"] = 0
        return self.arrays.outbox[:count].copy(), self.arrays.found[:count].copy()

    def stop_root(self, number: int, root: int) -> None:
        """Let searcher `number` end with what it has found, if it still searches the root of this number."""
        self.arrays.slots["stopped_root"][number] = root
        self._words[number, STOP_FLAG] = 1

    @property
    def is_idle(self) -> bool:
        """Whether no searcher has anything to do."""
        return self.record["running"] == 0 and self.record["inbox_next"] == self.record["inbox_count"]

    def advance(self) -> int:
        """Advance all searchers until they wait; ROUND_DONE, or earlier a code of the main searcher."""
        return int(advance_group(self.record, self.arrays))

    @property
    def batch(self) -> np.ndarray:
        """[n] PACKED: what has to be evaluated before the next round."""
        return self.arrays.batch[: self.record["requests"]]

    @property
    def outputs(self) -> np.ndarray:
        """[2, n] int32, to be filled with psqt and positional of the batch."""
        return self.arrays.outputs[:, : self.record["requests"]]

    def stop(self) -> None:
        """Let the searchers end with what they have found, from whatever thread; to be repeated until they have."""
        self._stop[0] = 1
        self._words[:, STOP_FLAG] = 1
