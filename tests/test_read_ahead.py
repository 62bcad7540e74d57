"""Reading on another thread: nothing is lost, and nobody waits for what does not come."""

import threading
import time
from itertools import count

import pytest

from uci.read_ahead import ITEMS_AHEAD, ReadAhead

TIMEOUT_S = 60


def taken_from(items) -> list:
    with ReadAhead(items) as reader:
        return list(iter(reader.take, None))


def test_items_come_in_order():
    assert taken_from(range(1, 1000)) == list(range(1, 1000))


def test_the_end_may_be_asked_for_again():
    with ReadAhead([1]) as reader:
        assert [reader.take() for _ in range(3)] == [1, None, None]
        assert reader.peek(0.0) is None


def test_what_is_seen_in_advance_stays():
    with ReadAhead([1, 2]) as reader:
        assert [reader.peek(TIMEOUT_S), reader.peek(0.0), reader.take(), reader.take()] == [1, 1, 1, 2]


def test_few_items_are_taken_in_advance():
    read = []
    with ReadAhead(read.append(n) or n for n in range(1, 100)) as reader:
        for number in iter(reader.take, None):
            time.sleep(0.001)
            assert len(read) <= number + ITEMS_AHEAD + 1
    assert len(read) == 99


def test_an_exception_comes_behind_the_items():
    def items():
        yield from range(1, 10)
        raise ValueError("no more")

    with ReadAhead(items()) as reader:
        assert [reader.take() for _ in range(9)] == list(range(1, 10))
        assert reader.peek(TIMEOUT_S) is None
        with pytest.raises(ValueError, match="no more"):
            reader.take()


def reader_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reader"]


def wait_for_readers() -> None:
    for thread in reader_threads():
        thread.join(TIMEOUT_S)
    assert not reader_threads()


def test_nobody_waits_for_a_read_that_does_not_return():
    released = threading.Event()

    def items():
        yield 1
        released.wait(TIMEOUT_S)

    with ReadAhead(items()) as reader:
        assert reader.take() == 1
        assert reader.peek(0.01) is None
    assert not released.is_set()
    released.set()
    wait_for_readers()


def test_the_thread_ends_when_nobody_takes_what_it_read():
    with ReadAhead(count(1)) as reader:
        reader.take()
        assert reader_threads()
    wait_for_readers()
