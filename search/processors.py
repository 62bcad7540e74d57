"""Processors, the NUMA nodes they belong to, and the policies that bind threads to nodes.

Sets of processors are written as the kernel writes them, "0-3,8,10-11"; sets of several nodes are joined by ":".
Nothing here needs more than the standard library, so a handshake can afford it.
"""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from games.processors import available_processors

SYSTEM_NODES = Path("/sys/devices/system/node")
MAX_THREADS = max(1024, 4 * (os.cpu_count() or 1))  # of a search
MAX_PROCESSORS = 1 << 16  # no system has more, and a set that names more is a typing error

POLICIES = "auto, system, hardware, none, or processors such as 0-3:4-7"

Nodes = tuple[tuple[int, ...], ...]


class PolicyError(ValueError):
    """A policy or a set of processors that is refused; the message is a sentence."""


def system_nodes(folder: Path = SYSTEM_NODES) -> Nodes:
    """Processors of each node of the machine, whether or not this process may use them.

    A node that has memory only is left out. Where the system shows no nodes, all processors are one node.
    PolicyError if a list of processors is none.
    """
    names = (path.name.removeprefix("node") for path in folder.glob("node*"))
    nodes = []
    for number in sorted(int(name) for name in names if name.isdigit()):
        path = folder / f"node{number}" / "cpulist"
        try:
            text = path.read_text().strip()
        except OSError:
            # Some sandboxes list the nodes and keep their processors to themselves.
            return (_all_processors(),)
        if text:
            try:
                nodes.append(parse_processors(text))
            except PolicyError as error:
                raise PolicyError(f"{path} does not list processors: {error}") from error
    return tuple(nodes) or (_all_processors(),)


def _all_processors() -> tuple[int, ...]:
    return tuple(sorted({*range(os.cpu_count() or 1), *available_processors()}))


def format_processors(processors: Iterable[int]) -> str:
    """The set as text; consecutive processors are joined to a range."""
    ranges: list[list[int]] = []
    for processor in sorted(processors):
        if ranges and processor == ranges[-1][1] + 1:
            ranges[-1][1] = processor
        else:
            ranges.append([processor, processor])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_processors(text: str) -> tuple[int, ...]:
    """The set that `text` spells, in rising order; PolicyError if it is none or names a processor twice."""
    processors: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = _parse_processor(first, text)
        stop = _parse_processor(last, text) if dash else start
        if stop < start:
            raise PolicyError(f"'{part}' is no range of processors; expected the smaller number first.")
        for processor in range(start, stop + 1):
            if processor in processors:
                raise PolicyError(f"Processor {processor} is named twice in '{text}'; expected once.")
            processors.add(processor)
    return tuple(sorted(processors))


