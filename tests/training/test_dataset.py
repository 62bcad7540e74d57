"""Training data in random order: every position once, no validation game among them, the same order every time."""

import numpy as np
import pytest

from nnue_jax.training import dataset
from nnue_jax.training.dataset import TrainingData
from nnue_jax.training.records import RecordsError
from tests.training.shards import numbers_of, write_folder

SHARDS = [[5, 9, 0, 30], [40], [1, 2, 3, 4, 5], [17, 20], [60, 1], [8, 8, 8]] * 5  # 221 positions, 17 games, five times


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path / "data", SHARDS)
    return tmp_path / "data"


def epoch(data: TrainingData, seed: int = 1, number: int = 0, first: int = 0, size: int = 32) -> list[int]:
    batches = list(data.batches(size, seed, number, first))
    assert all(len(batch) == size for batch in batches)
    assert len(batches) == data.batches_per_epoch(size) - first
    return [number for batch in batches for number in numbers_of(batch)]


@pytest.mark.parametrize("limit", [None, 10_000, 400, 100, 1])
def test_every_position_once(folder, limit):
    data = TrainingData([folder], validation_share=0, max_positions=limit)
    assert data.positions == 1105
    assert data.validation_positions == len(data.validation()) == 0
    assert sorted(epoch(data, size=5)) == list(range(1105))
    assert len(set(epoch(data))) == 1105 // 32 * 32


@pytest.mark.parametrize("limit", [None, 300])
def test_order_is_a_function_of_seed_and_epoch(folder, limit):
    data = TrainingData([folder], max_positions=limit)
    first = epoch(data)
    assert epoch(data) == first
    assert epoch(TrainingData([folder], max_positions=limit)) == first
    others = [epoch(data, seed=2), epoch(data, number=1), sorted(first)]
    assert all(other != first for other in others)


@pytest.mark.parametrize("limit", [None, 300])
@pytest.mark.parametrize("first_batch", [1, 8, 9, 10, 33])
def test_taking_up_an_epoch(folder, limit, first_batch):
    data = TrainingData([folder], max_positions=limit)
    assert epoch(data, first=first_batch) == epoch(data)[32 * first_batch :]


def test_batches_stay_as_they_are(folder):
    batches = list(TrainingData([folder]).batches(32, 1, 0))
    assert len({number for batch in batches for number in numbers_of(batch)}) == 32 * len(batches)


def test_memory_is_bounded(folder, monkeypatch):
    sizes = []
    read = dataset._read_parts

    def watched(parts):
        records = read(parts)
        sizes.append(len(records))
        return records

    monkeypatch.setattr(dataset, "_read_parts", watched)
    data = TrainingData([folder], max_positions=300)
    epoch(data)
    assert len(sizes) == -(-data.positions // 300)
    largest_shard = 61
    assert max(sizes) <= 300 + largest_shard
    assert min(sizes) >= 100


def test_blocks_mix_the_shards(folder):
    """A batch has positions from everywhere, not only from neighbouring shards."""
    for batch in TrainingData([folder], max_positions=300).batches(64, 1, 0):
        assert np.ptp(numbers_of(batch)) > 400


def test_memory_without_limit_is_read_once(folder, monkeypatch):
    data = TrainingData([folder])
    first = epoch(data)
    monkeypatch.setattr(dataset, "read_shard", None)
    assert epoch(data) == first


def test_last_games_are_for_validation(folder):
    """Of 85 games 2 % are 1.7, so two, both in the last shard, which has three of eight positions."""
    data = TrainingData([folder])
    assert numbers_of(data.validation()) == list(range(1105 - 16, 1105))
    assert data.positions == 1105 - 16
    assert sorted(epoch(data, size=1)) == list(range(1105 - 16))


def test_validation_takes_whole_shards(folder):
    """A tenth of 85 are 9 games: shards of 3, 2 and 2, and the last two of the five before."""
    data = TrainingData([folder], validation_share=0.1)
    assert numbers_of(data.validation()) == list(range(1105 - 24 - 61 - 37 - 9, 1105))


def test_every_folder_has_validation_games(tmp_path):
    number = write_folder(tmp_path / "a", [[10, 20, 30]])
    write_folder(tmp_path / "b", [[7, 6], [5]], number)
    data = TrainingData([tmp_path / "a", tmp_path / "b"])
    assert numbers_of(data.validation()) == [*range(30, 60), *range(73, 78)]
    assert sorted(epoch(data, size=1)) == [*range(30), *range(60, 73)]


def test_refusals(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordsError, match="has no shards"):
        TrainingData([tmp_path / "empty"])
    with pytest.raises(RecordsError, match="is no folder"):
        TrainingData([tmp_path / "none"])
    with pytest.raises(RecordsError, match="share of validation games is 1"):
        TrainingData([folder], validation_share=1)
    with pytest.raises(RecordsError, match="0 positions in memory"):
        TrainingData([folder], max_positions=0)
