"""A running search: its threads, its clock, and what it tells.

The search threads run compiled code. A thread of Python beside them, the controller, passes on what the main
search thread finds, watches the clock, and wakes when somebody says `stop` or `ponderhit`. It learns of all of
it through one queue, so it sleeps whenever there is nothing to do.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from games.xiangqi.game import Game
from games.xiangqi.geometry import move_text
from games.xiangqi.repetition import judge_game
from nnue_jax.win_rate import WinRateModel, model_material
from search.layout import FIRST_NODE_COUNT, INFINITE, MATE, MATE_IN_MAX_PLY, NEVER, NODE_LIMIT, STOP_FLAG, THREAD_COUNT
from search.leaf_queue import EvaluationFailure, LeafQueue, Telemetry
from search.limits import BOUND_NAMES, CurrentMove, Limits, Report, Result, Score
from search.nodes import ITERATION_DONE, ROOT_MOVE_CHOSEN
from search.processors import bind_current_thread
from search.time_management import Clock, ClockSettings, IterationSummary
from search.transposition import TranspositionTable, table_key
from search.worker import Tree, Worker

VERBOSE_NODES = 10_000_000  # of the main thread; from then on what happens at the root is told move by move

_WAKE, _PONDERHIT, _MAIN_DONE = "wake", "ponderhit", "main done"


@dataclass(frozen=True)
class Listeners:
    """Called from the search's own thread: with the lines of an iteration, best first; the result; a root move."""

    on_reports: Callable[[list[Report]], None] | None = None
    on_result: Callable[[Result], None] | None = None
    on_current_move: Callable[[CurrentMove], None] | None = None


@dataclass(frozen=True)
class Means:
    """What a search works with.

    processors: what each worker's thread is to be bound to; None for one that is not bound.
    shared: int64 [FIRST_NODE_COUNT + trees], see `layout`.
    leaf_queue: what evaluates, unless searchers do so by themselves.
    """

    workers: Sequence[Worker]
    processors: Sequence[tuple[int, ...] | None]
    table: TranspositionTable
    shared: np.ndarray
    clock: Clock
    clock_settings: ClockSettings
    multi_pv: int
    win_rate_model: WinRateModel
    leaf_queue: LeafQueue | None = None


