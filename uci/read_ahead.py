"""Reading on a thread of its own: what was read waits for those who need it, and nobody hangs in a read."""

import queue
import threading
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

ITEMS_AHEAD = 8
PERIOD_S = 0.02  # in which those who wait look whether that makes sense any more

Item = TypeVar("Item")


class _End:
    """Stands behind the last item."""

    def __init__(self, error: BaseException | None = None):
        self.error = error  # raised instead of an item


class ReadAhead(Generic[Item]):
    """The items of an iterator, which another thread takes from it, a few in advance.

    To be used by one thread at a time, in a `with`, at the end of which reading ends.
    """

    def __init__(self, items: Iterable[Item]):
        self._queue: queue.Queue[Any] = queue.Queue(ITEMS_AHEAD)
        self._next: Item | _End | None = None  # taken from the queue, but not from here
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(items,), name="reader", daemon=True)

    def __enter__(self) -> "ReadAhead[Item]":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._closed.set()  # the thread is not waited for: it may be in a read that never returns

    def peek(self, timeout_s: float) -> Item | None:
        """The next item, if it is there within a time; it stays where it is."""
        if self._next is None:
            try:
                self._next = self._queue.get(timeout=timeout_s)
            except queue.Empty:
                return None
        return None if isinstance(self._next, _End) else self._next

    def take(self) -> Item | None:
        """The next item, None if there are no more; raises what the iterator raised."""
        while self.peek(PERIOD_S) is None:
            if isinstance(self._next, _End):
                if self._next.error is not None:
                    raise self._next.error
                return None
        item, self._next = self._next, None
        return item

    def _read(self, items: Iterable[Item]) -> None:
        """Body of the thread."""
        try:
            for item in items:
                self._put(item)
                if self._closed.is_set():
                    return
            self._put(_End())
        except BaseException as error:
            self._put(_End(error))

    def _put(self, item: Item | _End) -> None:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=PERIOD_S)
            except queue.Full:
                continue
            return
