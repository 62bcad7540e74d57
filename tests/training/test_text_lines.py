"""Training records as lines of text, and back."""

import sys

import numpy as np
import pytest

from experiments import training_data
from games.xiangqi.fen import format_fen
from games.xiangqi.packed import position_of
from nnue_jax.training.records import (
    RecordsError,
    game_lengths_of,
    read_games,
    read_shard,
    shard_path,
    shard_paths,
    write_shard,
)
from nnue_jax.training.text_lines import format_lines, parse_lines, placements
from tests.training.shards import random_records

START = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR"


def run(monkeypatch, *words) -> int:
    monkeypatch.setattr(sys, "argv", ["training_data", *map(str, words)])
    return training_data.main()


def test_fens_are_those_of_the_slow_formatter():
    records = random_records(300)
    for record, line in zip(records, format_lines(records), strict=True):
        packed = record["packed"]
        fen = format_fen(position_of(packed), int(packed["rule60"]), int(record["ply"]))
        assert line.split(" | ")[0] == fen
    assert placements(records["packed"][:0]) == []


def test_numbers_are_from_whites_view():
    lines = [f"{START} w - - 3 10 | 50 | 1.0", f"{START} b - - 3 10 | 50 | 1.0", f"{START} b - - 0 1 | -7 | 0.5"]
    records = parse_lines(lines)
    assert records["score"].tolist() == [50, -50, 7]
    assert records["result"].tolist() == [1, -1, 0]
    assert records["ply"].tolist() == [18, 19, 1]
    assert records["packed"]["side"].tolist() == [0, 1, 1]
    assert records["packed"]["rule60"].tolist() == [3, 3, 0]
    assert format_lines(records) == lines


def test_round_trip():
    records = random_records(500)
    lines = format_lines(records)
    again = parse_lines(lines)
    assert format_lines(again) == lines
    for name in ("score", "ply", "result"):
        assert (again[name] == records[name]).all()
    for name in ("side", "rule60", "in_check"):
        assert (again["packed"][name] == records["packed"][name]).all()
    assert len(parse_lines([])) == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{START} w - - 0 1 | 50", "has 2 fields"),
        (f"{START} w - - 0 1 | 50 | 0.7", "expected a whole number"),
        (f"{START} w - - 0 1 | 5.5 | 1.0", "expected a whole number"),
        (f"{START} w - - 0 1 | 50 | won", "expected a whole number"),
        (f"{START} w - - 0 1 | 32768 | 1.0", "beyond 32767"),
        (f"{START} x - - 0 1 | 50 | 1.0", "side to move is 'x'"),
        ("9/9 w | 50 | 1.0", "has 2 ranks"),
        ("", "has 1 fields"),
    ],
)
def test_refused_lines(line, message):
    with pytest.raises(RecordsError, match=rf"^Line 12, .*{message}"):
        parse_lines([f"{START} w - - 0 1 | 50 | 1.0", line, line], first_number=11)


def test_commands(tmp_path, monkeypatch, capsys):
    """Shards to text and back: the same lines, the same games, whatever the number of lines in a shard."""
    records = random_records(60)
    records["ply"] = np.concatenate([np.arange(20), np.arange(30), np.arange(10)]) * 2 + records["packed"]["side"]
    data, text, copy = tmp_path / "data", tmp_path / "lines.txt", tmp_path / "copy"
    data.mkdir()
    write_shard(shard_path(data, 0), records[:50])
    write_shard(shard_path(data, 1), records[50:])
    assert run(monkeypatch, "to-text", data, "--output", text) == 0
    assert text.read_text().splitlines() == format_lines(records)
    assert run(monkeypatch, "from-text", text, copy, "--positions-per-shard", 7) == 0
    capsys.readouterr()
    assert run(monkeypatch, "to-text", copy) == 0
    assert capsys.readouterr().out == text.read_text()
    lengths = [length for path in shard_paths(copy) for length in read_games(path).game_lengths]
    assert lengths == game_lengths_of(records).tolist()
    assert len(shard_paths(copy)) > 1
    assert np.concatenate([read_shard(path) for path in shard_paths(copy)])["ply"].tolist() == records["ply"].tolist()


def test_command_refusals(tmp_path, monkeypatch, capsys):
    (tmp_path / "lines.txt").write_text("nonsense\n")
    assert run(monkeypatch, "from-text", tmp_path / "lines.txt", tmp_path / "copy") == 1
    assert "Line 1, 'nonsense', has 1 fields" in capsys.readouterr().err
    assert run(monkeypatch, "from-text", tmp_path / "lines.txt", tmp_path) == 1
    assert "is not empty" in capsys.readouterr().err
    assert run(monkeypatch, "to-text", tmp_path) == 1
    assert "has no shards" in capsys.readouterr().err
    assert run(monkeypatch, "stats", tmp_path / "none") == 1
    assert "is no folder" in capsys.readouterr().err
