"""Processors and NUMA policies: what text means, which threads go where, and that binding stays in its thread."""

import os
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search import processors as pr
from search.processors import NumaPolicy, PolicyError

CAN_BIND = hasattr(os, "sched_setaffinity")
needs_binding = pytest.mark.skipif(not CAN_BIND, reason="the system cannot bind threads")

EIGHT = tuple(range(8))
TWO_NODES = ((0, 1, 2, 3), (4, 5, 6, 7))


@pytest.fixture
def tree(tmp_path):
    """Makes a folder as the system shows it, from the text of each node's list."""

    def make(lists: dict[str, str]):
        for name, text in lists.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "cpulist").write_text(text)
        (tmp_path / "possible").write_text("0-1\n")
        (tmp_path / "nodes_of_old").mkdir()
        return tmp_path

    return make


@pytest.fixture
def two_nodes(tree):
    return tree({"node0": "0-3\n", "node1": "4-7\n"})


@pytest.fixture
def can_bind(monkeypatch):
    """A system that binds threads, and notes to what, without doing it."""
    bound = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, where: bound.append((pid, where)), raising=False)
    return bound


def test_sets_of_processors_are_written_as_ranges():
    assert pr.format_processors([8, 0, 1, 2, 3, 11, 10]) == "0-3,8,10-11"
    assert pr.format_processors([5]) == "5"
    assert pr.format_processors([]) == ""
    assert pr.parse_processors("8,10-11,0-3") == (0, 1, 2, 3, 8, 10, 11)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_written_set_is_read_as_the_same_set(processors):
    assert pr.parse_processors(pr.format_processors(processors)) == tuple(sorted(processors))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0-", ["'0-'"]),
        ("-1", ["'-1'"]),
        ("", ["''"]),
        ("0,,1", ["'0,,1'"]),
        ("0-1-2", ["'0-1-2'"]),
        ("٣", ["'٣'"]),
        ("1.5", ["'1.5'"]),
        ("0 1", ["'0 1'"]),
        ("3-1", ["'3-1'", "smaller number first"]),
        ("0-3,2", ["2", "twice", "'0-3,2'"]),
        ("0-999999999", ["'999999999'", "65535"]),
        ("9" * 10_000, ["65535"]),
    ],
)
def test_what_is_no_set_of_processors_is_named(text, words):
    with pytest.raises(PolicyError) as caught:
        pr.parse_processors(text)
    assert all(word in str(caught.value) for word in words)
    assert str(caught.value).endswith(".")


def test_nodes_come_in_numerical_order_and_those_without_processors_are_left_out(tree):
    folder = tree({"node10": "4-7\n", "node2": "0-3\n", "node3": "\n"})
    assert pr.system_nodes(folder) == TWO_NODES


def test_without_a_list_of_nodes_all_processors_are_one(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 9}, raising=False)
    assert pr.available_processors() == (1, 9)
    assert pr.system_nodes(tmp_path / "nowhere") == ((0, 1, 2, 3, 9),)
    (tmp_path / "node0").mkdir()  # its list cannot be read
    assert pr.system_nodes(tmp_path) == ((0, 1, 2, 3, 9),)


def test_without_affinities_all_processors_are_available(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert pr.available_processors() == (0, 1, 2)


def test_a_list_of_nodes_that_is_none_is_named(tree):
    with pytest.raises(PolicyError, match=r"node0.cpulist .* 'many'"):
        pr.system_nodes(tree({"node0": "many\n"}))


@pytest.mark.parametrize(
    ("name", "available", "nodes", "bound_from"),
    [
        ("none", EIGHT, (EIGHT,), None),
        ("system", EIGHT, TWO_NODES, 1),
        ("system", (1, 2, 6), ((1, 2), (6,)), 1),
        ("system", (4, 5), ((4, 5),), None),
        ("system", (0, 8), ((0, 8),), None),  # the tree does not know 8
        ("hardware", (1,), TWO_NODES, 1),
        ("auto", EIGHT, TWO_NODES, 3),
        ("auto", (0, 1, 2, 4, 5), ((0, 1, 2), (4, 5)), 2),
        ("auto", (0, 1), ((0, 1),), None),
    ],
)
def test_the_nodes_of_a_named_policy_and_when_it_binds(two_nodes, name, available, nodes, bound_from):
    policy = pr.parse_policy(name, two_nodes, available)
    assert policy == NumaPolicy(name, nodes, bound_from)
    if bound_from is None:
        assert policy.nodes_of_threads(1000) is None
    else:
        assert policy.nodes_of_threads(bound_from - 1) is None or bound_from == 1
        assert len(policy.nodes_of_threads(bound_from)) == bound_from


def test_one_node_binds_nothing(tree):
    folder = tree({"node0": "0-7\n"})
    for name in ("auto", "system", "hardware"):
        assert pr.parse_policy(name, folder, EIGHT) == NumaPolicy(name, (EIGHT,))


def test_policies_as_a_user_would_read_them(two_nodes, can_bind):
    policy = pr.parse_policy("0-3:6-7", two_nodes, EIGHT)
    assert policy.processors_text() == "0-3:6-7"
    assert policy.binding_text(6) == "4/4:2/2"
    assert policy.binding_text(1) == "1/4:0/2"
    assert policy.processors_of_threads(3) == ((0, 1, 2, 3), (0, 1, 2, 3), (6, 7))
    none = pr.parse_policy("none", two_nodes, EIGHT)
    assert none.processors_text() == "0-7"
    assert none.binding_text(6) == "none"
    assert none.processors_of_threads(2) == (None, None)
    assert pr.parse_policy("auto", two_nodes, EIGHT).binding_text(2) == "none"


def test_sets_may_name_what_exists_and_this_process_does_not_use(two_nodes, can_bind):
    assert pr.parse_policy("7:1,0", two_nodes, (2, 3)).nodes == ((7,), (0, 1))
    assert pr.parse_policy("0-7", two_nodes, (2, 3)).bound_from == 1, "one set binds as well"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo", ["'foo'", "auto, system, hardware, none"]),
        ("", ["''", "auto, system, hardware, none"]),
        ("-1", ["'-1'", "auto, system, hardware, none"]),
        ("Auto", ["'Auto'"]),
        ("0-", ["'0-'"]),
        ("0:", ["''"]),
        ("0::1", ["''"]),
        ("3-1", ["'3-1'"]),
        ("0:0", ["'0:0'", "twice"]),
        ("0-3:2-5", ["2-3", "twice"]),
        ("0-9", ["'0-9'", "do not exist, 8-9", "0-7"]),
        ("0-999999999", ["999999999"]),
        ("0-65535", ["8-65535"]),
    ],
)
def test_a_policy_that_is_none_is_named(two_nodes, can_bind, text, words):
    with pytest.raises(PolicyError) as caught:
        pr.parse_policy(text, two_nodes, EIGHT)
    assert all(word in str(caught.value) for word in words)
    assert str(caught.value).endswith(".")


