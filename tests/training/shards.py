"""Made-up records, games and folders for tests of training data."""

from pathlib import Path

import numpy as np

from games.xiangqi.packed import pack_fens
from nnue_jax.training.records import RECORD, write_shard
from tests.support.games import random_walk


def random_records(count: int, seed: int = 0) -> np.ndarray:
    """[count] RECORD: positions of random games with numbers that mean nothing, plies and sides as they belong."""
    rng = np.random.default_rng(seed)
    records = np.zeros(count, RECORD)
    records["packed"] = pack_fens([game.fen() for game in random_walk(seed, count)])
    records["score"] = rng.integers(-3000, 3001, count)
    records["result"] = rng.integers(-1, 2, count)
    records["depth"] = rng.integers(0, 20, count)
    records["ply"] = 2 * rng.integers(0, 150, count) + records["packed"]["side"]
    return records


def numbered_games(lengths: list[int], first_number: int = 0) -> np.ndarray:
    """[n] RECORD of games of these lengths; score - 20000 numbers the records, packed.rule60 the games."""
    count = sum(lengths)
    records = np.zeros(count, RECORD)
    records["score"] = np.arange(first_number, first_number + count) - 20000
    records["packed"]["rule60"] = np.repeat(np.arange(len(lengths)), lengths)
    records["ply"] = np.concatenate([np.arange(8, 8 + length) for length in lengths])
    return records


def numbers_of(records: np.ndarray) -> list[int]:
    """What `numbered_games` numbered."""
    return (records["score"].astype(np.int64) + 20000).tolist()


def write_folder(folder: Path, shards: list[list[int]], first_number: int = 0) -> int:
    """A folder of numbered games, their lengths by shard; returns the number after the last."""
    folder.mkdir()
    for i, lengths in enumerate(shards):
        write_shard(folder / f"shard-{i:06}.zst", numbered_games(lengths, first_number), lengths)
        first_number += sum(lengths)
    return first_number
