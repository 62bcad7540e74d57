"""The facade of the search: positions, limits and options go in, reports and results come out.

    engine = Engine(read_network(path))
    engine.set_position(Game())
    result = engine.go(Limits(depth=12)).wait()

An engine runs one search at a time, on threads of its own; callbacks come from those threads.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate

import numpy as np

from games.memory import aligned_zeros
from games.xiangqi.game import Game
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import SharedParameters
from search.analysis import Analysis
from search.batched_worker import BatchedWorker
from search.batching import (
    MAX_SEARCHERS,
    Batching,
    analysis_searchers,
    batching_for,
    inline_inbox,
    shares,
    table_bytes_for,
)
from search.layout import FIRST_NODE_COUNT, HISTORIES
from search.leaf_queue import LeafQueue, Telemetry
from search.limits import CurrentMove, Limits, Report, Result
from search.processors import MAX_THREADS, NumaPolicy, parse_policy
from search.root_blocks import PositionAnalysis, RootBlock, position_analysis, position_blocks
from search.running import Listeners, Means, Search
from search.searcher_group import EvaluationCache, SearcherGroup
from search.time_management import Clock, ClockSettings
from search.transposition import TranspositionTable
from search.worker import InlineWorker, Worker

EvaluatorMaker = Callable[[Network], Evaluator]


class SearchRunningError(RuntimeError):
    """Something was asked of an engine that it cannot do while it searches."""


class Engine:
    """One engine, to which the following attributes may be assigned at any time, for the searches to come.

    multi_pv           number of best lines to search
    clock_settings     ClockSettings: what to know of the clock beside what `Limits` say of a move
    """

    def __init__(self, network: Network, threads: int = 1, hash_mib: int = 16):
        self.table = TranspositionTable(hash_mib)
        self.shared = aligned_zeros(FIRST_NODE_COUNT + MAX_THREADS + MAX_SEARCHERS, np.int64)
        self.parameters = SharedParameters(network)
        self.network = network
        self.numa_policy = parse_policy("auto")
        self.clock_settings = ClockSettings()
        self.multi_pv = 1
        self.game = Game()
        self.threads = threads
        self.batching: Batching | None = None
        self._leaf_queue: LeafQueue | None = None
        self._make_evaluator: EvaluatorMaker | None = None
        self._cache = EvaluationCache(0)
        self._clock = Clock()
        self._workers: list[Worker] = []
        self._search: Search | None = None
        self.set_threads(threads)

    def set_threads(self, threads: int) -> None:
        """Change the number of threads; forgets all that was learnt."""
        self._require_idle()
        if not 1 <= threads <= MAX_THREADS:
            raise ValueError(f"The number of threads is {threads}; expected 1 to {MAX_THREADS}.")
        self.threads = threads
        self._make_workers()

    def set_backend(self, make_evaluator: EvaluatorMaker | None, batch_size: int = 0, searchers: int = 0) -> None:
        """Have positions evaluated in batches by what make_evaluator(network) returns, or inline by the CPU if None.

        batch_size: positions in a batch at most; searchers: on one root, all threads together; 0 for what suits the
        device. Forgets all that was learnt. On an error of make_evaluator all stays as it was.
        """
        self._require_idle()
        evaluator = _ready_evaluator(make_evaluator, self.network)
        self._make_evaluator = make_evaluator
        self._use_evaluator(evaluator, batch_size, searchers)
        self._make_workers()

    def _use_evaluator(self, evaluator: Evaluator | None, batch_size: int, searchers: int) -> None:
        self.close()
        self._requested_batching = batch_size, searchers
        if evaluator is None:
            self.batching = None
            self._cache = EvaluationCache(0)
            return
        self.batching = batching_for(evaluator, batch_size, searchers)
        self._leaf_queue = LeafQueue(evaluator, self.batching.batch_size, self.batching.guess_room)
        self._cache = EvaluationCache()

    def close(self) -> None:
        """End the threads that call a batched evaluator, if there are any; then only another backend can search."""
        if self._leaf_queue is not None:
            self._leaf_queue.close()
            self._leaf_queue = None

    def _make_workers(self) -> None:
        if self._leaf_queue is None:
            self._workers = [
                InlineWorker(self.parameters, self.table, self.shared, thread) for thread in range(self.threads)
            ]
        else:
            sizes = shares(max(self.batching.searchers, self.threads), self.threads)
            self._workers = [
                BatchedWorker(self._leaf_queue, self._cache, self.table, self.shared, first, size)
                for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
            ]
        self.new_game()

    @property
    def evaluator(self) -> Evaluator | None:
        """What evaluates in batches, None if the CPU's searchers do so by themselves."""
        return None if self._leaf_queue is None else self._leaf_queue.evaluator

    def set_numa_policy(self, policy: NumaPolicy) -> None:
        """Bind the threads of searches to come; forgets all that was learnt. PolicyError if the system refuses."""
        self._require_idle()
        policy.check()
        self.numa_policy = policy
        self.set_hash(self.table.hash_mib)  # its pages lie where they were first touched
        self.new_game()

    def set_hash(self, hash_mib: int) -> None:
        """Change the size of the transposition table, and empty it; on an error the old one stays."""
        self._require_idle()
        self.table = TranspositionTable(hash_mib)
        for worker in self._workers:
            worker.use_table(self.table)
        self.table.clear(self.numa_policy, self.threads)  # the old one is gone: both need not fit into the memory

    def set_network(self, network: Network) -> None:
        """Evaluate with another network from now on; forgets all that was learnt."""
        self._require_idle()
        evaluator = _ready_evaluator(self._make_evaluator, network)
        self.parameters = SharedParameters(network)
        self.network = network
        if evaluator is not None:
            self._use_evaluator(evaluator, *self._requested_batching)
        self._make_workers()

    def new_game(self) -> None:
        """Forget all that was learnt in earlier searches; the position stays."""
        self._require_idle()
        self.table.clear(self.numa_policy, self.threads)
        self._cache.clear()
        for worker in self._workers:
            worker.clear()
        self._clock = Clock()

    def set_position(self, game: Game) -> None:
        """Position, with its history, for the searches to come."""
        self.game = game

    @property
    def is_searching(self) -> bool:
        return self._search is not None and not self._search.done

    def go(
        self,
        limits: Limits,
        on_reports: Callable[[list[Report]], None] | None = None,
        on_result: Callable[[Result], None] | None = None,
        on_current_move: Callable[[CurrentMove], None] | None = None,
    ) -> Search:
        """Start to search the position.

        on_reports gets the lines of every iteration, best first; on_result the result; on_current_move, once a
        search takes long, every root move as its turn comes.
        """
        self._require_idle()
        means = Means(
            workers=self._workers,
            processors=self.numa_policy.processors_of_threads(self.threads),
            table=self.table,
            shared=self.shared,
            clock=self._clock,
            clock_settings=self.clock_settings,
            multi_pv=self.multi_pv,
            win_rate_model=self.network.win_rate_model,
            leaf_queue=self._leaf_queue,
        )
        self._search = Search(means, self.game, limits, Listeners(on_reports, on_result, on_current_move))
        return self._search

    def analyse(
        self,
        positions: Iterable[str | Game],
        limits: Limits,
        multi_pv: int = 1,
        isolated: bool = False,
        searchers: int = 0,
    ) -> Iterator[PositionAnalysis]:
        """Search many positions, FENs or Games, at once; what is found about each, in their order.

        limits: depth, nodes and movetime_ms hold for each position. Without `isolated` all positions share the engine's
        transposition table, and those of a thread the histories. In isolation each has tables of its own, and the
        result depends on the position and the limits alone. searchers: positions that are searched at once with a
        batched evaluator, all threads together; 0 for what suits the device.
        PositionError for a FEN that is refused, after what comes before it.
        """
        outcomes = self.analyse_blocks(position_blocks(positions), limits, multi_pv, isolated, searchers)
        return (position_analysis(outcome, self.network.win_rate_model) for outcome in outcomes)

    def analyse_blocks(
        self, blocks: Iterable[RootBlock], limits: Limits, multi_pv: int = 1, isolated: bool = False, searchers: int = 0
    ) -> Analysis:
        """The same for whole blocks of roots."""
        self._require_idle()
        self.table.new_search()
        table_bytes = table_bytes_for(limits) if isolated else 0
        if self._leaf_queue is None:
            make = partial(SearcherGroup, inbox_size=inline_inbox(limits), parameters=self.parameters)
            sizes = [[1]] * self.threads
        else:
            # Without an evaluation cache: different roots meet the same positions too seldom for what it costs.
            make = SearcherGroup
            searchers = searchers or analysis_searchers(self._leaf_queue.evaluator, isolated, self.threads)
            sizes = [self._leaf_queue.group_sizes(share) for share in shares(searchers, self.threads)]
        groups = []
        for thread_sizes in sizes:
            histories = None if isolated else aligned_zeros(1, HISTORIES)
            table = None if isolated else self.table
            groups.append(
                [make(size, histories, table, table_bytes=table_bytes, multi_pv=multi_pv) for size in thread_sizes]
            )
        return Analysis(blocks, limits, groups, self._leaf_queue)

    def take_telemetry(self) -> Telemetry | None:
        """What was asked of the batched evaluator, if there is one, since this was asked last or a search ended."""
        return None if self._leaf_queue is None else self._leaf_queue.take_telemetry()

    def stop(self) -> None:
        """Ask the running search, if any, for its result."""
        if self._search is not None:
            self._search.stop()

    def ponderhit(self) -> None:
        """Tell the running search, if any, that the move it ponders on was played."""
        if self._search is not None:
            self._search.ponderhit()

    def _require_idle(self) -> None:
        if self.is_searching:
            raise SearchRunningError("The engine is searching; stop it first.")


def _ready_evaluator(make_evaluator: EvaluatorMaker | None, network: Network) -> Evaluator | None:
    """An evaluator that is warm, before anything is given up for it."""
    if make_evaluator is None:
        return None
    evaluator = make_evaluator(network)
    evaluator.warm_up()
    return evaluator
