"""The processors that this process may use."""

import os


def available_processors() -> tuple[int, ...]:
    """Processors that the calling thread may run on, in rising order."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))
