"""The log of a match: JSON Lines, first the settings, then a game a line in the order in which they ended.

    {"match": {"engines": [...], "time": "100", ...}}
    {"game": 0, "pair": 0, "seed": "1/0", "white": "new", "black": "old", "result": "1-0", "reason": "checkmate", ...}

    python -m experiments.match_log FILE

prints the result of a finished or interrupted match. Game numbers 2p and 2p + 1 are the pair p.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from experiments.game_record import GameRecord
from experiments.play import FORFEITS
from experiments.sprt import Sprt
from experiments.standing import Standing


class LogError(ValueError):
    """A log that cannot be read or does not fit the match; the message is a sentence."""


class MatchLog:
    """A log file that is written game by game, and taken up again if it is already there.

    path: None to keep nothing but `records`.
    """

    def __init__(self, path: Path | None, settings: dict):
        self._path = path
        self.records: list[GameRecord] = []
        if path is None:
            return
        first = json.dumps({"match": settings})
        text = _whole_lines(path) if path.exists() else ""
        if not text:
            _discard_half_line(path, first)
            self._write(first)
            return
        logged, self.records = parse_log(text, str(path))
        _require_same(logged, json.loads(json.dumps(settings)), str(path))
        os.truncate(path, len(text.encode()))  # without the line that an interruption cut short

    def add(self, record: GameRecord) -> None:
        self.records.append(record)
        if self._path is not None:
            self._write(json.dumps(asdict(record)))

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())  # a PGN file must not know a game that the log has lost


def _whole_lines(path: Path) -> str:
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1].decode()


def _discard_half_line(path: Path, first: str) -> None:
    """Empty a file in which an interruption left the beginning of the first line; LogError if it is another file."""
    if not path.exists():
        return
    if not first.encode().startswith(path.read_bytes()):
        raise LogError(f"{path} is no log of this match; expected another name, or no such file.")
    os.truncate(path, 0)


def read_log(path: Path) -> tuple[dict, list[GameRecord]]:
    """Settings and games, without a game that is still being written; LogError if it is no log."""
    return parse_log(_whole_lines(path), str(path))


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


def engine_names(settings: dict) -> tuple[str, str]:
    """Names of the first and the second engine, from a log's settings."""
    first, second = (engine["name"] for engine in settings["engines"])
    return first, second


def forfeit_lines(records: Iterable[GameRecord]) -> list[str]:
    """What went wrong in the games that were lost otherwise than on the board."""
    return [f"game {record.game}: {record.detail}" for record in records if record.reason in FORFEITS]


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the result of a match from its log.")
    parser.add_argument("log", type=Path)
    try:
        settings, records = read_log(parser.parse_args().log)
    except (LogError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    sprt = settings.get("sprt")
    standing = Standing.of(records, engine_names(settings), sprt and Sprt(**sprt))
    print("\n".join([*standing.summary_lines(), *forfeit_lines(records)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
