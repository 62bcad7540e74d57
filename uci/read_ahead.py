"""Reading on a thread of its own, so that nobody who is to stop hangs in a read."""

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

ITEMS_AHEAD = 4
STOP_PERIOD_S = 0.02  # in which those who wait look whether they are to stop


@dataclass(frozen=True)
class _End:
    """Behind the last item. error: what was raised instead of one."""

    error: BaseException | None = None


def read_ahead(items: Iterable, stopped: threading.Event) -> Iterator:
    """The items, taken from their iterator by another thread, a few of them in advance.

    KeyboardInterrupt when `stopped` is set, even while the iterator is waiting for its input. What the iterator raises
    is raised behind the items before.
    """
    waiting: queue.Queue[Any] = queue.Queue(ITEMS_AHEAD)
    threading.Thread(target=_read, args=(items, stopped, waiting), name="reader", daemon=True).start()
    while not stopped.is_set():
        try:
            item = waiting.get(timeout=STOP_PERIOD_S)
        except queue.Empty:
            continue
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item
    raise KeyboardInterrupt


def _read(items: Iterable, stopped: threading.Event, waiting: queue.Queue) -> None:
    """Body of the thread."""
    try:
        for item in items:
            _put(item, stopped, waiting)
            if stopped.is_set():
                return
        _put(_End(), stopped, waiting)
    except BaseException as error:
        _put(_End(error), stopped, waiting)


def _put(item, stopped: threading.Event, waiting: queue.Queue) -> None:
    while not stopped.is_set():
        try:
            waiting.put(item, timeout=STOP_PERIOD_S)
        except queue.Full:
            continue
        return
