"""Files of positions for tests of the commands that read them, and reading what these write."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def write_parquet(path: Path, texts: list, kind=None, name: str = "fen") -> Path:
    table = pa.table({"number": list(range(len(texts))), name: pa.array(texts, kind or pa.string())})
    pa.parquet.write_table(table, path, row_group_size=70)
    return path


def read_records(path: Path) -> list[dict]:
    """All rows of a file, by column name; the values of CSV are texts."""
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))
