"""Reading on another thread: nothing is lost, and nobody waits for what does not come."""

import threading
import time
from itertools import count

import pytest

from uci.read_ahead import ITEMS_AHEAD, read_ahead

TIMEOUT_S = 60


def test_items_come_in_order():
    assert list(read_ahead(range(1000), threading.Event())) == list(range(1000))


def test_few_items_are_taken_in_advance():
    taken = []
    for number in read_ahead((taken.append(n) or n for n in range(100)), threading.Event()):
        time.sleep(0.001)
        assert len(taken) <= number + ITEMS_AHEAD + 2


def test_an_exception_comes_behind_the_items():
    def items():
        yield from range(10)
        raise ValueError("no more")

    found = []
    with pytest.raises(ValueError, match="no more"):
        found.extend(read_ahead(items(), threading.Event()))
    assert found == list(range(10))


def reader_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reader"]


def test_who_waits_for_an_item_is_stopped():
    stopped, released = threading.Event(), threading.Event()

    def items():
        yield 1
        threading.Timer(0.05, stopped.set).start()
        released.wait(TIMEOUT_S)

    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(read_ahead(items(), stopped))
    assert found == [1]
    assert not released.is_set()
    released.set()
    for thread in reader_threads():
        thread.join(TIMEOUT_S)
    assert not reader_threads()


def test_the_thread_ends_when_nobody_takes_what_it_read():
    stopped = threading.Event()
    next(read_ahead(count(), stopped))
    assert reader_threads()
    stopped.set()
    for thread in reader_threads():
        thread.join(TIMEOUT_S)
    assert not reader_threads()
