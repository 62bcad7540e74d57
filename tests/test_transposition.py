"""The transposition table: what goes in comes out, and nothing else does."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.jit import kernel
from games.memory import HUGE_PAGE_BYTES, address_of
from nnue_jax.value import MAX_PLY
from search import transposition as tt
from search.layout import MATE, MATE_IN_MAX_PLY, MAX_DEPTH, NO_VALUE
from search.processors import NumaPolicy, PolicyError

VALUES = st.integers(-NO_VALUE, NO_VALUE)


@kernel
def pack_kernel(move, bound, depth, value, raw_eval, generation, is_pv, out):
    data = tt.pack(move, bound, depth, value, raw_eval, generation, is_pv)
    out[0] = tt.move_of(data)
    out[1] = tt.bound_of(data)
    out[2] = tt.depth_of(data)
    out[3] = tt.value_of(data)
    out[4] = tt.raw_eval_of(data)
    out[5] = tt.generation_of(data)
    out[6] = tt.is_pv_of(data)


@kernel
def store_kernel(entries, buckets, generation, key, move, bound, depth, value, raw_eval, is_pv):
    tt.store(entries, buckets, generation, key, move, bound, depth, value, raw_eval, is_pv)


@kernel
def probe_kernel(entries, buckets, key):
    return tt.probe(entries, buckets, key)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_mate_beyond_the_60_move_rule_is_none(sign):
    mate_in_20_plies = sign * (MATE - 20)
    assert tt.from_table.py_func(mate_in_20_plies, 0, 100) == mate_in_20_plies
    assert tt.from_table.py_func(mate_in_20_plies, 0, 101) == sign * (MATE_IN_MAX_PLY - 1)


def test_the_key_depends_on_counter_and_occurrence():
    key = 0x1234567890ABCDEF
    keys = [int(tt.table_key.py_func(key, rule60, False)) for rule60 in range(200)]
    assert keys[0] == keys[10] == key, "a low counter is as good as none"
    assert len(set(keys)) > 10
    assert keys[120] == keys[199]
    assert int(tt.table_key.py_func(key, 0, True)) not in keys


FIELDS = st.tuples(
    st.integers(0, (1 << 14) - 1),
    st.integers(1, 3),
    st.integers(-1, MAX_DEPTH),
    VALUES,
    VALUES,
    st.integers(0, tt.GENERATIONS - 1),
    st.integers(0, 1),
)


@given(FIELDS)
def test_every_field_survives_packing(fields):
    out = np.zeros(7, np.int64)
    pack_kernel(*fields, out)
    assert tuple(out.tolist()) == fields


@pytest.mark.parametrize("ply", [0, 1, 17, MAX_PLY - 1])
@pytest.mark.parametrize("value", [0, 500, -500, MATE - 20, -MATE + 20, MATE_IN_MAX_PLY - 1, 1 - MATE_IN_MAX_PLY])
def test_mates_are_stored_as_distances_from_the_node(ply, value):
    stored = tt.to_table.py_func(value, ply)
    assert tt.from_table.py_func(stored, ply, -MATE) == value or abs(value) + ply > MATE
    if abs(value) >= MATE_IN_MAX_PLY:
        assert abs(stored) == abs(value) + ply
    else:
        assert stored == value


class Table:
    """A one-MiB table with friendlier calls."""

    def __init__(self):
        self.table = tt.TranspositionTable(1)
        self.place = (address_of(self.table.words), self.table.buckets)

    def store(self, key, move=5, bound=tt.EXACT, depth=3, value=7, raw_eval=9, is_pv=0):
        store_kernel(*self.place, self.table.generation, key, move, bound, depth, value, raw_eval, is_pv)

    def probe(self, key):
        return probe_kernel(*self.place, key)


def keys(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(-(2**63), 2**63, count).tolist()


def test_probe_finds_what_was_stored_and_nothing_else():
    table = Table()
    stored = keys(2000)
    for number, key in enumerate(stored):
        table.store(key, move=number & 0x3FFF)
    found = [table.probe(key) for key in stored]
    assert sum(data != 0 for data in found) > 1990
    assert all(data == 0 or tt.move_of.py_func(data) == number & 0x3FFF for number, data in enumerate(found))
    assert not any(table.probe(key) for key in keys(2000, seed=1))


def test_a_torn_entry_is_a_miss():
    table = Table()
    (key,) = keys(1)
    table.store(key)
    words = table.table.words
    data_word = np.flatnonzero(words)[1]
    words[data_word] ^= 1 << 30
    assert table.probe(key) == 0


def test_an_upper_bound_without_a_move_keeps_the_old_move():
    table = Table()
    (key,) = keys(1)
    table.store(key, move=77, depth=3)
    table.store(key, move=0, bound=tt.UPPER, depth=9)
    assert tt.move_of.py_func(table.probe(key)) == 77


def test_a_deep_entry_is_kept_against_a_shallow_bound_and_replaced_by_an_exact_one():
    table = Table()
    (key,) = keys(1)
    table.store(key, depth=20, bound=tt.LOWER)
    table.store(key, depth=2, bound=tt.UPPER)
    assert tt.depth_of.py_func(table.probe(key)) == 20
    table.store(key, depth=2, bound=tt.EXACT)
    assert tt.depth_of.py_func(table.probe(key)) == 2


def test_old_and_shallow_entries_are_replaced_first():
    table = Table()
    bucket = [(1 << 62) + n for n in range(5)]  # keys of one bucket: only low bits differ
    table.store(bucket[0], depth=12)
    table.table.new_search()
    table.table.new_search()
    for key, depth in zip(bucket[1:4], (9, 8, 10), strict=True):
        table.store(key, depth=depth)
    table.store(bucket[4], depth=1)
    assert [table.probe(key) != 0 for key in bucket] == [False, True, True, True, True]


def test_hashfull_counts_the_present_generation():
    table = Table()
    assert table.table.hashfull() == 0
    for key in keys(40_000):
        table.store(key)
    assert 400 < table.table.hashfull() < 700  # 40,000 keys in 65,536 places
    table.table.new_search()
    assert table.table.hashfull() == 0
    table.table.clear()
    assert not table.table.words.any()


def test_hashfull_of_any_generation_counts_what_is_left_of_older_ones():
    table = Table()
    for key in keys(20_000):
        table.store(key)
    old = table.table.hashfull()
    table.table.new_search()
    for key in keys(20_000, seed=1):
        table.store(key)
    new, both = table.table.hashfull(), table.table.hashfull(any_generation=True)
    assert 200 < old < both
    assert 200 < new < both <= old + new
    table.table.clear()
    assert table.table.hashfull(any_generation=True) == 0


@pytest.mark.parametrize("hash_mib", [0, -1, tt.MAX_HASH_MIB + 1])
def test_impossible_sizes_are_refused(hash_mib):
    with pytest.raises(tt.HashTableError, match=str(hash_mib)):
        tt.TranspositionTable(hash_mib)


def test_more_than_the_memory_of_the_machine_is_refused_before_it_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(tt, "machine_memory_mib", lambda: 2)
    monkeypatch.setattr(tt, "aligned_zeros", lambda words, dtype: asked.append(words) or np.zeros(words, dtype))
    with pytest.raises(tt.HashTableError, match=r"3 MiB.* 2 MiB.*\.$"):
        tt.TranspositionTable(3)
    assert not asked
    assert tt.TranspositionTable(2).hash_mib == 2


def test_what_the_system_does_not_give_is_refused(monkeypatch):
    def refuse(_words, _dtype):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(tt, "aligned_zeros", refuse)
    with pytest.raises(tt.HashTableError, match=r"7 MiB.*Cannot allocate memory"):
        tt.TranspositionTable(7)


def test_the_machine_has_memory():
    memory_mib = tt.machine_memory_mib()
    assert memory_mib is None or 64 < memory_mib < tt.MAX_HASH_MIB


@pytest.mark.parametrize("hash_mib", [0, tt.MAX_HASH_MIB])
def test_an_engine_keeps_its_table_where_another_cannot_be_had(engine, hash_mib):
    table = engine.table
    with pytest.raises(tt.HashTableError, match=str(hash_mib)):
        engine.set_hash(hash_mib)
    assert engine.table is table


@given(st.integers(1, 64), st.integers(1, 5000), st.integers(0, HUGE_PAGE_BYTES // tt.MIB - 1))
def test_slices_cover_the_table_and_share_no_page(slices, huge_pages, mib):
    table_bytes = (slices + huge_pages) * HUGE_PAGE_BYTES + mib * tt.MIB
    bounds = tt.slice_bounds(table_bytes, slices)
    assert len(bounds) == slices + 1
    assert bounds[0] == 0
    assert bounds[-1] == table_bytes
    assert all(bound % HUGE_PAGE_BYTES == 0 for bound in bounds[:-1])
    sizes = [end - start for start, end in pairwise(bounds)]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) < 3 * HUGE_PAGE_BYTES


class Clearing:
    """A full table of 17 MiB, at least 4 MiB of which a thread clears, and what its threads are bound to."""

    def __init__(self, monkeypatch):
        self.bound = []
        monkeypatch.setattr(tt, "CLEARED_BYTES_PER_THREAD", 4 * tt.MIB)
        monkeypatch.setattr(tt, "bind_current_thread", self._bind)
        self.table = tt.TranspositionTable(17)
        self.table.words[:] = -1
        self.table.new_search()

    def _bind(self, processors):
        assert threading.current_thread() is not threading.main_thread(), "a caller's binding could not be undone"
        self.bound.append(processors)

    def clear(self, *arguments):
        self.table.clear(*arguments)
        assert not self.table.words.any()
        assert self.table.generation == 0


@pytest.fixture
def clearing(monkeypatch):
    return Clearing(monkeypatch)


TWO_NODES = ((0, 1), (2, 3))


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 100])
def test_any_number_of_threads_clears_all(clearing, threads):
    clearing.clear(None, threads)
    clearing.table.words[:] = -1
    clearing.clear(NumaPolicy("none", TWO_NODES), threads)
    assert clearing.bound == []


@pytest.mark.parametrize(("threads", "by_node"), [(1, [1, 0]), (2, [1, 1]), (3, [2, 1]), (4, [2, 2]), (100, [2, 2])])
def test_the_slices_are_cleared_on_the_nodes_of_the_search_threads(clearing, threads, by_node):
    clearing.clear(NumaPolicy("system", TWO_NODES, 1), threads)
    assert [clearing.bound.count(node) for node in TWO_NODES] == by_node


def test_a_policy_that_binds_many_threads_leaves_few_alone(clearing):
    policy = NumaPolicy("auto", TWO_NODES, 5)
    clearing.clear(policy, 4)
    assert clearing.bound == []
    clearing.clear(policy, 5)
    assert sorted(clearing.bound) == sorted([*TWO_NODES, *TWO_NODES])


def test_a_thread_that_cannot_be_bound_tells(clearing, monkeypatch):
    def refuse(_processors):
        raise PolicyError("Not there.")

    monkeypatch.setattr(tt, "bind_current_thread", refuse)
    with pytest.raises(PolicyError, match="Not there"):
        clearing.clear(NumaPolicy("system", TWO_NODES, 1), 4)


def test_a_small_table_is_cleared_without_further_threads(monkeypatch):
    monkeypatch.setattr(tt, "ThreadPoolExecutor", None)
    table = tt.TranspositionTable(127)
    table.words[-1] = 1
    table.clear(None, 8)
    assert not table.words[-1]
