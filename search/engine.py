"""The facade of the search: positions, limits and options go in, reports and results come out.

    engine = Engine(read_network(path))
    engine.set_position(Game())
    result = engine.go(Limits(depth=12)).wait()

An engine runs one search at a time, on threads of its own; callbacks come from those threads.
"""

import queue
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np

from games.memory import aligned_zeros
from games.xiangqi.game import Game
from games.xiangqi.geometry import move_text
from games.xiangqi.repetition import judge_game
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import SharedParameters
from nnue_jax.value import model_material
from search.layout import FIRST_NODE_COUNT, INFINITE, MATE, MATE_IN_MAX_PLY, STOP_FLAG, THREAD_COUNT
from search.limits import Limits, Report, Result, Score
from search.nodes import ITERATION_DONE
from search.searcher import Searcher, ThreadTables
from search.time_management import Clock, IterationSummary
from search.transposition import TranspositionTable, table_key

MAX_THREADS = 1024
NO_NODE_LIMIT = 1 << 62

ReportCallback = Callable[[Report], None]


class SearchRunningError(RuntimeError):
    """Something was asked of an engine that it cannot do while it searches."""


class _Worker:
    """One thread's searcher and tables."""

    def __init__(self, engine: "Engine", thread: int):
        self.searcher = Searcher(engine.parameters, engine.table, engine.shared, thread)
        self.tables = ThreadTables()
        self.completed_depth = 0

    @property
    def record(self):
        return self.searcher.record

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


class Engine:
    """threads, hash_mib and move_overhead_ms are set by the methods of those names."""

    def __init__(self, network: Network, threads: int = 1, hash_mib: int = 16):
        self.table = TranspositionTable(hash_mib)
        self.shared = aligned_zeros(FIRST_NODE_COUNT + MAX_THREADS, np.int64)
        self.parameters = SharedParameters(network)
        self.network = network
        self.move_overhead_ms = 10
        self.multi_pv = 1
        self.game = Game()
        self._clock = Clock()
        self._workers: list[_Worker] = []
        self._search: Search | None = None
        self.set_threads(threads)

    def set_threads(self, threads: int) -> None:
        """Change the number of threads; forgets all that was learnt."""
        self._require_idle()
        if not 1 <= threads <= MAX_THREADS:
            raise ValueError(f"The number of threads is {threads}; expected 1 to {MAX_THREADS}.")
        self._workers = [_Worker(self, thread) for thread in range(threads)]
        self.new_game()

    def set_hash(self, hash_mib: int) -> None:
        """Change the size of the transposition table, and empty it; on an error the old one stays."""
        self._require_idle()
        self.table = TranspositionTable(hash_mib)
        for worker in self._workers:
            worker.searcher.use_table(self.table)

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
        self.table.clear()
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

    def go(self, limits: Limits, on_report: ReportCallback | None = None, on_result=None) -> "Search":
        """Start to search the position; the callbacks get each Report, and the Result."""
        self._require_idle()
        self._search = Search(self, limits, on_report, on_result)
        return self._search

    def stop(self) -> None:
        """Ask the running search, if any, for its result."""
        if self._search is not None:
            self._search.stop()

    def _require_idle(self) -> None:
        if self.is_searching:
            raise SearchRunningError("The engine is searching; stop it first.")


