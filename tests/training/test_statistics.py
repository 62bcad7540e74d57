"""The table of what training data look like."""

import sys

import numpy as np
import pytest

from experiments import training_data
from games.xiangqi.fen import parse_fen
from games.xiangqi.packed import pack_fens
from nnue_jax.training.records import RECORD, Header, Shard, shard_path, write_shard
from nnue_jax.training.statistics import best_scale, collect, position_keys
from tests.training.shards import random_records

START = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR"
BARE = "4k4/9/9/9/9/9/9/9/9/R2K5"


def small_shard() -> Shard:
    """White wins the first game; the second has no record; Black wins the third; the fourth is a draw."""
    records = np.zeros(6, RECORD)
    fens = [f"{START} w", f"{START} b", f"{START} w", f"{BARE} b", f"{BARE} b", f"{BARE} w"]
    records["packed"] = pack_fens(fens)
    records["result"] = [1, -1, 1, 1, 1, 0]
    records["score"] = [10, -20, 30, 1000, 2000, 0]
    records["ply"] = [8, 9, 20, 41, 43, 100]
    records["depth"] = [5, 6, 7, 8, 9, 10]
    return Shard(records, np.array([3, 0, 2, 1]), Header(4, 6, {"searches": 9}))


def test_sums():
    statistics = collect([small_shard(), small_shard()])
    assert (statistics.shards, statistics.games, statistics.positions) == (2, 8, 12)
    assert statistics.game_results.tolist() == [2, 2, 2]
    assert statistics.white_results.tolist() == [4, 2, 6]
    assert statistics.scores.sum(axis=1).tolist() == [2, 2, 8]
    assert {n: c for n, c in enumerate(statistics.pieces.tolist()) if c} == {32: 6, 3: 6}
    assert statistics.numbers == {"searches": 18}
    assert statistics.duplicates == 12 - 4  # both sides to move of the start position, and of the other


def test_keys_are_those_of_the_positions():
    fens = [f"{START} w", f"{START} b", f"{BARE} w"]
    assert position_keys(pack_fens(fens)).tolist() == [parse_fen(fen).position["key"][0] for fen in fens]


def test_scale_is_found():
    """Points that follow a curve of scale 730 exactly."""
    scores = np.arange(-3000, 3001, 10)
    counts = np.zeros((3, 65536), np.int64)
    wins = 1 / (1 + np.exp(-scores / 730))
    counts[2, scores + 32768] = np.round(1e6 * wins)
    counts[0, scores + 32768] = np.round(1e6 * (1 - wins))
    scale, error = best_scale(counts)
    assert scale == 730
    assert error == pytest.approx(np.mean(wins * (1 - wins)), rel=1e-3)


def test_table(tmp_path, monkeypatch, capsys):
    shard = small_shard()
    write_shard(shard_path(tmp_path, 0), shard.records, shard.game_lengths, shard.header.numbers)
    write_shard(shard_path(tmp_path, 1), random_records(50), numbers={"searches": 60})
    monkeypatch.setattr(sys, "argv", ["training_data", "stats", str(tmp_path)])
    assert training_data.main() == 0
    rows = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if not line.startswith(" "))
    assert rows["positions"].split()[0] == "56,"
    assert rows["searches"].split() == ["69"]
    assert rows["pieces on the board"].split()[-1] == "32"
    assert len(rows["depth"].split()) == len(rows["score"].split()) == 7


def test_table_without_positions():
    assert collect([]).lines() == ["0 shards without a position"]
