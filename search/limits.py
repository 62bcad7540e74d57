"""What callers say to a search and hear from it: limits, scores, reports, results."""

from dataclasses import dataclass

from nnue_jax.win_rate import WinRate
from search.layout import MATE, MATE_IN_MAX_PLY, MAX_DEPTH
from search.leaf_queue import Telemetry
from search.transposition import LOWER, UPPER

BOUND_NAMES = {LOWER: "lowerbound", UPPER: "upperbound"}


@dataclass(frozen=True)
class Limits:
    """When to stop; the first limit that is reached counts. Without any the search runs to MAX_DEPTH.

    Times are in milliseconds, for (White, Black); None for a side without a clock. mate: a mate in so many moves,
    given or taken, is enough; so is the first iteration if the number is below one. infinite holds the result back
    until `stop`; ponder holds it back, and suspends the limits of time and nodes, until `stop` or `ponderhit`.
    root_moves restricts the root to these moves (UCI text): None allows all, and so do moves of which none is legal;
    an empty tuple allows none.
    """

    depth: int | None = None
    nodes: int | None = None
    movetime_ms: int | None = None
    mate: int | None = None
    time_ms: tuple[int | None, int | None] = (None, None)
    increment_ms: tuple[int, int] = (0, 0)
    movestogo: int | None = None
    infinite: bool = False
    ponder: bool = False
    root_moves: tuple[str, ...] | None = None

    @property
    def max_depth(self) -> int:
        return MAX_DEPTH if self.depth is None else max(1, min(self.depth, MAX_DEPTH))


@dataclass(frozen=True)
class Score:
    """A value in internal units from the side to move's view. win_rate: the network's, for the root's material."""

    value: int
    win_rate: WinRate

    @property
    def is_mate(self) -> bool:
        return abs(self.value) >= MATE_IN_MAX_PLY

    @property
    def mate_plies(self) -> int:
        """Plies to the mate; negative when the side to move is mated."""
        distance = MATE - abs(self.value)
        return distance if self.value > 0 else -distance

    @property
    def mate_moves(self) -> int:
        """Moves to the mate, as UCI counts them."""
        plies = self.mate_plies
        return (plies + 1) // 2 if plies > 0 else -(-plies // 2)

    @property
    def score_cp(self) -> int:
        return self.win_rate.centipawns(self.value)

    @property
    def win_draw_loss(self) -> tuple[int, int, int]:
        """Expected results per thousand games."""
        return self.win_rate.win_draw_loss(self.value)


@dataclass(frozen=True)
class Report:
    """One line of an iteration. `pv` is in UCI text, and starts with the move the line is about.

    bound: what the score is, if it is not exact: `lowerbound`, `upperbound`, or empty.
    """

    depth: int
    selective_depth: int
    line: int  # from 1, the best
    score: Score
    nodes: int
    time_ms: int
    hashfull: int
    pv: tuple[str, ...]
    bound: str = ""

    @property
    def nps(self) -> int:
        return 1000 * self.nodes // max(1, self.time_ms)


@dataclass(frozen=True)
class CurrentMove:
    """The root move, in UCI text, whose search begins; number counts from 1."""

    depth: int
    move: str
    number: int


@dataclass(frozen=True)
class Result:
    """Outcome of a search. best_move is None if there is no move to choose from.

    telemetry: of the batched evaluator, if there is one. failure: a sentence, if the evaluator failed and so ended the
    search.
    """

    best_move: str | None
    ponder_move: str | None
    report: Report
    telemetry: Telemetry | None = None
    failure: str = ""
