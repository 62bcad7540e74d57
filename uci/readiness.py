"""When `isready` is answered: in its turn among short commands, but at once while work goes on that may take long."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from uci import output

ANSWER = "readyok"


class Readiness:
    """The questions that wait for their turn, by the numbers of their commands, and whether any has to wait."""

    def __init__(self):
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._is_long = False

    def ask(self, number: int) -> bool:
        """Whether this question was answered; if not, `answer` is to be called when its turn comes."""
        with self._lock:
            if self._is_long:
                output.write(ANSWER)
                return True
            self._waiting.add(number)
            return False

    def answer(self, number: int) -> None:
        """Answer a question whose turn has come, unless it was answered earlier."""
        with self._lock:
            if number in self._waiting:
                self._waiting.remove(number)
                output.write(ANSWER)

    @contextmanager
    def long_work(self) -> Iterator[None]:
        """While it lasts, nobody waits for an answer, neither those who have asked nor those who will."""
        with self._lock:
            self._is_long = True
            output.write(*[ANSWER] * len(self._waiting))
            self._waiting.clear()
        try:
            yield
        finally:
            with self._lock:
                self._is_long = False
