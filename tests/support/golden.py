"""The recorded data of tests/data."""

import json
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
POSITION_FILES = ("perft", "legal_moves", "positions", "features")


def rows(name: str) -> list[dict]:
    """All rows of tests/data/<name>.jsonl."""
    with (DATA / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def all_fens() -> list[str]:
    """The FENs of all files, without repetition."""
    return list(dict.fromkeys(row["fen"] for name in POSITION_FILES for row in rows(name)))
