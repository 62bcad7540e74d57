"""What all evaluators have in common: the forms that positions come in, batches, and outcomes."""

from dataclasses import fields

import numpy as np
import pytest

from games.xiangqi import START_FEN
from games.xiangqi.fen import MAX_RULE60, PositionError
from games.xiangqi.packed import PACKED, pack_fens, position_of
from nnue_jax.evaluator import Evaluations, batches, evaluations
from nnue_jax.value import MAX_STATIC_VALUE
from nnue_jax.win_rate import WinRateModel, model_material
from nnue_jax.wrappers import RandomEvaluator
from tests.support.games import random_walk
from tests.test_reference_evaluator import attacking_material_kernel, blend_kernel, damp_kernel

# The largest outputs of any network: int32 sums over the scale of 16.
LARGEST_OUTPUT = (1 << 31) // 16
IN_CHECK = "3k5/9/9/3R5/9/9/9/9/9/4K4 b - - 3 1"


@pytest.fixture(scope="module")
def fens() -> list[str]:
    return [game.fen() for game in random_walk(seed=77, count=300)] + [IN_CHECK]


@pytest.fixture(scope="module")
def packed(fens) -> np.ndarray:
    return pack_fens(fens)


def small_evaluator(maximum_batch: int) -> RandomEvaluator:
    """Refuses larger batches."""

    class Small(RandomEvaluator):
        def outputs(self, packed):
            assert len(packed) <= maximum_batch
            return super().outputs(packed)

    evaluator = Small(5)
    evaluator.maximum_batch = maximum_batch
    return evaluator


def assert_same(found: Evaluations, expected: Evaluations) -> None:
    for field in fields(Evaluations):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist(), field.name


def forms_of(fens, packed) -> dict:
    """The same positions in all forms that are taken."""
    return {
        "FENs": fens,
        "generated FENs": (fen for fen in fens),
        "array": packed,
        "two-dimensional array": packed.reshape(7, -1),
        "records": iter(packed),
        "arrays": [packed[:1], packed[1:200], packed[200:200], packed[200:]],
        "generated arrays": (packed[i : i + 100] for i in range(0, len(packed), 100)),
    }


@pytest.mark.parametrize("maximum_batch", [1, 7, 300, 301, 1000])
def test_every_form_is_evaluated_alike(fens, packed, maximum_batch):
    expected = evaluations(packed, *RandomEvaluator(5).outputs(packed))
    for positions in forms_of(fens, packed).values():
        assert_same(small_evaluator(maximum_batch).evaluate(positions), expected)


@pytest.mark.parametrize("size", [1, 10, 299, 300, 301, 302])
def test_batches_hold_all_positions_in_order(fens, packed, size):
    for positions in forms_of(fens, packed).values():
        found = list(batches(positions, size))
        assert max(map(len, found)) <= size
        assert np.array_equal(np.concatenate(found), packed)
    assert [len(batch) for batch in batches(packed, size)] == [len(packed[i : i + size]) for i in range(0, 301, size)]


def test_one_fen_is_one_position():
    (batch,) = batches(START_FEN, 100)
    assert np.array_equal(batch, pack_fens([START_FEN]))
    assert len(RandomEvaluator(1).evaluate(START_FEN)) == 1


@pytest.mark.parametrize("positions", [[], iter([]), np.zeros(0, PACKED), [np.zeros(0, PACKED)]])
def test_no_positions(positions):
    found = RandomEvaluator(1).evaluate(positions)
    assert len(found) == 0
    for field in fields(Evaluations):
        assert getattr(found, field.name).dtype == (np.bool_ if field.name == "in_check" else np.int32)


def test_a_bad_fen_is_named():
    with pytest.raises(PositionError, match=r"Position 1, 'nonsense': "):
        RandomEvaluator(1).evaluate([START_FEN, "nonsense"])
    with pytest.raises(PositionError, match=r"Position 3, 'nonsense': "):
        list(batches([START_FEN] * 3 + ["nonsense"], 2))


def test_arrays_are_taken_from_a_stream_one_by_one(packed):
    taken = []
    for batch in batches((taken.append(i) or packed[i : i + 5] for i in range(0, 50, 5)), 5):
        assert len(taken) == batch_number(batch, packed) + 1


def batch_number(batch: np.ndarray, packed: np.ndarray) -> int:
    """Which five of the positions a batch holds."""
    return next(i for i in range(0, 50, 5) if np.shares_memory(batch, packed[i : i + 5])) // 5


def test_a_stream_is_read_batch_by_batch(fens):
    read = []
    given = 0
    for batch in batches((read.append(fen) or fen for fen in fens), 10):
        given += len(batch)
        assert given <= len(read) <= given + 10
    assert read == fens


def some_outputs(count: int) -> np.ndarray:
    """int32 [count]: ordinary outputs, then small, zero and the largest ones."""
    stream = np.random.PCG64(9)
    ordinary = (stream.random_raw(count) % np.uint64(4001)).astype(np.int32) - 2000
    extreme = np.array([0, 1, -1, 30_000, -30_000, LARGEST_OUTPUT, -LARGEST_OUTPUT], np.int32)
    ordinary[: count // 2] = extreme[(stream.random_raw(count // 2) % np.uint64(len(extreme))).astype(int)]
    return ordinary[stream.random_raw(count).argsort()]


MODEL = WinRateModel((10.0, -20.0, 30.0, 400.0), (1.0, 2.0, 3.0, 80.0))


def test_outcomes_equal_their_slow_twins(packed):
    packed = packed.copy()
    packed["rule60"] = np.random.PCG64(3).random_raw(len(packed)) % np.uint64(MAX_RULE60 + 1)
    packed["rule60"][::5] = MAX_RULE60
    psqt, positional = some_outputs(len(packed)), some_outputs(len(packed))[::-1].copy()
    found = evaluations(packed, psqt, positional, MODEL)
    assert found.psqt is psqt
    assert found.positional is positional
    clipped = 0
    for i, record in enumerate(packed):
        result = (found.value[i], found.cp[i], found.win[i], found.draw[i], found.loss[i])
        if record["in_check"]:
            assert found.in_check[i]
            assert result == (0, 0, 0, 0, 0)
            continue
        assert not found.in_check[i]
        position = position_of(record)
        material = attacking_material_kernel(position[0])
        value = damp_kernel(blend_kernel(int(psqt[i]), int(positional[i]), material), int(record["rule60"]))
        rate = MODEL.at(model_material(position[0]))
        assert result == (value, rate.centipawns(value), *rate.win_draw_loss(value))
        clipped += abs(value) == MAX_STATIC_VALUE
    assert 0 < clipped < len(packed) // 2
    assert found.in_check.any()


def test_outcomes_add_up(packed):
    found = RandomEvaluator(2).evaluate(packed)
    total = found.win + found.draw + found.loss
    assert (total[~found.in_check] == 1000).all()
    assert (total[found.in_check] == 0).all()
    assert (np.sign(found.cp) == np.sign(found.value))[np.abs(found.value) > 5].all()
