"""Batches for training against the reference's features, layer stacks and values."""

import numpy as np
import pytest

from games.xiangqi.packed import position_of
from nnue_jax import reference
from nnue_jax.architecture import LAYER_STACKS, PIECE_SQUARES
from nnue_jax.training.features import Batch, make_batch, slots_of, tile_of
from tests.training.data import mirrored, some_records

COUNT = 400


@pytest.fixture(scope="module")
def records() -> np.ndarray:
    return some_records(COUNT)


def rows_of(batch: Batch, number: int) -> list[list[int]]:
    """Sorted features of us and them of a record."""
    slot = int(np.flatnonzero(batch.sample == number)[0])
    return [sorted(batch.features[row, : batch.lengths[row]].tolist()) for row in (2 * slot, 2 * slot + 1)]


def expected_rows(record) -> list[list[int]]:
    position = position_of(record["packed"])[0]
    us = int(position["side"])
    return [reference.piece_square_features(position, us), reference.piece_square_features(position, 1 - us)]


def test_features_are_the_references(records):
    batch = make_batch(records, COUNT)
    for number in range(COUNT):
        assert rows_of(batch, number) == expected_rows(records[number])


def test_a_mirror_image_has_the_same_features(records):
    batch, other = make_batch(records, COUNT), make_batch(mirrored(records), COUNT)
    for number in range(COUNT):
        assert rows_of(batch, number) == rows_of(other, number)


def test_a_tile_has_one_layer_stack(records):
    batch = make_batch(records, COUNT)
    stacks = np.repeat(batch.stack_of_tile, batch.tile)
    for slot in np.flatnonzero(batch.weight):
        position = position_of(records[batch.sample[slot]]["packed"])[0]
        assert stacks[slot] == reference.layer_stack(position)
    assert len(set(stacks[batch.weight > 0].tolist())) > 8


def test_every_record_has_a_slot(records):
    batch = make_batch(records[:300], COUNT)
    used = batch.sample >= 0
    assert sorted(batch.sample[used].tolist()) == list(range(300))
    assert np.array_equal(batch.weight, used.astype(np.float32))
    assert not batch.lengths.reshape(-1, 2)[~used].any()
    assert batch.slots == slots_of(COUNT)


def test_there_is_room_for_one_of_each_stack_and_many_of_one():
    """The worst that may happen to the tiles."""
    size = 256
    records = some_records(2000)
    stacks = np.array([reference.layer_stack(position_of(record["packed"])[0]) for record in records])
    one_of_each = [np.flatnonzero(stacks == stack)[0] for stack in set(stacks.tolist())]
    common = np.flatnonzero(stacks == np.bincount(stacks, minlength=LAYER_STACKS).argmax())
    chosen = records[np.concatenate([one_of_each, np.resize(common, size - len(one_of_each))])]
    assert make_batch(chosen, size).weight.sum() == size


def test_rows_come_by_bucket(records):
    batch = make_batch(records, COUNT)
    bucket = np.where(batch.lengths > 0, batch.features[:, 0].astype(int) // PIECE_SQUARES, -1)
    start = 0
    for number, end in enumerate(batch.bucket_ends):
        assert (bucket[batch.order[start:end]] == number).all()
        start = end
    assert (bucket[batch.order[start:]] == -1).all()
    assert sorted(batch.order.tolist()) == list(range(2 * batch.slots))


def test_targets_and_gain(records):
    batch = make_batch(records, COUNT)
    for slot in np.flatnonzero(batch.weight):
        record = records[batch.sample[slot]]
        position = position_of(record["packed"])[0]
        assert batch.score[slot] == record["score"]
        assert batch.result[slot] == (record["result"] + 1) / 2
        expected = searched_value(position, int(record["packed"]["rule60"]), 2000)
        assert abs(2000 * batch.gain[slot] - expected) < 2.1


def searched_value(position, rule60: int, value: int) -> int:
    """What the search makes of two outputs that agree."""
    counts = reference.count
    kinds = reference.ROOK, reference.CANNON, reference.KNIGHT
    material = sum(
        worth * (counts(position, 0, kind) + counts(position, 1, kind))
        for kind, worth in zip(kinds, (1305, 773, 720), strict=True)
    )
    return int(int(value * (17380 + material) / 20582) * (1 - rule60 / 253))


def test_tiles_waste_little():
    assert [tile_of(size) for size in (64, 1024, 16384, 65536)] == [8, 8, 128, 128]
    assert slots_of(16384) <= 1.13 * 16384


def test_too_many_records_are_refused(records):
    with pytest.raises(ValueError, match="400 positions for a batch of 399"):
        make_batch(records, COUNT - 1)