def test_sets_are_refused_where_nothing_can_be_bound(two_nodes, monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with pytest.raises(PolicyError, match=r"'0-3:4-7'.*cannot bind"):
        pr.parse_policy("0-3:4-7", two_nodes, EIGHT)
    pr.bind_current_thread((0,))


SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def policy_of_sizes(sizes: list[int]) -> NumaPolicy:
    ends = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    return NumaPolicy("made up", tuple(tuple(range(*pair)) for pair in pairwise(ends)), 1)


@given(SIZES, st.integers(1, 200))
def test_every_thread_has_a_node_and_counts_follow_sizes(sizes, threads):
    nodes = policy_of_sizes(sizes).nodes_of_threads(threads)
    assert len(nodes) == threads
    counts = [nodes.count(node) for node in range(len(sizes))]
    assert sum(counts) == threads
    for count, size in zip(counts, sizes, strict=True):
        assert count >= threads * size // sum(sizes), "no node gets less than its share, rounded down"
        for other_count, other_size in zip(counts, sizes, strict=True):
            # count/size > (other_count + 1)/other_size would mean that a thread is better off elsewhere.
            assert count * other_size <= (other_count + 1) * size or count == 0


@given(SIZES, st.integers(1, 60), st.integers(1, 60))
def test_threads_stay_where_they_are_when_there_are_more(sizes, threads, more):
    policy = policy_of_sizes(sizes)
    assert policy.nodes_of_threads(threads + more)[:threads] == policy.nodes_of_threads(threads)


@pytest.mark.parametrize(
    ("sizes", "threads", "counts"),
    [
        ([4, 4], 8, [4, 4]),
        ([4, 4], 5, [3, 2]),
        ([4, 4], 1, [1, 0]),
        ([8, 4], 12, [8, 4]),
        ([8, 4], 6, [4, 2]),
        ([2, 2, 2], 60, [20, 20, 20]),
    ],
)
def test_how_threads_are_distributed(sizes, threads, counts):
    nodes = policy_of_sizes(sizes).nodes_of_threads(threads)
    assert [nodes.count(node) for node in range(len(sizes))] == counts


def in_a_thread(function):
    """What `function` returns in a thread of its own."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@needs_binding
def test_a_thread_is_bound_and_its_creator_is_not():
    available = pr.available_processors()

    def bind():
        pr.bind_current_thread(available[:1])
        return pr.available_processors()

    assert in_a_thread(bind) == available[:1]
    assert pr.available_processors() == available
    assert in_a_thread(pr.available_processors) == available, "a policy of none needs nothing to be undone"


@needs_binding
def test_what_the_system_refuses_is_named(monkeypatch):
    def refuse(_pid, _processors):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(PolicyError, match=r"processors 4-6 .*Invalid argument.*\.$"):
        pr.bind_current_thread((4, 5, 6))
    with pytest.raises(PolicyError, match="processors 0-3"):
        NumaPolicy("hardware", TWO_NODES, 1).check()
    NumaPolicy("none", TWO_NODES).check()


def test_a_check_tries_every_node(can_bind):
    NumaPolicy("hardware", TWO_NODES, 1).check()
    assert can_bind == [(0, TWO_NODES[0]), (0, TWO_NODES[1])]


@needs_binding
@pytest.mark.parametrize("name", ["none", "auto", "system"])
def test_what_this_machine_offers_can_be_had(name):
    policy = pr.parse_policy(name)
    available = pr.available_processors()
    assert sorted(sum(policy.nodes, ())) == list(available)
    policy.check()
    assert pr.available_processors() == available
