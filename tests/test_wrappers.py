"""Evaluators around evaluators: what they give, and what they ask of the one inside."""

import threading
import time

import numpy as np
import pytest

from games.xiangqi import START_FEN
from games.xiangqi.geometry import CANNON, FIRST_OF_KIND, PIECES_PER_SIDE, ROOK
from games.xiangqi.packed import pack_fens, pack_piece_lists
from nnue_jax.evaluator import Evaluator
from nnue_jax.wrappers import (
    CachedEvaluator,
    CheckedEvaluator,
    ConstantEvaluator,
    DelayedEvaluator,
    DisagreementError,
    RandomEvaluator,
)
from nnue_jax.wrappers.random_outputs import MAX_OUTPUT
from tests.support.games import random_walk

BARE_KINGS = "4k4/9/9/9/9/9/9/9/9/3K5 w - - 0 1"


class CountingEvaluator(RandomEvaluator):
    """Keeps what it was asked."""

    def __init__(self, seed: int = 1):
        super().__init__(seed)
        self.batches: list[np.ndarray] = []

    def outputs(self, packed):
        self.batches.append(packed.copy())
        return super().outputs(packed)


@pytest.fixture(scope="module")
def packed() -> np.ndarray:
    """Positions of games; some occur more than once."""
    return pack_fens([game.fen() for game in random_walk(seed=31, count=600)])


@pytest.fixture(scope="module")
def distinct(packed) -> np.ndarray:
    """Positions that differ in their pieces or the side to move."""
    seen = {(record["square_of"].tobytes(), int(record["side"])): i for i, record in enumerate(packed)}
    return packed[sorted(seen.values())]


