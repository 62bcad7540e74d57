"""The order in which the picker hands out moves."""

import numpy as np
import pytest

from games.jit import kernel
from games.memory import address_of
from search.layout import SEARCHER
from search.picker import LEAST_RANK, _take_best


@kernel
def drain_kernel(searcher, picked):
    """Take all ranks of the first frame, best first."""
    frame = searcher.frames[0]
    count = 0
    while frame.next < frame.end:
        picked[count] = _take_best(searcher, frame)
        count += 1
    return count


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 32, 33, 64, 119])
@pytest.mark.parametrize("start", [0, 5])
def test_best_first(count, start):
    """What lies before and behind the ranks is greater than all of them, and must not be taken."""
    generator = np.random.default_rng(count)
    ranks = np.full(start + count + 64, 2**31 - 1, np.int32)
    values = generator.choice(2**31, count, replace=False) - 2**30
    values[generator.integers(count)] = LEAST_RANK + 1
    ranks[start : start + count] = values
    searcher = np.zeros(1, SEARCHER)[0]
    searcher["ranks"] = address_of(ranks)
    searcher["frames"][0]["next"] = start
    searcher["frames"][0]["end"] = start + count
    picked = np.zeros(count, np.int64)
    assert drain_kernel(searcher, picked) == count
    assert picked.tolist() == sorted(values.tolist(), reverse=True)
