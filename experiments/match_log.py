"""The log of a match: JSON Lines, first the settings, then a game a line in the order in which they ended.

    {"match": {"engines": [...], "time": "100", ...}}
    {"game": 0, "pair": 0, "seed": "1/0", "white": "new", "black": "old", "result": "1-0", "reason": "checkmate", ...}

    python -m experiments.match_log FILE

prints the result of a finished or interrupted match. Game numbers 2p and 2p + 1 are the pair p.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.elo import PairStatistics
from experiments.play import FORFEITS

RESULTS = {1.0: "1-0", 0.5: "1/2-1/2", 0.0: "0-1"}
WHITE_POINTS = {text: points for points, text in RESULTS.items()}


class LogError(ValueError):
    """A log that cannot be read or does not fit the match; the message is a sentence."""


@dataclass(frozen=True)
class GameRecord:
    """moves: all from the start position; the first opening_plies are the opening. slowest_ms: by engine."""

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

    def points(self, name: str) -> float:
        """Points of the engine of this name."""
        white = WHITE_POINTS[self.result]
        return white if self.white == name else 1 - white


class MatchLog:
    """A log file that is written game by game, and taken up again if it is already there.

    path: None to keep nothing but `records`.
    """

    def __init__(self, path: Path | None, settings: dict):
        self._path = path
        self.records: list[GameRecord] = []
        if path is None:
            return
        text = _whole_lines(path) if path.exists() else ""
        if not text:
            self._write(json.dumps({"match": settings}))
            return
        logged, self.records = parse_log(text, str(path))
        _require_same(logged, json.loads(json.dumps(settings)), str(path))
        path.write_text(text, encoding="utf-8")  # without the line that an interruption cut short

    def add(self, record: GameRecord) -> None:
        self.records.append(record)
        if self._path is not None:
            self._write(json.dumps(asdict(record)))

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _whole_lines(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1]


def parse_log(text: str, name: str) -> tuple[dict, list[GameRecord]]:
    """Settings and games; LogError if it is no log."""
    records = []
    try:
        first, *rest = text.splitlines()
        settings = json.loads(first)["match"]
        records = [GameRecord(**json.loads(line)) for line in rest]
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{name} is no log of a match, or is damaged in line {len(records) + 2}: {error}.") from error
    return settings, records


def _require_same(logged: dict, present: dict, name: str) -> None:
    different = sorted(key for key in {*logged, *present} if logged.get(key) != present.get(key))
    if different:
        key = different[0]
        raise LogError(
            f"{name} belongs to a match with other settings ({', '.join(different)}): "
            f"{key} was {logged.get(key)} and is {present.get(key)}."
        )


def pair_points(records: Iterable[GameRecord], name: str) -> list[float]:
    """The engine's points of every complete pair."""
    games: dict[int, list[float]] = {}
    for record in records:
        games.setdefault(record.pair, []).append(record.points(name))
    return [sum(points) for points in games.values() if len(points) == 2]


def table_line(records: list[GameRecord], names: tuple[str, str]) -> str:
    """The standing from the first engine's view, on one line."""
    points = [record.points(names[0]) for record in records]
    wins, draws, losses = points.count(1.0), points.count(0.5), points.count(0.0)
    score = 100 * sum(points) / max(1, len(points))
    statistics = PairStatistics.of(pair_points(records, names[0]))
    return f"{names[0]} vs {names[1]}  +{wins} ={draws} -{losses}  {score:.1f} %  {statistics.text()}"


def summary_lines(records: list[GameRecord], names: tuple[str, str]) -> list[str]:
    """The standing, how the games ended, and what went wrong."""
    reasons = Counter(record.reason for record in records)
    lines = [
        f"{len(records)} games  {table_line(records, names)}",
        "endings: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()),
    ]
    for name in names:
        slowest = max((record.slowest_ms.get(name, 0.0) for record in records), default=0.0)
        lines.append(f"slowest move of {name}: {slowest:.1f} ms")
    lines += [f"game {record.game}: {record.detail}" for record in records if record.reason in FORFEITS]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the result of a match from its log.")
    parser.add_argument("log", type=Path)
    path = parser.parse_args().log
    settings, records = parse_log(_whole_lines(path), str(path))
    print("\n".join(summary_lines(records, tuple(engine["name"] for engine in settings["engines"]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