def assert_same(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype == np.int32
        assert one.tolist() == other.tolist()


def test_constant(packed):
    assert_same(ConstantEvaluator(3, -4).outputs(packed[:5]), (np.full(5, 3, np.int32), np.full(5, -4, np.int32)))


def test_random_outputs_belong_to_the_position(packed):
    psqt, positional = RandomEvaluator(7).outputs(packed)
    order = np.random.PCG64(1).random_raw(len(packed)).argsort()
    assert_same(RandomEvaluator(7).outputs(packed[order]), (psqt[order], positional[order]))
    for i in (0, 17, 599):
        assert_same(RandomEvaluator(7).outputs(packed[i : i + 1]), (psqt[i : i + 1], positional[i : i + 1]))
    other_psqt, other_positional = RandomEvaluator(8).outputs(packed)
    assert (psqt != other_psqt).mean() > 0.9
    assert (positional != other_positional).mean() > 0.9


def test_random_outputs_are_spread_evenly(distinct):
    for outputs in RandomEvaluator(7).outputs(distinct):
        assert np.abs(outputs).max() <= MAX_OUTPUT
        assert abs(outputs.mean()) < 50
        assert abs(outputs.std() - MAX_OUTPUT / np.sqrt(3)) < 30
        assert len(np.unique(outputs)) > 0.6 * min(len(outputs), 2 * MAX_OUTPUT)
    psqt, positional = RandomEvaluator(7).outputs(distinct)
    assert abs(np.corrcoef(psqt, positional)[0, 1]) < 0.15
    assert abs(np.corrcoef(psqt[1:], psqt[:-1])[0, 1]) < 0.15


def test_random_outputs_do_not_tell_like_pieces_apart(packed):
    swapped = packed.copy()
    for side in range(2):
        for kind in (ROOK, CANNON):
            first = side * PIECES_PER_SIDE + FIRST_OF_KIND[kind]
            swapped["square_of"][:, [first, first + 1]] = packed["square_of"][:, [first + 1, first]]
    assert (swapped != packed).any()
    assert_same(RandomEvaluator(7).outputs(swapped), RandomEvaluator(7).outputs(packed))


def test_random_outputs_depend_on_the_side_to_move(distinct):
    """And by how much depends on the position."""
    other = distinct.copy()
    other["side"] ^= 1
    psqt, other_psqt = RandomEvaluator(7).outputs(distinct)[0], RandomEvaluator(7).outputs(other)[0]
    assert len(np.unique((psqt - other_psqt) % (2 * MAX_OUTPUT + 1))) > 0.5 * len(distinct)


def test_checked_gives_what_both_give(packed):
    checked = CheckedEvaluator(RandomEvaluator(7), CachedEvaluator(RandomEvaluator(7), 10))
    assert_same(checked.outputs(packed), RandomEvaluator(7).outputs(packed))
    assert "checked" in checked.name


@pytest.mark.parametrize("which", [0, 1])
def test_checked_names_the_first_disagreement(which):
    class Wrong(ConstantEvaluator):
        def outputs(self, packed):
            both = super().outputs(packed)
            both[which][1:] = 9
            return both

    wrong = Wrong(1, 2)
    wrong.name = "wrong"
    fens = [START_FEN, "3k5/9/9/9/9/9/9/9/9/4K4 b - - 7 1", BARE_KINGS]
    outputs = ["9 and 2", "1 and 9"][which]
    with pytest.raises(DisagreementError) as error:
        CheckedEvaluator(ConstantEvaluator(1, 2), wrong).evaluate(fens)
    assert str(error.value) == (
        f"Position 1 of 3, '{fens[1]}', has PSQT and positional outputs 1 and 2 by constant, {outputs} by wrong; "
        "expected the same."
    )


@pytest.mark.parametrize("capacity", [1, 2, 50, 10_000])
def test_cached_gives_what_is_inside(packed, capacity):
    inner = CountingEvaluator()
    cached = CachedEvaluator(inner, capacity)
    rng = np.random.default_rng(5)
    asked = 0
    for _ in range(40):
        chosen = packed[rng.integers(0, len(packed), rng.integers(0, 60))]
        asked += len(chosen)
        assert_same(cached.outputs(chosen), RandomEvaluator(1).outputs(chosen))
        assert len(cached) <= capacity
    assert cached.hits + cached.misses == asked
    assert cached.misses == sum(map(len, inner.batches))
    assert min(map(len, inner.batches)) > 0


def test_cached_asks_once_for_each_position(distinct):
    inner = CountingEvaluator()
    cached = CachedEvaluator(inner, len(distinct))
    doubled = np.concatenate([distinct[::2], distinct, distinct])
    for _ in range(3):
        assert_same(cached.outputs(doubled), RandomEvaluator(1).outputs(doubled))
    (batch,) = inner.batches
    assert len(batch) == len(distinct) == cached.misses == len(cached)
    assert cached.hits == 3 * len(doubled) - len(distinct)


def test_cached_tells_positions_apart_by_side_and_pieces():
    inner = CountingEvaluator()
    cached = CachedEvaluator(inner, 100)
    lists = pack_fens([START_FEN, START_FEN.replace(" w ", " b "), BARE_KINGS])
    cached.outputs(lists)
    assert cached.misses == 3
    same = lists.copy()
    same["rule60"] = 50
    same["in_check"] = 1
    cached.outputs(same)
    assert (cached.misses, cached.hits) == (3, 3)


def test_cached_forgets_what_was_not_used_for_longest(distinct):
    inner = CountingEvaluator()
    cached = CachedEvaluator(inner, 3)
    a, b, c, d = (distinct[i : i + 1] for i in range(4))
    for position in (a, b, c, a, d):
        cached.outputs(position)
    assert cached.misses == 4
    for position in (a, c, d):
        cached.outputs(position)
    assert cached.misses == 4
    cached.outputs(b)
    assert cached.misses == 5


def test_cached_by_several_threads(packed):
    cached = CachedEvaluator(RandomEvaluator(1), 100)
    expected = RandomEvaluator(1).outputs(packed)
    failures = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            chosen = rng.integers(0, len(packed), 80)
            psqt, positional = cached.outputs(packed[chosen])
            if (psqt != expected[0][chosen]).any() or (positional != expected[1][chosen]).any():
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert cached.hits + cached.misses == 4 * 100 * 80
    assert len(cached) <= 100


def test_delayed_sleeps_and_gives_what_is_inside(packed, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    expected = RandomEvaluator(1).outputs(packed)
    assert_same(DelayedEvaluator(RandomEvaluator(1), latency_ms=20).outputs(packed), expected)
    assert_same(DelayedEvaluator(RandomEvaluator(1), latency_ms=20, positions_per_s=1000).outputs(packed), expected)
    assert slept == pytest.approx([0.02, 0.02 + 0.6])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CachedEvaluator(RandomEvaluator(1), 0), "0 positions"),
        (lambda: DelayedEvaluator(RandomEvaluator(1), -1), "-1 ms"),
        (lambda: DelayedEvaluator(RandomEvaluator(1), 1, 0), "0 positions/s"),
    ],
)
def test_impossible_wrappers_are_refused(make, words):
    with pytest.raises(ValueError, match=f"{words}.*; expected"):
        make()


@pytest.mark.parametrize(
    "evaluator",
    [
        ConstantEvaluator(),
        RandomEvaluator(1),
        CachedEvaluator(RandomEvaluator(1), 10),
        CheckedEvaluator(RandomEvaluator(1), RandomEvaluator(1)),
        DelayedEvaluator(RandomEvaluator(1), 0),
    ],
    ids=lambda evaluator: evaluator.name,
)
def test_all_are_evaluators(evaluator):
    assert isinstance(evaluator, Evaluator)
    assert evaluator.device
    assert 1 <= evaluator.preferred_batch <= evaluator.maximum_batch
    assert len(evaluator.evaluate([START_FEN, BARE_KINGS])) == 2
    assert len(evaluator.evaluate([])) == 0
    lists = pack_fens([START_FEN])
    assert len(evaluator.evaluate(pack_piece_lists(lists["square_of"], lists["side"]))) == 1
