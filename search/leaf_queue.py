"""The queue between searchers and a batched evaluator.

Worker threads hand in what their groups of searchers wait for, and go on with another group. A calling thread takes
whatever is queued and has it evaluated at once; it never waits for more. So a lone searcher makes progress as fast
as the device allows, and batches grow with the number of searchers.

A CPU is no such device: there every worker thread evaluates what it hands in, at once.
"""

import queue
import threading
from collections import deque
from dataclasses import dataclass, fields

import numpy as np

from nnue_jax.evaluator import Evaluator
from search.batching import halves

IN_FLIGHT = 2  # batches of one caller on the device: one is computed while the next one travels
CLOSE_S = 5.0  # that a device gets for what is queued when nobody wants it any more
STOP_PERIOD_S = 0.005  # in which a thread that waits for a batch looks whether it is to stop


class EvaluationFailure(RuntimeError):
    """The device has failed; the message is a sentence."""


@dataclass(frozen=True)
class Telemetry:
    """What was asked of a batched evaluator, and what became of it.

    batches, positions   that were evaluated
    padded               positions that the device computed, with those that fill batches up
    guesses              positions that were evaluated without a searcher waiting for them
    guess_hits           those of them that a searcher asked for later
    cache_hits           values that the evaluation cache had, guessed or not
    waiting_s            time that worker threads waited for batches, summed over threads
    """

    batches: int = 0
    positions: int = 0
    padded: int = 0
    guesses: int = 0
    guess_hits: int = 0
    cache_hits: int = 0
    waiting_s: float = 0.0

    def __add__(self, other: "Telemetry") -> "Telemetry":
        return Telemetry(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def mean_batch(self) -> float:
        return self.positions / max(1, self.batches)

    @property
    def fill(self) -> float:
        """Share of what the device computed that was asked for."""
        return self.positions / max(1, self.padded)

    @property
    def used(self) -> int:
        """Evaluations that some searcher has taken."""
        return self.positions - self.wasted

    @property
    def wasted(self) -> int:
        return self.guesses - self.guess_hits

    def __str__(self) -> str:
        return (
            f"batches {self.batches} mean {self.mean_batch:.1f} fill {100 * self.fill:.0f} % evaluations used "
            f"{self.used} wasted {self.wasted} from cache {self.cache_hits} waited {1000 * self.waiting_s:.0f} ms"
        )


class Ticket:
    """A batch that was handed in; `wait` for its outputs."""

    def __init__(self, packed: np.ndarray, outputs: np.ndarray):
        self.packed = packed
        self.outputs = outputs
        self.failure: EvaluationFailure | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def complete(self, failure: EvaluationFailure | None = None) -> None:
        self.failure = failure
        self._done.release()

    def settle(self, timeout_s: float = -1) -> bool:
        """Whether the memory of the batch is no longer used."""
        if not self._done.acquire(timeout=timeout_s):
            return False
        self._done.release()
        return True

    def wait(self, timeout_s: float = -1) -> bool:
        """Whether the outputs are there; EvaluationFailure if they will never be."""
        if not self.settle(timeout_s):
            return False
        if self.failure is not None:
            raise self.failure
        return True


class LeafQueue:
    """Feeds `evaluator` from any number of threads.

    batch_size: positions in a batch at most; a larger ticket makes several.
    guess_room: size up to which it costs little to fill a batch with guesses; 0 for none.
    """

    def __init__(self, evaluator: Evaluator, batch_size: int = 0, guess_room: int = 0):
        self.evaluator = evaluator
        self.batch_size = min(batch_size or evaluator.preferred_batch, evaluator.maximum_batch)
        self.guess_room = guess_room
        self._tickets: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._telemetry = Telemetry()
        self._thread: threading.Thread | None = None
        if not evaluator.uses_caller:
            self._thread = threading.Thread(target=self._call, name="evaluator", daemon=True)
            self._thread.start()

    def submit(self, packed: np.ndarray, outputs: np.ndarray) -> Ticket:
        """Have [n] PACKED positions evaluated into outputs [2, n] int32; both stay untouched until that is done."""
        ticket = Ticket(packed, outputs)
        if self._thread is None:
            self._finish([ticket], self._begin([ticket]))
        else:
            self._tickets.put(ticket)
        return ticket

    def group_sizes(self, searchers: int) -> list[int]:
        """How a thread divides its searchers: in two, if it can advance one part while the other waits for a device."""
        return [searchers] if self._thread is None else halves(searchers)

    def close(self) -> None:
        """End the calling thread when what is queued is done; a device that has hung keeps it."""
        if self._thread is not None:
            self._tickets.put(None)
            self._thread.join(CLOSE_S)

    def take_telemetry(self) -> Telemetry:
        """Counts since this was asked last."""
        with self._lock:
            taken, self._telemetry = self._telemetry, Telemetry()
        return taken

    def add_telemetry(self, counted: Telemetry) -> None:
        """Count what only those who use the queue know."""
        with self._lock:
            self._telemetry += counted

    def _call(self) -> None:
        """Body of the calling thread."""
        running: deque = deque()
        held: Ticket | None = None  # taken from the queue, but too large for the batch that was begun last
        is_open = True
        while is_open or running or held is not None:
            tickets, held, is_open = self._take(held, is_open, must_wait=not running)
            if tickets:
                running.append((tickets, self._begin(tickets)))
            if running and (len(running) == IN_FLIGHT or not tickets):
                self._finish(*running.popleft())

    def _take(self, held: Ticket | None, is_open: bool, must_wait: bool) -> tuple[list[Ticket], Ticket | None, bool]:
        """Tickets for a batch; one that was taken but must wait for the next batch; whether there may be more."""
        tickets = [] if held is None else [held]
        size = sum(len(ticket.packed) for ticket in tickets)
        while is_open and size < self.batch_size:
            try:
                ticket = self._tickets.get(block=must_wait and not tickets)
            except queue.Empty:
                break
            if ticket is None:
                is_open = False
            elif tickets and size + len(ticket.packed) > self.batch_size:
                return tickets, ticket, is_open
            else:
                tickets.append(ticket)
                size += len(ticket.packed)
        return tickets, None, is_open

    def _begin(self, tickets: list[Ticket]):
        """What the evaluator makes of the tickets' batches, or the exception that it raised."""
        packed = tickets[0].packed if len(tickets) == 1 else np.concatenate([ticket.packed for ticket in tickets])
        parts = [packed[start : start + self.batch_size] for start in range(0, max(1, len(packed)), self.batch_size)]
        for part in parts:
            self.add_telemetry(Telemetry(1, len(part), self.evaluator.padded_size(len(part))))
        try:
            return [self.evaluator.begin(part) for part in parts]
        except Exception as error:
            return error

    def _finish(self, tickets: list[Ticket], begun) -> None:
        try:
            if isinstance(begun, Exception):
                raise begun
            psqt, positional = np.concatenate([self.evaluator.finish(part) for part in begun], axis=1)
        except Exception as error:
            for ticket in tickets:
                ticket.complete(EvaluationFailure(f"The evaluator {self.evaluator.name} failed: {error}"))
            return
        start = 0
        for ticket in tickets:
            end = start + len(ticket.packed)
            ticket.outputs[0] = psqt[start:end]
            ticket.outputs[1] = positional[start:end]
            start = end
            ticket.complete()
