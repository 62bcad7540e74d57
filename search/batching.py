"""How searchers share a batched evaluator: their number, the size of batches, and how much guessing pays.

Nothing here needs more than the standard library, so a handshake can afford it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnue_jax.evaluator import Evaluator
    from search.limits import Limits

MAX_SEARCHERS = 1024  # on one root


@dataclass(frozen=True)
class Batching:
    """searchers: on one root. batch_size: positions at most. guess_room: batches are filled with guesses up to it."""

    searchers: int
    batch_size: int
    guess_room: int


# By the kind of device. In games on a simulated one of 200 µs, 64 searchers beat one by far and were as good as 256;
# the number for a CPU has not been tried in games.
_DEFAULTS = {
    "jax:cpu": Batching(searchers=16, batch_size=512, guess_room=0),
    "other": Batching(searchers=64, batch_size=1024, guess_room=256),
}


def batching_for(evaluator: Evaluator, batch_size: int = 0, searchers: int = 0) -> Batching:
    """What suits the device; numbers that are not 0 replace the default."""
    default = _DEFAULTS.get(evaluator.name, _DEFAULTS["other"])
    batch_size = min(batch_size or default.batch_size, evaluator.maximum_batch)
    return Batching(searchers or default.searchers, batch_size, min(default.guess_room, batch_size))


# Roots that a thread searches at once, by the kind of device. Isolated searchers take 4 MiB each.
_ROOTS_PER_THREAD = {"jax:cpu": 512, "other": 1024}
_ISOLATED_ROOTS_PER_THREAD = {"jax:cpu": 64, "other": 512}

LONG_SEARCH_NODES = 20_000
BYTES_PER_NODE = 32  # two entries
LEAST_TABLE_BYTES, MOST_TABLE_BYTES = 1 << 18, 1 << 24  # of an isolated searcher
DEFAULT_TABLE_BYTES = 1 << 20


def analysis_searchers(evaluator: Evaluator, isolated: bool, threads: int) -> int:
    """Roots that `threads` threads search at once."""
    per_thread = _ISOLATED_ROOTS_PER_THREAD if isolated else _ROOTS_PER_THREAD
    return threads * per_thread.get(evaluator.name, per_thread["other"])


def table_bytes_for(limits: Limits) -> int:
    """Size of the transposition table of an isolated searcher: room for all its nodes, within bounds."""
    if limits.nodes is None:
        return DEFAULT_TABLE_BYTES
    return min(max(limits.nodes * BYTES_PER_NODE, LEAST_TABLE_BYTES), MOST_TABLE_BYTES)


def shares(total: int, parts: int) -> list[int]:
    """`parts` about equal whole numbers that add up to `total`, each at least 1."""
    share, more = divmod(max(total, parts), parts)
    return [share + (part < more) for part in range(parts)]


def halves(searchers: int) -> list[int]:
    """The sizes of two groups, or of one if there is one searcher only."""
    return [size for size in (searchers - searchers // 2, searchers // 2) if size]


def inline_inbox(limits: Limits) -> int:
    """Roots that a thread takes at a time which searches one after the other: outcomes come when all are done."""
    return 4 if limits.nodes is not None and limits.nodes < LONG_SEARCH_NODES else 1
