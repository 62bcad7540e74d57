"""The transposition table: shared by all threads, without locks.

Buckets of four entries fill one cache line. An entry is two 64-bit words, key XOR data and data; a torn write
gives a key that fits no position, so it is a miss. Layout of the data word:

    bits  0-13  best move         bits 16-23  depth + DEPTH_OFFSET
    bits 14-15  bound             bits 24-39  value + 2**15, mates counted from the node
    bits 40-55  raw evaluation + 2**15
    bits 56-60  generation        bit 61      is or was part of a principal variation

Data zero is an empty entry.
"""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from games.jit import kernel, leaf
from games.memory import HUGE_PAGE_BYTES, address_of, aligned_zeros, load_i64, prefetch, store_i64
from games.xiangqi.line import RULE60_LIMIT
from nnue_jax.value import MAX_PLY
from search.layout import MATE, MATE_IN_MAX_PLY, NO_VALUE
from search.processors import NumaPolicy, bind_current_thread

ENTRIES_PER_BUCKET = 4
BUCKET_BYTES = 64
BUCKET_WORDS = 8
MIB = 1 << 20
MAX_HASH_MIB = 33554432
CLEARED_BYTES_PER_THREAD = 64 * MIB  # at least: less is done before a thread has started

UPPER, LOWER, EXACT = 1, 2, 3

GENERATIONS = 32
AGE_PENALTY = 8  # plies of depth that an entry loses with each generation
DEPTH_OFFSET = 8
HASHFULL_BUCKETS = 250  # a thousand entries

_VALUE_OFFSET = 1 << 15

FIRST_KEYED_RULE60, RULE60_KEY_PLIES = 12, 8


def _rule60_keys() -> np.ndarray:
    """[RULE60_LIMIT + 1] int64, by rule60: zero while the counter is low, then another key every few plies."""
    buckets = np.maximum(np.arange(RULE60_LIMIT + 1) - FIRST_KEYED_RULE60, 0) // RULE60_KEY_PLIES
    keys = np.random.PCG64(60).random_raw(int(buckets.max()) + 1).view(np.int64)
    keys[0] = 0
    return keys[buckets]


RULE60_KEYS = _rule60_keys()
SEEN_KEY = int(np.random.PCG64(61).random_raw(1).view(np.int64)[0])


@leaf
def table_key(key, rule60, occurred):
    """Key of a table entry: what a position is worth depends on its counter, and on whether it was there before."""
    key ^= RULE60_KEYS[min(rule60, RULE60_LIMIT)]
    return key ^ SEEN_KEY if occurred else key


@leaf
def pack(move, bound, depth, value, raw_eval, generation, is_pv):
    return (
        move
        | bound << 14
        | (depth + DEPTH_OFFSET) << 16
        | (value + _VALUE_OFFSET) << 24
        | (raw_eval + _VALUE_OFFSET) << 40
        | generation << 56
        | is_pv << 61
    )


@leaf
def move_of(data):
    return data & 0x3FFF


@leaf
def bound_of(data):
    return (data >> 14) & 3


@leaf
def depth_of(data):
    return ((data >> 16) & 0xFF) - DEPTH_OFFSET


@leaf
def value_of(data):
    return ((data >> 24) & 0xFFFF) - _VALUE_OFFSET


@leaf
def raw_eval_of(data):
    return ((data >> 40) & 0xFFFF) - _VALUE_OFFSET


@leaf
def generation_of(data):
    return (data >> 56) & (GENERATIONS - 1)


@leaf
def is_pv_of(data):
    return (data >> 61) & 1


@leaf
def to_table(value, ply):
    """Mates are stored as distances from the node, not from the root."""
    if value >= MATE_IN_MAX_PLY:
        return value + ply
    if value <= -MATE_IN_MAX_PLY:
        return value - ply
    return value


@leaf
def from_table(value, ply, rule60):
    """Inverse of `to_table`; a mate that comes too late for the 60-move rule is no mate, but almost one."""
    if value >= MATE_IN_MAX_PLY:
        return value - ply if MATE - value <= RULE60_LIMIT - rule60 else MATE_IN_MAX_PLY - 1
    if value <= -MATE_IN_MAX_PLY:
        return value + ply if MATE + value <= RULE60_LIMIT - rule60 else 1 - MATE_IN_MAX_PLY
    return value


@leaf
def bucket_start(buckets, key):
    """Index of the first word of the bucket of `key`; the high bits choose, so any number of buckets will do."""
    return ((((key >> 33) & 0x7FFFFFFF) * buckets) >> 31) * BUCKET_WORDS


@leaf
def prefetch_bucket(entries, buckets, key):
    prefetch(entries, bucket_start(buckets, key) * 8)


@leaf
def probe(entries, buckets, key):
    """Data word of the position, or 0."""
    start = bucket_start(buckets, key)
    for i in range(start, start + BUCKET_WORDS, 2):
        data = load_i64(entries, i + 1)
        if load_i64(entries, i) ^ data == key and data != 0:
            return data
    return 0


@leaf
def _worth(data, generation):
    age = (generation - generation_of(data)) & (GENERATIONS - 1)
    return depth_of(data) - AGE_PENALTY * age


