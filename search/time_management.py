"""How long to think on a clock: a budget for the move, and after each iteration whether to go on.

The formulas and constants are those of the Stockfish family. Times are in milliseconds. With `nodestime` a clock
counts nodes, so many to a millisecond, and so does everything here; scores are in internal units.
"""

import math
from dataclasses import dataclass

from search.layout import MATE
from search.limits import Limits

MOVE_HORIZON = 50  # moves to plan for when the time control does not say
PONDER_GAIN = 1.25  # with pondering part of the thinking is done on the opponent's time


@dataclass(frozen=True)
class Budget:
    """optimum_ms: time to spend on an ordinary move. maximum_ms: never spend more."""

    optimum_ms: float
    maximum_ms: float


@dataclass(frozen=True)
class ClockSettings:
    """overhead_ms: lost at every move between engine and clock. nodes_per_ms: 0, or what a clock counts in nodes."""

    overhead_ms: int = 10
    ponders: bool = False
    nodes_per_ms: int = 0


@dataclass(frozen=True)
class IterationSummary:
    """What the main thread knows after an iteration. last_score: of the last of the lines asked for."""

    depth: int
    best_move: int
    score: int
    last_score: int
    average_score: int
    best_move_changes: float  # of all threads since the last iteration
    threads: int
    best_move_effort: float  # share of the nodes spent on the best move

    @property
    def is_decided(self) -> bool:
        """Whether thinking on cannot help: every line mates at the next move, or the side to move is mated there."""
        return self.last_score >= MATE - 3 or self.score <= -(MATE - 2)


def allot(
    time_ms: float, increment_ms: int, movestogo: int | None, game_ply: int, overhead_ms: int, adjustment: float | None
) -> tuple[Budget, float]:
    """Budget of this move, and the adjustment to hand in again at the next move of the game."""
    time_ms = max(1, time_ms)
    moves = min(movestogo, MOVE_HORIZON) if movestogo else MOVE_HORIZON
    if time_ms < 1000:
        moves = min(moves, max(1, int(0.05 * time_ms)))
    left_ms = max(1.0, time_ms + increment_ms * (moves - 1) - overhead_ms * (2 + moves))
    if adjustment is None:
        adjustment = 0.3356 * math.log10(left_ms) - 0.4903
    if movestogo:
        optimum_scale = min((0.88 + game_ply / 116.4) / moves, 0.88 * time_ms / left_ms)
        maximum_scale = 1.3 + 0.11 * moves
    else:
        log_seconds = math.log10(time_ms / 1000)
        optimum_constant = min(0.0034013 + 0.00020657 * log_seconds, 0.004536)
        maximum_constant = max(3.7803 + 2.8003 * log_seconds, 2.5470)
        optimum_scale = min(
            0.017244 + (game_ply + 2.71111) ** 0.43433 * optimum_constant, 0.20577 * time_ms / left_ms
        ) * max(adjustment, 0.05)
        maximum_scale = min(7.002, maximum_constant + game_ply / 13.184)
    optimum_ms = max(1.0, optimum_scale * left_ms)
    maximum_ms = max(1.0, min(0.8237 * time_ms - overhead_ms, maximum_scale * optimum_ms))
    return Budget(min(optimum_ms, maximum_ms), maximum_ms), adjustment


class Clock:
    """Decides for one search under a clock; remembers what one move of a game tells the next.

    The attributes are the state of a game: create one at `ucinewgame`, and call `begin` and `end` for each move.
    """

    def __init__(self):
        self._adjustment: float | None = None
        self._previous_average: float | None = None
        self._previous_reduction = 0.85
        self._node_clock_ms: float | None = None  # what is left of a clock that counts nodes

    def begin(self, limits: Limits, side: int, game_ply: int, settings: ClockSettings) -> Budget:
        """Budget of a move of `side`, who has a clock."""
        time_ms, self._increment_ms = limits.time_ms[side], limits.increment_ms[side]
        if settings.nodes_per_ms:
            if self._node_clock_ms is None:
                self._node_clock_ms = time_ms
            time_ms = self._node_clock_ms
        budget, self._adjustment = allot(
            time_ms, self._increment_ms, limits.movestogo, game_ply, settings.overhead_ms, self._adjustment
        )
        if settings.ponders:
            budget = Budget(min(budget.optimum_ms * PONDER_GAIN, budget.maximum_ms), budget.maximum_ms)
        self._budget = budget
        self._scores: list[int] = []
        self._best_move = 0
        self._best_move_depth = 0
        self._changes = 0.0
        self._reduction = 1.0
        return budget

    def target_ms(self, summary: IterationSummary) -> float:
        """Time after which, with this iteration done, no further one should be started."""
        if summary.best_move != self._best_move:
            self._best_move = summary.best_move
            self._best_move_depth = summary.depth
        self._changes = self._changes / 2 + summary.best_move_changes
        falling = 1.860
        if self._previous_average is not None:
            earlier = self._scores[-4] if len(self._scores) >= 4 else summary.score
            drop = 2.73 * (self._previous_average - summary.score) + 0.8 * (earlier - summary.score)
            falling = min(max((16.93 + drop) / 100, 0.610), 1.860)
        stable = summary.depth - self._best_move_depth
        self._reduction = _interpolate(stable, 8, 17, 0.670, 1.440)
        reduction = (2.100 + self._previous_reduction) / (2.480 * self._reduction)
        instability = 0.960 + 1.630 * self._changes / summary.threads
        effort = _interpolate(summary.best_move_effort, 0.78, 0.94, 0.960, 0.740)
        self._scores.append(summary.score)
        self._average = summary.average_score
        optimum_ms, maximum_ms = self._budget.optimum_ms, self._budget.maximum_ms
        return min(optimum_ms * falling * reduction * instability * effort, maximum_ms)

    def end(self, spent_ms: float) -> None:
        """The move is chosen after `spent_ms`: keep what the next one needs."""
        if self._scores:
            self._previous_average = self._average
            self._previous_reduction = self._reduction
        if self._node_clock_ms is not None:
            self._node_clock_ms = max(0.0, self._node_clock_ms + self._increment_ms - spent_ms)


def _interpolate(x: float, x0: float, x1: float, y0: float, y1: float) -> float:
    """Linear from (x0, y0) to (x1, y1), constant outside."""
    share = min(max((x - x0) / (x1 - x0), 0.0), 1.0)
    return y0 + share * (y1 - y0)
