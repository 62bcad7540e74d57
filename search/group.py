"""Groups of searchers that are advanced together: the kernel under every search of many trees at once.

`advance_group` advances one searcher after the other, each until it waits for an evaluation or is done. What they
wait for lies in one batch then; the caller has it evaluated, and calls again. Searchers that evaluate inline never
wait, and are advanced the same way.

A group that takes roots gives a ROOT from its inbox to every searcher that is free, and puts what was found into its
outbox (`roots`). In a group that does not, all searchers search the root of `begin_search`.

GROUP
    searchers           number of them
    cursor              the next to be advanced in this round
    requests            positions in the batch
    waiting             those of them, the first ones, that searchers wait for; the others are guesses
    guess_room          size up to which a batch is filled with guesses, for the evaluation cache; 0 for none
    running             searchers that are neither free nor done
    takes_roots         whether searchers take roots from the inbox
    isolated            whether every searcher has tables of its own, which are emptied for each root
    stop                address of a word that the caller sets: searchers end with what they have found
    inbox_next, inbox_count, outbox_count
    node_limit, max_depth, multi_pv     of each root
    cache, cache_mask   address of the evaluation cache, 0 for none, and its number of entries less one
    cache_hits          values that the evaluation cache had
    guesses, guess_hits positions that were evaluated without a searcher waiting for them, and those that one took later
    reports             whether the caller hears what the first searcher, the main one, has to tell

SLOT, beside each searcher
    state        FREE, RUNNING, WAITING or DONE
    request      place in the batch of what it waits for
    root, packed number and PACKED of its root
    stopped_root of the root at which the caller wanted it to stop
    tables       index into the group's HISTORIES
"""

from typing import NamedTuple

import numpy as np
from numba import int64

from games.jit import kernel, leaf, routine
from games.memory import load_i64_acquire, store_i64
from games.xiangqi.geometry import NO_MOVE
from games.xiangqi.packed import PACKED
from nnue_jax.outcomes import packed_material
from search.layout import FIRST_NODE_COUNT, NODE_LIMIT, STOP_FLAG, THREAD_COUNT
from search.machine import advance, start
from search.nodes import EVALUATE, FINISHED, ITERATION_DONE, STOPPED, publish_nodes
from search.requests import append_request, deliver, guess_children, is_known, remember
from search.roots import (
    copy_packed,
    list_root_moves,
    note_last_lines,
    note_lines,
    note_lost,
    set_position,
    set_root,
    set_root_moves,
)
from search.transposition import BUCKET_WORDS, GENERATIONS

FREE, RUNNING, WAITING, DONE = range(4)

ROUND_DONE = -1  # as a code: every searcher waits, or is free or done

GROUP = np.dtype(
    [
        (name, "i8")
        for name in (
            *("searchers", "cursor", "requests", "waiting", "guess_room", "running", "takes_roots", "isolated", "stop"),
            *("inbox_next", "inbox_count", "outbox_count", "node_limit", "max_depth", "multi_pv"),
            *("cache", "cache_mask", "cache_hits", "guesses", "guess_hits", "reports"),
        )
    ],
    align=True,
)

SLOT = np.dtype(
    [(name, "i8") for name in ("state", "request", "root", "stopped_root", "tables")] + [("packed", PACKED)], align=True
)


class Arrays(NamedTuple):
    """What the kernel works on.

    searchers    [n] SEARCHER         histories   [1] or [n] HISTORIES
    slots        [n] SLOT             batch       [.] PACKED
    keys         [.] i8, Zobrist keys of the batch
    outputs      [2, .] i4, psqt and positional of the batch
    inbox        [.] ROOT             lines       [.] LINE, see ROOT
    noted        [n, multi_pv] FOUND_LINE of the roots being searched
    outbox       [.] OUTCOME          found       [., multi_pv] FOUND_LINE of the outbox
    """

    searchers: np.ndarray
    histories: np.ndarray
    slots: np.ndarray
    batch: np.ndarray
    keys: np.ndarray
    outputs: np.ndarray
    inbox: np.ndarray
    lines: np.ndarray
    noted: np.ndarray
    outbox: np.ndarray
    found: np.ndarray


_start = routine(start.py_func)
_advance = routine(advance.py_func)


@leaf
def _empty_tables(searcher, histories):
    for i in range(searcher.tt_buckets * BUCKET_WORDS):
        store_i64(searcher.tt_entries, i, 0)
    histories.butterfly[:] = 0
    histories.captures[:] = 0
    histories.continuation[:] = 0


@leaf
def _set_limits(group, searcher):
    shared = searcher.shared
    store_i64(shared, THREAD_COUNT, 1)
    store_i64(shared, NODE_LIMIT, group.node_limit)
    store_i64(shared, FIRST_NODE_COUNT, 0)
    store_i64(shared, STOP_FLAG, 0)
    searcher.max_depth = group.max_depth
    searcher.multi_pv = group.multi_pv
    searcher.tt_generation = (searcher.tt_generation + 1) % GENERATIONS


