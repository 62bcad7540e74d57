"""The queue between searchers and a batched evaluator."""

import threading

import numpy as np
import pytest

from games.xiangqi.packed import PACKED, pack_fens
from nnue_jax.wrappers import ConstantEvaluator, RandomEvaluator
from search.leaf_queue import EvaluationFailure, LeafQueue, Telemetry
from tests.random_games import random_fens


@pytest.fixture(scope="module")
def packed() -> np.ndarray:
    return pack_fens(random_fens(200, seed=5))


class GatedEvaluator(RandomEvaluator):
    """Evaluates nothing before `gate` is open, and notes the sizes of its batches."""

    preferred_batch = 64

    def __init__(self):
        super().__init__(seed=1)
        self.gate = threading.Event()
        self.called = threading.Event()
        self.sizes: list[int] = []

    def outputs(self, packed):
        self.sizes.append(len(packed))
        self.called.set()
        self.gate.wait()
        return super().outputs(packed)


def submit(leaf_queue: LeafQueue, packed: np.ndarray):
    outputs = np.zeros((2, len(packed)), np.int32)
    return leaf_queue.submit(packed, outputs), outputs


def test_everybody_gets_the_outputs_of_his_positions(packed):
    evaluator = RandomEvaluator(seed=3)
    expected = np.stack(evaluator.outputs(packed))
    leaf_queue = LeafQueue(evaluator, batch_size=50)
    failures = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(50):
            chosen = random.integers(len(packed), size=random.integers(1, 40))
            ticket, outputs = submit(leaf_queue, packed[chosen])
            assert ticket.wait()
            if not np.array_equal(outputs, expected[:, chosen]):
                failures.append(chosen)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leaf_queue.close()
    assert not failures


def test_what_is_queued_makes_one_batch_up_to_its_size(packed):
    evaluator = GatedEvaluator()
    leaf_queue = LeafQueue(evaluator)
    tickets = [submit(leaf_queue, packed[:10])[0]]
    evaluator.called.wait()  # a lone request is evaluated at once, and the others queue up behind it
    tickets += [submit(leaf_queue, packed[:size])[0] for size in (30, 30, 30, 100, 5)]
    evaluator.gate.set()
    assert all(ticket.wait() for ticket in tickets)
    leaf_queue.close()
    assert evaluator.sizes == [10, 60, 30, 64, 36, 5]


def test_a_ticket_is_not_done_before_its_outputs_are_there(packed):
    evaluator = GatedEvaluator()
    leaf_queue = LeafQueue(evaluator)
    ticket, _ = submit(leaf_queue, packed[:1])
    evaluator.called.wait()
    assert not ticket.wait(0.001)
    evaluator.gate.set()
    assert ticket.wait()
    leaf_queue.close()


class BrokenEvaluator(ConstantEvaluator):
    name = "broken"

    def outputs(self, packed):
        if len(packed) > 3:
            raise RuntimeError("out of memory")
        return super().outputs(packed)


def test_a_failure_is_a_sentence_and_the_queue_goes_on(packed):
    leaf_queue = LeafQueue(BrokenEvaluator(psqt=7), batch_size=64)
    ticket, _ = submit(leaf_queue, packed[:4])
    with pytest.raises(EvaluationFailure, match="evaluator broken failed: out of memory"):
        ticket.wait()
    ticket, outputs = submit(leaf_queue, packed[:3])
    assert ticket.wait()
    assert outputs.tolist() == [[7, 7, 7], [0, 0, 0]]
    leaf_queue.close()


class OwnThreadEvaluator(BrokenEvaluator):
    """Notes which threads call it."""

    uses_caller = True

    def __init__(self):
        super().__init__(psqt=7)
        self.called_by: list[str] = []

    def outputs(self, packed):
        self.called_by.append(threading.current_thread().name)
        return super().outputs(packed)


def test_where_evaluating_takes_the_callers_processor_every_thread_calls_for_itself(packed):
    evaluator = OwnThreadEvaluator()
    leaf_queue = LeafQueue(evaluator, batch_size=5)
    ticket, _ = submit(leaf_queue, packed[:4])
    with pytest.raises(EvaluationFailure, match="out of memory"):
        ticket.wait(0)
    names = ["one", "other"]
    threads = [threading.Thread(target=submit, args=(leaf_queue, packed[:4]), name=name) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ticket, outputs = submit(leaf_queue, packed[:3])
    assert ticket.wait(0)
    assert outputs[0].tolist() == [7, 7, 7]
    here = threading.current_thread().name
    assert sorted(evaluator.called_by) == sorted([here, here, *names])
    assert leaf_queue.group_sizes(9) == [9]
    leaf_queue.close()


def test_a_thread_divides_its_searchers_where_a_device_works_beside_it():
    leaf_queue = LeafQueue(ConstantEvaluator())
    assert leaf_queue.group_sizes(9) == [5, 4]
    leaf_queue.close()


class PaddingEvaluator(ConstantEvaluator):
    batch_sizes = (8, 32)


def test_telemetry(packed):
    leaf_queue = LeafQueue(PaddingEvaluator(), batch_size=64)
    for size in (3, 9):
        assert submit(leaf_queue, packed[:size])[0].wait()
    leaf_queue.add_telemetry(Telemetry(guesses=4, guess_hits=1, cache_hits=2, waiting_s=0.5))
    telemetry = leaf_queue.take_telemetry()
    leaf_queue.close()
    assert telemetry == Telemetry(2, 12, 40, 4, 1, 2, 0.5)
    assert (telemetry.mean_batch, telemetry.fill, telemetry.used, telemetry.wasted) == (6, 0.3, 9, 3)
    assert str(telemetry) == "batches 2 mean 6.0 fill 30 % evaluations used 9 wasted 3 from cache 2 waited 500 ms"
    assert leaf_queue.take_telemetry() == Telemetry()


def test_no_positions():
    leaf_queue = LeafQueue(ConstantEvaluator())
    ticket, _ = submit(leaf_queue, np.zeros(0, PACKED))
    assert ticket.wait()
    leaf_queue.close()


def test_closing_ends_the_threads():
    before = threading.active_count()
    LeafQueue(ConstantEvaluator()).close()
    assert threading.active_count() == before
