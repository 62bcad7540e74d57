"""The facade of the search: positions, limits and options go in, reports and results come out.

    engine = Engine(read_network(path))
    engine.set_position(Game())
    result = engine.go(Limits(depth=12)).wait()

An engine runs one search at a time, on threads of its own; callbacks come from those threads.
"""

from collections.abc import Callable

import numpy as np

from games.memory import aligned_zeros
from games.xiangqi.game import Game
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import SharedParameters
from search.layout import FIRST_NODE_COUNT
from search.limits import CurrentMove, Limits, Report, Result
from search.processors import MAX_THREADS, NumaPolicy, parse_policy
from search.running import Listeners, Means, Search
from search.time_management import Clock, ClockSettings
from search.transposition import TranspositionTable
from search.worker import Worker


class SearchRunningError(RuntimeError):
    """Something was asked of an engine that it cannot do while it searches."""


class Engine:
    """One engine, to which the following attributes may be assigned at any time, for the searches to come.

    multi_pv           number of best lines to search
    clock_settings     ClockSettings: what to know of the clock beside what `Limits` say of a move
    """

    def __init__(self, network: Network, threads: int = 1, hash_mib: int = 16):
        self.table = TranspositionTable(hash_mib)
        self.shared = aligned_zeros(FIRST_NODE_COUNT + MAX_THREADS, np.int64)
        self.parameters = SharedParameters(network)
        self.network = network
        self.numa_policy = parse_policy("auto")
        self.clock_settings = ClockSettings()
        self.multi_pv = 1
        self.game = Game()
        self._clock = Clock()
        self._workers: list[Worker] = []
        self._search: Search | None = None
        self.set_threads(threads)

    def set_threads(self, threads: int) -> None:
        """Change the number of threads; forgets all that was learnt."""
        self._require_idle()
        if not 1 <= threads <= MAX_THREADS:
            raise ValueError(f"The number of threads is {threads}; expected 1 to {MAX_THREADS}.")
        self._workers = [Worker(self.parameters, self.table, self.shared, thread) for thread in range(threads)]
        self.new_game()

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
            worker.searcher.use_table(self.table)
        self.table.clear(self.numa_policy, self.threads)  # the old one is gone: both need not fit into the memory

    def set_network(self, network: Network) -> None:
        """Evaluate with another network from now on; forgets all that was learnt."""
        self._require_idle()
        self.parameters = SharedParameters(network)
        self.network = network
        for worker in self._workers:
            worker.searcher.use_network(self.parameters)
        self.new_game()

    def new_game(self) -> None:
        """Forget all that was learnt in earlier searches; the position stays."""
        self._require_idle()
        self.table.clear(self.numa_policy, self.threads)
        for worker in self._workers:
            worker.tables.clear()
        self._clock = Clock()

    def set_position(self, game: Game) -> None:
        """Position, with its history, for the searches to come."""
        self.game = game

    @property
    def threads(self) -> int:
        return len(self._workers)

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
        )
        self._search = Search(means, self.game, limits, Listeners(on_reports, on_result, on_current_move))
        return self._search

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