@leaf
def _begin_root(group, arrays, number):
    """Begin, or begin again, to search the root that a searcher has got; whether it has a legal move."""
    slot = arrays.slots[number]
    searcher = arrays.searchers[number]
    set_position(slot.packed, searcher.position)
    arrays.noted[number, 0].move = NO_MOVE
    if list_root_moves(searcher, searcher.position) == 0:
        note_lost(arrays.noted[number])
        return False
    if group.isolated:
        searcher.tt_generation = 0
        _empty_tables(searcher, arrays.histories[slot.tables])
    _set_limits(group, searcher)
    _start(searcher)
    return True


@leaf
def _is_stopped_in_vain(group, slot, searcher):
    """Whether a search was stopped because of the root that its searcher had before."""
    return load_i64_acquire(group.stop, 0) == 0 and searcher.nodes < group.node_limit and slot.stopped_root != slot.root


@routine
def _take_root(group, arrays, number):
    """Give the next root of the inbox to a free searcher; whether there was one that can be searched."""
    slot = arrays.slots[number]
    while group.inbox_next < group.inbox_count:
        root = arrays.inbox[group.inbox_next]
        group.inbox_next += 1
        slot.root = root.number
        copy_packed(root.packed, slot.packed)
        set_root(arrays.searchers[number], root, arrays.lines)
        if _begin_root(group, arrays, number):
            slot.state = RUNNING
            group.running += 1
            return True
        _put_outcome(group, arrays, number, int64(0), int64(1))
    return False


@leaf
def _put_outcome(group, arrays, number, nodes, line_count):
    place = group.outbox_count
    outcome = arrays.outbox[place]
    outcome.number = arrays.slots[number].root
    outcome.nodes = nodes
    outcome.line_count = line_count
    outcome.material = packed_material(arrays.slots[number].packed)
    for i in range(line_count):
        source = arrays.noted[number, i]
        target = arrays.found[place, i]
        target.move = source.move
        target.score = source.score
        target.bound = source.bound
        target.depth = source.depth
        target.selective_depth = source.selective_depth
        target.pv_length = source.pv_length
        for j in range(source.pv_length):
            target.pv[j] = source.pv[j]
    group.outbox_count = place + 1


@leaf
def _finish_root(group, arrays, number):
    searcher = arrays.searchers[number]
    count = note_last_lines(searcher, arrays.noted[number])
    _put_outcome(group, arrays, number, searcher.nodes, count)


@leaf
def _end(group, slot, state):
    slot.state = state
    group.running -= 1


@leaf
def _advance_slot(group, arrays, number):
    """Advance one searcher until it waits, is free or done; ROUND_DONE, or what the main searcher has to tell."""
    slot = arrays.slots[number]
    searcher = arrays.searchers[number]
    while True:
        if slot.state == FREE and not (group.takes_roots and _take_root(group, arrays, number)):
            return int64(ROUND_DONE)
        if slot.state == DONE:
            return int64(ROUND_DONE)
        if slot.state == WAITING:
            request = slot.request
            deliver(searcher, int64(arrays.outputs[0, request]), int64(arrays.outputs[1, request]))
            slot.state = RUNNING
        code = int64(STOPPED)
        if load_i64_acquire(group.stop, 0) == 0:
            code = _advance(searcher, arrays.histories[slot.tables])
        if code == EVALUATE:
            if not is_known(group, searcher):
                slot.request = append_request(group, arrays, searcher.position)
                slot.state = WAITING
                if not group.takes_roots:
                    publish_nodes(searcher)  # or hundreds of searchers would learn too late that the limit is reached
                return int64(ROUND_DONE)
        elif code == STOPPED or code == FINISHED:
            if group.takes_roots and code == STOPPED and _is_stopped_in_vain(group, slot, searcher):
                _begin_root(group, arrays, number)
            elif group.takes_roots:
                _finish_root(group, arrays, number)
                _end(group, slot, FREE)
            else:
                _end(group, slot, DONE)
                return code if number == 0 and group.reports else int64(ROUND_DONE)
        else:
            if number == 0 and group.reports:
                return code
            if group.takes_roots and code == ITERATION_DONE:
                note_lines(searcher, arrays.noted[number])


@kernel
def begin_search(group, arrays, root, root_moves):
    """Let all searchers search a ROOT, which lies in arrays.lines, among [n] i8 root moves; n is above zero."""
    for number in range(group.searchers):
        slot = arrays.slots[number]
        searcher = arrays.searchers[number]
        set_root(searcher, root, arrays.lines)
        set_root_moves(searcher, root_moves)
        searcher.max_depth = group.max_depth
        searcher.multi_pv = group.multi_pv
        _start(searcher)
        slot.state = RUNNING
    group.running = group.searchers
    group.cursor = 0
    group.requests = 0
    group.waiting = 0


@kernel
def advance_group(group, arrays):
    """Advance all searchers of a group until the round is done; see the head of this file.

    Returns ROUND_DONE, or earlier the code of what the main searcher has to tell, which goes on when called again.
    """
    if group.cursor == 0:
        remember(group, arrays)
        group.requests = 0
    while group.cursor < group.searchers:
        code = _advance_slot(group, arrays, group.cursor)
        if code != ROUND_DONE:
            return code
        group.cursor += 1
    group.cursor = 0
    group.waiting = group.requests
    for number in range(group.searchers):
        if group.requests >= group.guess_room:
            break
        if arrays.slots[number].state == WAITING:
            guess_children(group, arrays, arrays.searchers[number])
    group.guesses += group.requests - group.waiting
    return int64(ROUND_DONE)