class Search:
    """Wait for its result, stop it, or tell it that the opponent has played the move it ponders on."""

    def __init__(self, means: Means, game: Game, limits: Limits, listeners: Listeners):
        self._start = time.perf_counter()
        self._means = means
        self._game = game
        self._limits = limits
        self._listeners = listeners
        self._win_rate = means.win_rate_model.at(model_material(game.position[0]))
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._stop_asked = threading.Event()
        self._finished = threading.Event()
        self._pondering = limits.ponder
        self._main_done = False
        self._enough = False  # thought, as soon as the result is wanted
        self._deadline_ms: float | None = None
        self._node_limit = NEVER
        self._result: Result | None = None
        self._failure: BaseException | None = None
        self._evaluation_failure = ""
        self._shown: Report | None = None  # of the best line
        self._trees: list[Tree] = [tree for worker in means.workers for tree in worker.trees]
        self._main_tree = self._trees[0]
        self._root_moves = self._choose_root_moves()
        self._thread = threading.Thread(target=self._run, name="search", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return self._finished.is_set()

    def stop(self) -> None:
        """Ask for the result; returns at once."""
        self._stop_asked.set()
        self._means.shared[STOP_FLAG] = 1
        self._events.put(_WAKE)

    def ponderhit(self) -> None:
        """The limits of time and nodes count from now on, with what has been used; returns at once."""
        self._pondering = False
        self._events.put(_PONDERHIT)

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
        chosen = self._limits.root_moves
        if chosen is None:
            return legal
        # A restriction that leaves nothing is no restriction, as in the reference engine.
        return [move for move in legal if move_text(move) in chosen] or (legal if chosen else [])

    def _run(self) -> None:
        try:
            self._result = self._search() if self._root_moves else self._no_move()
            if self._listeners.on_result is not None:
                self._listeners.on_result(self._result)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._finished.set()

    def _no_move(self) -> Result:
        """Mate and stalemate lose alike, and there is nothing to wait for."""
        report = Report(0, 0, 1, Score(-MATE, self._win_rate), 0, 1, 0, ())
        self._tell([report])
        return Result(None, None, report)

    def _search(self) -> Result:
        means, limits = self._means, self._limits
        means.table.new_search()
        self._set_limits()
        for worker in means.workers:
            worker.set_up(self._game, self._root_moves, limits.max_depth, means.multi_pv)
        self._main_tree.record["verbose_from"] = VERBOSE_NODES
        threads = [
            threading.Thread(target=self._work, args=(worker, processors), name="search worker", daemon=True)
            for worker, processors in zip(reversed(means.workers), reversed(means.processors), strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            self._control()
        finally:
            means.shared[STOP_FLAG] = 1
            for thread in threads:
                thread.join()
        if self._failure is not None:
            raise self._failure
        while not self._events.empty():
            self._handle(self._events.get())
        if self._has_clock:
            means.clock.end(self._spent_ms())
        return self._conclude()

    @property
    def _has_clock(self) -> bool:
        return self._limits.time_ms[self._game.side] is not None

    def _set_limits(self) -> None:
        """Deadline and limit of nodes; while pondering they wait for `ponderhit`."""
        means, limits = self._means, self._limits
        times_ms = [] if limits.movetime_ms is None else [max(1, limits.movetime_ms)]
        if self._has_clock:
            game = self._game
            times_ms.append(means.clock.begin(limits, game.side, game.game_ply, means.clock_settings).maximum_ms)
        if limits.nodes is not None:
            self._node_limit = max(1, limits.nodes)
        if times_ms and means.clock_settings.nodes_per_ms:
            self._node_limit = min(self._node_limit, max(1, int(min(times_ms) * means.clock_settings.nodes_per_ms)))
        elif times_ms:
            self._deadline_ms = min(times_ms)
        shared = means.shared
        trees = len(self._trees)
        shared[THREAD_COUNT] = trees
        shared[FIRST_NODE_COUNT : FIRST_NODE_COUNT + trees] = 0
        shared[NODE_LIMIT] = NEVER
        if not self._pondering:
            shared[NODE_LIMIT] = self._node_limit
        shared[STOP_FLAG] = 0
        if self._stop_asked.is_set():
            shared[STOP_FLAG] = 1

    def _work(self, worker: Worker, processors: tuple[int, ...] | None) -> None:
        """Body of a search thread."""
        is_main = worker is self._means.workers[0]
        try:
            if processors is not None:
                bind_current_thread(processors)
            for code in worker.run():
                if is_main and self._pass_on(code):
                    break
        except EvaluationFailure as failure:
            # What is known so far still makes a result.
            self._evaluation_failure = str(failure)
            self.stop()
        except BaseException as error:
            self._failure = error
            self.stop()
            raise
        finally:
            if is_main:
                self._events.put(_MAIN_DONE)

    def _pass_on(self, code: int) -> bool:
        """Give the controller what a code of the main thread has to tell; whether the search is to end with it."""
        tree = self._main_tree
        record = tree.record
        if code == ROOT_MOVE_CHOSEN:
            move = move_text(int(record["frames"]["move"][0]))
            self._events.put(CurrentMove(int(record["depth"]), move, int(record["root_next"])))
            return False
        lines = tree.best_lines(self._means.multi_pv)
        self._events.put([self._report(tree, root, i + 1) for i, root in enumerate(lines)])
        return code == ITERATION_DONE and self._is_enough(self._summary(lines))

    def _is_enough(self, summary: IterationSummary) -> bool:
        """After an iteration: whether another is not needed.

        The search thread itself asks, so that a clock of nodes gives the same answer every time.
        """
        score, mate = Score(summary.score, self._win_rate), self._limits.mate
        if mate is not None and (mate < 1 or (score.is_mate and abs(score.mate_plies) <= 2 * mate)):
            return True
        if self._has_clock:
            target_ms = self._means.clock.target_ms(summary)
            if len(self._root_moves) == 1 or summary.is_decided or self._spent_ms() > target_ms:
                self._enough = True
        return self._enough and not self._is_held

    def _summary(self, lines: list) -> IterationSummary:
        best, tree, trees = lines[0], self._main_tree, self._trees
        return IterationSummary(
            depth=tree.completed_depth,
            best_move=int(best["move"]),
            score=int(best["score"]),
            last_score=int(lines[-1]["score"]),
            average_score=int(best["average_score"]),
            best_move_changes=sum(other.take_best_move_changes() for other in trees),
            threads=len(trees),
            best_move_effort=int(best["nodes"]) / max(1, tree.nodes),
        )

    def _report(self, tree: Tree, root, line: int) -> Report:
        score, bound = int(root["score"]), BOUND_NAMES.get(int(root["bound"]), "")
        depth = max(1, int(tree.record["depth"]))
        if score == -INFINITE:
            score, bound = int(root["previous_score"]), ""
            depth = max(1, depth - 1)
        if score == -INFINITE:
            score = 0  # stopped before the first move was searched
        return Report(
            depth=depth,
            selective_depth=int(root["selective_depth"]),
            line=line,
            score=Score(score, self._win_rate),
            nodes=self._total_nodes(),
            time_ms=max(1, int(self.elapsed_ms())),
            hashfull=self._means.table.hashfull(),
            pv=tuple(move_text(move) for move in root["pv"][: root["pv_length"]].tolist()),
            bound=bound,
        )

    def _total_nodes(self) -> int:
        return sum(tree.nodes for tree in self._trees)

    def _spent_ms(self) -> float:
        """Time on the clock of this search."""
        nodes_per_ms = self._means.clock_settings.nodes_per_ms
        return self._total_nodes() / nodes_per_ms if nodes_per_ms else self.elapsed_ms()

    def _control(self) -> None:
        """Pass on what the main thread finds, until the result is wanted and either there or due."""
        while not self._is_over():
            try:
                self._handle(self._events.get(timeout=self._seconds_left()))
            except queue.Empty:
                continue

    @property
    def _is_held(self) -> bool:
        """Whether nobody wants the result yet."""
        return self._limits.infinite or self._pondering

    def _is_over(self) -> bool:
        if self._stop_asked.is_set():
            return True
        if self._is_held:
            return False
        return self._main_done or self._enough or self._seconds_left() == 0

    def _seconds_left(self) -> float | None:
        if self._deadline_ms is None or self._is_held:
            return None
        return max(0.0, (self._deadline_ms - self.elapsed_ms()) / 1000)

    def _handle(self, event) -> None:
        if event is _MAIN_DONE:
            self._main_done = True
            self._means.shared[STOP_FLAG] = 1  # the other threads end as well, though the result may have to wait
        elif event is _PONDERHIT:
            self._means.shared[NODE_LIMIT] = self._node_limit
        elif isinstance(event, CurrentMove):
            if self._listeners.on_current_move is not None:
                self._listeners.on_current_move(event)
        elif event is not _WAKE:
            self._tell(event)

    def _tell(self, reports: list[Report]) -> None:
        self._shown = reports[0]
        if self._listeners.on_reports is not None:
            self._listeners.on_reports(reports)

    def _conclude(self) -> Result:
        tree = self._vote()
        lines = tree.best_lines(self._means.multi_pv if tree is self._main_tree else 1)
        reports = [self._report(tree, root, i + 1) for i, root in enumerate(lines)]
        report = reports[0]
        shown = self._shown
        if shown is not None and shown.pv[0] == report.pv[0]:
            # The iteration that was cut short has nothing better to say.
            report = replace(shown, nodes=report.nodes, time_ms=report.time_ms, hashfull=report.hashfull)
        else:
            self._tell(reports)
        pv = report.pv
        ponder_move = pv[1] if len(pv) > 1 else self._ponder_move(pv[0])
        return Result(pv[0], ponder_move, report, self._take_telemetry(), self._evaluation_failure)

    def _take_telemetry(self) -> Telemetry | None:
        return None if self._means.leaf_queue is None else self._means.leaf_queue.take_telemetry()

    def _vote(self) -> Tree:
        """The tree whose move has the most weight: depth times lead over the worst score, summed by move."""
        trees = [tree for tree in self._trees if tree.completed_depth > 0]
        if not trees or self._limits.depth is not None or len(trees) == 1 or self._means.multi_pv > 1:
            return self._main_tree
        best_lines = {id(tree): tree.best_lines(1)[0] for tree in trees}
        worst = min(int(root["score"]) for root in best_lines.values())
        votes: dict[int, int] = {}
        for tree in trees:
            root = best_lines[id(tree)]
            weight = (int(root["score"]) - worst + 14) * tree.completed_depth
            votes[int(root["move"])] = votes.get(int(root["move"]), 0) + weight

        def standing(tree: Tree) -> tuple[bool, int, int]:
            root = best_lines[id(tree)]
            won = int(root["score"]) >= MATE_IN_MAX_PLY
            return won, int(root["score"]) if won else votes[int(root["move"])], tree.completed_depth

        return max(trees, key=standing)

    def _ponder_move(self, best_move: str) -> str | None:
        """The reply that the transposition table expects, if it is legal."""
        return expected_reply(self._means.table, self._game, best_move)


def expected_reply(table: TranspositionTable, game: Game, move: str) -> str | None:
    """The table's move after `move`, or None, also if the judge ends the game there."""
    after = deepcopy(game)
    after.play(move)
    if judge_game(after, ply=1).result != "none":
        return None
    occurred = after.key in after.past_keys[-int(after.counters["since_pass"][0]) :]
    reply = table.move_at(int(table_key.py_func(after.key, after.rule60, occurred)))
    return move_text(reply) if reply in after.legal_moves() else None
