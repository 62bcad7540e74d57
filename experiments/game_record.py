"""What is kept of a game: one line of a match's log."""

from dataclasses import dataclass

from experiments.rulebook import START_FEN

RESULTS = {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}
WHITE_POINTS = {text: points for points, text in RESULTS.items()}


@dataclass(frozen=True)
class GameRecord:
    """moves: all from the position `fen`; the first opening_plies are the opening. slowest_ms: by engine.

    started: when, in UTC, as 2026-01-31T12:00:00Z; empty if nobody noted it.
    """

    game: int
    pair: int
    seed: str
    white: str
    black: str
    result: str
    reason: str
    plies: int
    opening_plies: int
    slowest_ms: dict[str, float]
    moves: str
    detail: str = ""
    fen: str = START_FEN
    started: str = ""

    def points(self, name: str) -> float:
        """Points of the engine of this name."""
        white = WHITE_POINTS[self.result]
        return white if self.white == name else 1 - white

    @property
    def loser(self) -> str | None:
        return {"1-0": self.black, "0-1": self.white}.get(self.result)
