"""How a match stands: counted game by game, and said in words."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.elo import PAIR_POINTS, PairStatistics
from experiments.game_record import GameRecord
from experiments.play import ENGINE_FAILURE, FORFEITS
from experiments.sprt import Hypothesis, Sprt


@dataclass
class EngineTally:
    """What one engine did. forfeits: games lost on time or by an illegal move. failures: by a crash and the like."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    forfeits: int = 0
    failures: int = 0
    slowest_ms: float = 0.0

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2

    def add(self, points: float, reason: str, slowest_ms: float) -> None:
        self.wins += points == 1
        self.draws += points == 0.5
        self.losses += points == 0
        self.failures += points == 0 and reason == ENGINE_FAILURE
        self.forfeits += points == 0 and reason in FORFEITS and reason != ENGINE_FAILURE
        self.slowest_ms = max(self.slowest_ms, slowest_ms)


@dataclass
class Standing:
    """The match as its games, added in the order of the log, make it.

    names: of the first engine, whose view it is, and of the second. accepted: by the SPRT, once it has ended.
    """

    names: tuple[str, str]
    sprt: Sprt | None = None
    games: int = 0
    plies: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    accepted: Hypothesis | None = None

    def __post_init__(self):
        self.tallies = {name: EngineTally() for name in self.names}
        self._half_pairs: dict[int, float] = {}  # points of the game that was played, by pair
        self._pair_counts = [0] * len(PAIR_POINTS)

    @classmethod
    def of(cls, records: Iterable[GameRecord], names: tuple[str, str], sprt: Sprt | None = None) -> "Standing":
        standing = cls(names, sprt)
        for record in records:
            standing.add(record)
        return standing

    def add(self, record: GameRecord) -> None:
        self.games += 1
        self.plies += record.plies
        self.reasons[record.reason] += 1
        for name, tally in self.tallies.items():
            tally.add(record.points(name), record.reason, record.slowest_ms.get(name, 0.0))
        points = record.points(self.names[0])
        if record.pair not in self._half_pairs:
            self._half_pairs[record.pair] = points
            return
        self._pair_counts[PAIR_POINTS.index(self._half_pairs.pop(record.pair) + points)] += 1
        if self.sprt is not None and self.accepted is None:
            self.accepted = self.sprt.decision(self.llr)

    @property
    def statistics(self) -> PairStatistics:
        """Of the complete pairs, for the first engine."""
        return PairStatistics(tuple(self._pair_counts))

    @property
    def llr(self) -> float:
        """Of the SPRT; 0 without one."""
        return 0.0 if self.sprt is None else self.sprt.llr(self.statistics)

    @property
    def mean_plies(self) -> float:
        return self.plies / max(1, self.games)

    def score_percent(self, name: str) -> float:
        return 100 * self.tallies[name].points / max(1, self.games)

    def line(self) -> str:
        """All of it from the first engine's view, on one line."""
        first, second = self.names
        tally = self.tallies[first]
        score = f"+{tally.wins} ={tally.draws} -{tally.losses}  {self.score_percent(first):.1f} %"
        test = "" if self.sprt is None else f"  LLR {self.llr:+.2f}"
        return f"{first} vs {second}  {score}  {self.statistics.text()}  {self.statistics.counts_text()}{test}"

    def sprt_lines(self) -> list[str]:
        """Where the SPRT stands; empty without one."""
        if self.sprt is None:
            return []
        end = "SPRT undecided" if self.accepted is None else self.sprt.decision_text(self.accepted)
        return [self.sprt.text(self.llr), end]

    def endings(self) -> str:
        return ", ".join(f"{count} {reason}" for reason, count in self.reasons.most_common())

    def summary_lines(self) -> list[str]:
        """The standing, how the games ended, and how the engines kept their time."""
        lines = [
            f"{self.games} games  {self.line()}",
            *self.sprt_lines(),
            f"endings: {self.endings()}",
            f"mean length: {self.mean_plies:.1f} plies",
        ]
        for name, tally in self.tallies.items():
            lines.append(
                f"{name}: {tally.forfeits} forfeits, {tally.failures} failures, slowest move {tally.slowest_ms:.1f} ms"
            )
        return lines