class Search:
    """A running search: wait for its result, or stop it."""

    def __init__(self, engine: Engine, limits: Limits, on_report: ReportCallback | None, on_result):
        self._start = time.perf_counter()
        self._engine = engine
        self._game = engine.game
        self._limits = limits
        self._on_report = on_report
        self._on_result = on_result
        self._material = model_material(self._game.position[0])
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._stop_asked = threading.Event()
        self._finished = threading.Event()
        self._result: Result | None = None
        self._failure: BaseException | None = None
        self._last_report: Report | None = None
        self._root_moves = self._choose_root_moves()
        self._thread = threading.Thread(target=self._run, name="search", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return self._finished.is_set()

    def stop(self) -> None:
        """Ask for the result; returns at once."""
        self._stop_asked.set()
        self._engine.shared[STOP_FLAG] = 1
        self._events.put(None)

    def wait(self, timeout_s: float | None = None) -> Result:
        """The result, once it is there; TimeoutError if it takes longer than `timeout_s`."""
        if not self._finished.wait(timeout_s):
            raise TimeoutError(f"The search did not end within {timeout_s} s.")
        if self._failure is not None:
            raise self._failure
        return self._result

    def elapsed_ms(self) -> float:
        return 1000 * (time.perf_counter() - self._start)

    def _choose_root_moves(self) -> list[int]:
        legal = self._game.legal_moves()
        if self._limits.root_moves is None:
            return legal
        # A restriction that leaves nothing is no restriction, as in the reference engine.
        return [move for move in legal if move_text(move) in self._limits.root_moves] or legal

    def _run(self) -> None:
        try:
            self._result = self._search() if self._root_moves else self._no_move()
            if self._on_result is not None:
                self._on_result(self._result)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._finished.set()

    def _no_move(self) -> Result:
        """Mate and stalemate lose alike, and there is nothing to wait for."""
        report = Report(0, 0, 1, Score(-MATE, self._material), 0, 1, 0, ())
        if self._on_report is not None:
            self._on_report(report)
        return Result(None, None, report)

    def _search(self) -> Result:
        engine = self._engine
        engine.table.new_search()
        engine.shared[STOP_FLAG] = int(self._stop_asked.is_set())
        engine.shared[THREAD_COUNT] = engine.threads
        engine.shared[FIRST_NODE_COUNT : FIRST_NODE_COUNT + engine.threads] = 0
        limits = self._limits
        for worker in engine._workers:
            worker.completed_depth = 0
            worker.searcher.set_up(
                self._game, self._root_moves, limits.max_depth, limits.nodes or NO_NODE_LIMIT, engine.multi_pv
            )
        helpers = [
            threading.Thread(target=self._work, args=(worker,), name="search helper", daemon=True)
            for worker in engine._workers[1:]
        ]
        main = threading.Thread(target=self._work, args=(engine._workers[0],), name="search main", daemon=True)
        for thread in (*helpers, main):
            thread.start()
        self._control(main)
        engine.shared[STOP_FLAG] = 1
        for thread in (*helpers, main):
            thread.join()
        return self._conclude()

    def _work(self, worker: _Worker) -> None:
        """Body of a search thread: iterate until a limit is reached."""
        is_main = worker is self._engine._workers[0]
        try:
            while True:
                code = worker.searcher.advance(worker.tables)
                if code != ITERATION_DONE:
                    break
                worker.completed_depth = int(worker.record["depth"])
                if is_main:
                    self._events.put(self._summarize(worker))
        except BaseException as error:
            self._failure = error
            raise
        finally:
            if is_main:
                self._events.put(None)

    def _summarize(self, worker: _Worker) -> tuple[list[Report], IterationSummary]:
        """Reports and summary of the iteration that has just been completed."""
        engine = self._engine
        lines = worker.best_lines(engine.multi_pv)
        reports = [self._report(worker, root, i + 1) for i, root in enumerate(lines)]
        changes = 0
        for other in engine._workers:
            changes += int(other.record["best_move_changes"])
            other.record["best_move_changes"] = 0
        best = lines[0]
        summary = IterationSummary(
            depth=worker.completed_depth,
            best_move=int(best["move"]),
            score=int(best["score"]),
            average_score=int(best["average_score"]),
            best_move_changes=changes,
            threads=engine.threads,
            best_move_effort=int(best["nodes"]) / max(1, int(worker.record["nodes"])),
        )
        return reports, summary

    def _report(self, worker: _Worker, root, line: int) -> Report:
        score = int(root["score"])
        depth = max(1, int(worker.record["depth"]))
        if score == -INFINITE:
            score = int(root["previous_score"])
            depth = max(1, depth - 1)
        if score == -INFINITE:
            score = 0  # stopped before the first move was searched
        return Report(
            depth=depth,
            selective_depth=int(root["selective_depth"]),
            line=line,
            score=Score(score, self._material),
            nodes=self._total_nodes(),
            time_ms=max(1, int(self.elapsed_ms())),
            hashfull=self._engine.table.hashfull(),
            pv=tuple(move_text(move) for move in root["pv"][: root["pv_length"]].tolist()),
        )

    def _total_nodes(self) -> int:
        return sum(int(worker.record["nodes"]) for worker in self._engine._workers)

    def _control(self, main: threading.Thread) -> None:
        """Print what the main thread finds, watch the clock, and return when the search is to end."""
        deadline_ms = self._deadline_ms()
        clock = None
        if self._limits.time_ms is not None:
            clock = self._engine._clock
        while True:
            timeout = None
            if deadline_ms is not None:
                timeout = max(0.0, (deadline_ms - self.elapsed_ms()) / 1000)
            try:
                event = self._events.get(timeout=timeout)
            except queue.Empty:
                break
            if event is None:
                if self._stop_asked.is_set() or not self._limits.infinite:
                    break
                self._stop_asked.wait()  # the search is done, but the result is not wanted yet
                break
            reports, summary = event
            self._last_report = reports[0]
            for report in reports:
                if self._on_report is not None:
                    self._on_report(report)
            if clock is not None and self._is_enough(clock, summary):
                break
        if clock is not None:
            clock.end()

    def _deadline_ms(self) -> float | None:
        """Time at which the search is stopped wherever it is."""
        limits = self._limits
        deadlines = []
        if limits.movetime_ms is not None:
            deadlines.append(max(1, limits.movetime_ms))
        if limits.time_ms is not None:
            game = self._game
            budget = self._engine._clock.begin(limits, game.side, game.game_ply, self._engine.move_overhead_ms)
            deadlines.append(budget.maximum_ms)
        return min(deadlines, default=None)

    def _is_enough(self, clock: Clock, summary: IterationSummary) -> bool:
        target_ms = clock.target_ms(summary)
        if len(self._root_moves) == 1 or abs(summary.score) >= MATE - 3:
            return True
        return self.elapsed_ms() > target_ms

    def _conclude(self) -> Result:
        if self._failure is not None:
            raise self._failure
        worker = self._vote()
        root = worker.best_lines(1)[0]
        report = self._report(worker, root, 1)
        shown = self._last_report
        if shown is not None and shown.pv[0] == report.pv[0]:
            # The iteration that was cut short has nothing better to say.
            report = replace(shown, nodes=report.nodes, time_ms=report.time_ms, hashfull=report.hashfull)
        elif self._on_report is not None:
            self._on_report(report)
        pv = report.pv
        return Result(pv[0], pv[1] if len(pv) > 1 else self._ponder_move(pv[0]), report)

    def _vote(self) -> _Worker:
        """The thread whose move has the most weight: depth times lead over the worst score, summed by move."""
        workers = [worker for worker in self._engine._workers if worker.completed_depth > 0]
        if not workers or self._limits.depth is not None or len(workers) == 1 or self._engine.multi_pv > 1:
            return self._engine._workers[0]
        best_lines = {id(worker): worker.best_lines(1)[0] for worker in workers}
        worst = min(int(root["score"]) for root in best_lines.values())
        votes: dict[int, int] = {}
        for worker in workers:
            root = best_lines[id(worker)]
            weight = (int(root["score"]) - worst + 14) * worker.completed_depth
            votes[int(root["move"])] = votes.get(int(root["move"]), 0) + weight

        def standing(worker: _Worker) -> tuple[bool, int, int]:
            root = best_lines[id(worker)]
            won = int(root["score"]) >= MATE_IN_MAX_PLY
            return won, int(root["score"]) if won else votes[int(root["move"])], worker.completed_depth

        return max(workers, key=standing)

    def _ponder_move(self, best_move: str) -> str | None:
        """The reply that the transposition table expects, if it is legal."""
        return expected_reply(self._engine.table, self._game, best_move)


def expected_reply(table: TranspositionTable, game: Game, move: str) -> str | None:
    """The table's move after `move`, or None, also if the judge ends the game there."""
    after = deepcopy(game)
    after.play(move)
    if judge_game(after, ply=1).result != "none":
        return None
    occurred = after.key in after.past_keys[-int(after.counters["since_pass"][0]) :]
    reply = table.move_at(int(table_key.py_func(after.key, after.rule60, occurred)))
    return move_text(reply) if reply in after.legal_moves() else None