def _parse_processor(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise PolicyError(f"'{text}' is no set of processors; expected numbers and ranges, such as 0-3,8.")
    # The length is looked at first, since Python refuses to convert thousands of digits.
    if len(digits) > len(str(MAX_PROCESSORS)) or int(digits) >= MAX_PROCESSORS:
        raise PolicyError(f"'{digits}' is no processor; expected a number from 0 to {MAX_PROCESSORS - 1}.")
    return int(digits)


@dataclass(frozen=True)
class NumaPolicy:
    """Which threads run on which processors.

    name: the policy as the user gave it. nodes: the processors of each node.
    bound_from: the smallest number of threads that are bound to nodes; None if threads are never bound.
    """

    name: str
    nodes: Nodes
    bound_from: int | None = None

    def nodes_of_threads(self, threads: int) -> tuple[int, ...] | None:
        """Index into `nodes` for each thread, or None if so many threads are not bound.

        Each thread goes where it is least crowded after it, so every node gets threads in proportion to its size,
        and the first threads stay where they are when there are more.
        """
        if self.bound_from is None or threads < self.bound_from:
            return None
        counts = [0] * len(self.nodes)
        chosen = []
        for _ in range(threads):
            node = min(range(len(counts)), key=lambda i: (counts[i] + 1) / len(self.nodes[i]))
            counts[node] += 1
            chosen.append(node)
        return tuple(chosen)

    def processors_of_threads(self, threads: int) -> tuple[tuple[int, ...] | None, ...]:
        """What each thread is to be bound to; None for a thread that is not bound."""
        nodes = self.nodes_of_threads(threads)
        return (None,) * threads if nodes is None else tuple(self.nodes[node] for node in nodes)

    def processors_text(self) -> str:
        """The processors of each node: "0-3:4-7"."""
        return ":".join(map(format_processors, self.nodes))

    def binding_text(self, threads: int) -> str:
        """Threads and processors of each node: "3/4:2/4"; "none" if so many threads are not bound."""
        nodes = self.nodes_of_threads(threads)
        if nodes is None:
            return "none"
        counts = Counter(nodes)
        return ":".join(f"{counts[node]}/{len(processors)}" for node, processors in enumerate(self.nodes))

    def check(self) -> None:
        """PolicyError if the system does not let this process run on a node to which threads may be bound.

        That a processor exists is not enough: a container may be kept from it.
        """
        if self.bound_from is None:
            return
        from concurrent.futures import ThreadPoolExecutor  # late: it takes longer to import than all of this module

        with ThreadPoolExecutor(1) as thread:
            for processors in self.nodes:
                thread.submit(bind_current_thread, processors).result()


def parse_policy(text: str, folder: Path = SYSTEM_NODES, available: tuple[int, ...] | None = None) -> NumaPolicy:
    """The policy that `text` spells; PolicyError if it is none.

    none: threads are not bound. system: they are bound to the machine's nodes, as far as this process may use
    their processors. hardware: to all processors of the machine's nodes. Both bind nothing where there is one node.
    auto: as system, but it binds only more threads than half of the largest node has processors; fewer are left
    to the scheduler, or all engines on a machine would crowd its first node. Sets of processors, one for each node
    and joined by ":", always bind.

    folder: where the system shows its nodes. available: processors of this process; None to ask the system.
    """
    if available is None:
        available = available_processors()
    if text == "none":
        return NumaPolicy(text, (available,))
    if text in ("auto", "system"):
        nodes = _restrict(system_nodes(folder), available)
        return NumaPolicy(text, nodes, _bound_from(nodes, max(map(len, nodes)) // 2 + 1 if text == "auto" else 1))
    if text == "hardware":
        nodes = system_nodes(folder)
        return NumaPolicy(text, nodes, _bound_from(nodes, 1))
    return NumaPolicy(text, _parse_nodes(text, set(available).union(*system_nodes(folder))), 1)


def _bound_from(nodes: Nodes, threads: int) -> int | None:
    return threads if len(nodes) > 1 else None


def _restrict(nodes: Nodes, available: tuple[int, ...]) -> Nodes:
    """What is available of each node; nodes without any are left out."""
    allowed = set(available)
    if not allowed.issubset(set().union(*nodes)):
        # A system that does not know where some of its processors belong knows nothing worth binding for.
        return (available,)
    parts = (tuple(processor for processor in node if processor in allowed) for node in nodes)
    return tuple(part for part in parts if part)


def _parse_nodes(text: str, existing: set[int]) -> Nodes:
    """The sets of processors that a policy names one by one."""
    if not text or text[0] not in "0123456789":
        raise PolicyError(f"'{text}' is no NUMA policy; expected {POLICIES}.")
    if not hasattr(os, "sched_setaffinity"):
        raise PolicyError(f"'{text}' asks for processors, but this system cannot bind threads; expected none or auto.")
    seen: set[int] = set()
    nodes = []
    for part in text.split(":"):
        node = parse_processors(part)
        missing = [processor for processor in node if processor not in existing]
        if missing:
            raise PolicyError(
                f"'{text}' names processors that do not exist, {format_processors(missing)}; "
                f"expected some of {format_processors(existing)}."
            )
        twice = seen.intersection(node)
        if twice:
            raise PolicyError(f"'{text}' names processors twice, {format_processors(twice)}; expected once.")
        seen.update(node)
        nodes.append(node)
    return tuple(nodes)


def bind_current_thread(processors: tuple[int, ...]) -> None:
    """Let the calling thread, and those it starts, run on these processors only.

    There is no way back that would not need the earlier set, so bind only threads that end with their task.
    Does nothing where the system has no `sched_setaffinity` (macOS, Windows): there threads cannot be bound to
    a set of processors, and policies that ask for it by number are refused. PolicyError if the system refuses.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(0, processors)
    except OSError as error:
        raise PolicyError(
            f"A thread cannot be bound to processors {format_processors(processors)} ({error})."
        ) from error