@leaf
def store(entries, buckets, generation, key, move, bound, depth, value, raw_eval, is_pv):
    """Write an entry; `value` as `to_table` returns it.

    It replaces the position's own entry, or else the least worthy of its bucket. A deep entry of this generation
    is kept against a much shallower bound, and an old move against none.
    """
    start = bucket_start(buckets, key)
    place = start
    worst = 1 << 20
    for i in range(start, start + BUCKET_WORDS, 2):
        data = load_i64(entries, i + 1)
        if data == 0:
            if worst > -(1 << 20):
                worst = -(1 << 20)
                place = i
        elif load_i64(entries, i) ^ data == key:
            if move == 0:
                move = move_of(data)
            if bound != EXACT and depth + 4 + 2 * is_pv <= depth_of(data) and generation_of(data) == generation:
                return
            place = i
            break
        else:
            worth = _worth(data, generation)
            if worth < worst:
                worst = worth
                place = i
    data = pack(move, bound, depth, value, raw_eval, generation, is_pv)
    store_i64(entries, place, key ^ data)
    store_i64(entries, place + 1, data)


@kernel
def hashfull_kernel(entries, buckets, generation, any_generation):
    """Entries per thousand, in the first thousand, that were written in this generation, or in any."""
    sample = min(HASHFULL_BUCKETS, buckets)
    used = 0
    for i in range(0, sample * BUCKET_WORDS, 2):
        data = load_i64(entries, i + 1)
        if data != 0 and (any_generation or generation_of(data) == generation):
            used += 1
    return used * 1000 // (sample * ENTRIES_PER_BUCKET)


@kernel
def table_move_kernel(entries, buckets, key):
    """Best move noted for a position, or NO_MOVE."""
    return move_of(probe(entries, buckets, key))


class HashTableError(ValueError):
    """A table size that cannot be had; the message is a sentence."""


def machine_memory_mib() -> int | None:
    """Memory of the machine in MiB, or None if the system does not tell."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    memory_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
    return memory_mib if memory_mib > 0 else None


def slice_bounds(table_bytes: int, slices: int) -> list[int]:
    """Offsets in bytes at which `slices` about equal slices begin and, last, end; no slice shares a page."""
    inner = (table_bytes * i // slices // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES for i in range(1, slices))
    return [0, *inner, table_bytes]


class TranspositionTable:
    """Memory of a table of `hash_mib` MiB, on huge pages where the system gives them."""

    def __init__(self, hash_mib: int):
        if not 1 <= hash_mib <= MAX_HASH_MIB:
            raise HashTableError(f"The hash size is {hash_mib} MiB; expected 1 to {MAX_HASH_MIB}.")
        memory_mib = machine_memory_mib()
        if memory_mib is not None and hash_mib > memory_mib:
            # Some systems hand out what they do not have, and end the program when it makes use of it.
            raise HashTableError(
                f"The hash size is {hash_mib} MiB, but the memory of this machine is {memory_mib} MiB; "
                f"expected 1 to {memory_mib}."
            )
        try:
            self.words = aligned_zeros(hash_mib * MIB // 8, np.int64)
        except (OSError, ValueError, OverflowError, MemoryError) as error:
            raise HashTableError(f"A hash table of {hash_mib} MiB cannot be allocated ({error}).") from error
        self.hash_mib = hash_mib
        self.buckets = self.words.size // BUCKET_WORDS
        self.generation = 0

    def new_search(self) -> None:
        """Let the entries written so far age."""
        self.generation = (self.generation + 1) % GENERATIONS

    def clear(self, policy: NumaPolicy | None = None, threads: int = 1) -> None:
        """Empty the table.

        A large one is cleared in slices by up to `threads` threads at once, each on its node if `policy` binds so
        many search threads. The system places a page where it is first touched, so clearing a fresh table spreads it
        over the nodes. PolicyError if a thread cannot be bound.
        """
        slices = max(1, min(threads, self.words.nbytes // CLEARED_BYTES_PER_THREAD))
        bounds = slice_bounds(self.words.nbytes, slices)
        processors = (None,) * slices if policy is None else policy.processors_of_threads(threads)[:slices]
        if processors == (None,):
            self._clear_slice(0, self.words.nbytes)
        else:
            with ThreadPoolExecutor(slices) as pool:
                cleared = [
                    pool.submit(self._clear_slice, *ends, where)
                    for ends, where in zip(pairwise(bounds), processors, strict=True)
                ]
            for task in cleared:
                task.result()
        self.generation = 0

    def _clear_slice(self, start: int, end: int, processors: tuple[int, ...] | None = None) -> None:
        """Zero the bytes from `start` to `end`, on these processors if any are given."""
        if processors is not None:
            bind_current_thread(processors)
        ctypes.memset(address_of(self.words) + start, 0, end - start)  # releases the GIL

    def hashfull(self, any_generation: bool = False) -> int:
        """Entries per thousand written in the present generation, or in any."""
        return int(hashfull_kernel(address_of(self.words), self.buckets, self.generation, any_generation))

    def move_at(self, key: int) -> int:
        """Best move noted for the position with this key, or NO_MOVE; it may be illegal."""
        return int(table_move_kernel(address_of(self.words), self.buckets, key))

    def attach(self, searcher) -> None:
        """Make a SEARCHER record use this table."""
        searcher["tt_entries"] = address_of(self.words)
        searcher["tt_buckets"] = self.buckets
        searcher["tt_generation"] = self.generation


assert NO_VALUE + _VALUE_OFFSET < 1 << 16 and MAX_PLY + DEPTH_OFFSET < 1 << 8
