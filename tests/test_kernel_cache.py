"""Kernels from the cache: they compute the same, need no compiler, and serve Python alone."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from games.jit import kernel, kernel_cache_directory

# Reads two FENs with kernels, and tells whether these came from the cache and what Numba loaded for compiling only.
SCRIPT = """
import sys
import numpy as np
from games.xiangqi import START_FEN, bulk_fen
fens = bulk_fen.parse_lines(np.frombuffer(f"{START_FEN}\\n# nothing\\n{START_FEN}".encode(), np.uint8))
print(len(fens), len(fens.refusals), fens.compact()[1].tobytes().decode() == 2 * START_FEN)
print(bool(bulk_fen._read_fens.stats.cache_hits))
print([name for name in ("scipy.linalg", "numba.np.linalg", "numba.cpython.unicode") if name in sys.modules])
"""


@kernel
def _scaled_sum(values, factor):
    total = 0.0
    for i in range(len(values)):
        total += factor * values[i]
    return total


def _read_fens() -> list[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout.split("\n")


def test_kernels_from_the_cache_load_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXFISH_CACHE_DIR", str(tmp_path))
    found, from_cache, loaded = _read_fens()[:3]
    assert (found, from_cache) == ("2 0 True", "False")
    assert "numba.np.linalg" in loaded
    assert _read_fens()[:3] == ["2 0 True", "True", "[]"]


def test_a_kernel_from_the_cache_may_be_compiled_for_other_types():
    _scaled_sum(np.arange(3.0), 2.0)
    loaded = kernel(_scaled_sum.py_func)
    assert loaded(np.arange(4.0), 2.0) == 12
    assert sum(loaded.stats.cache_hits.values()) == 1
    assert loaded(np.arange(4, dtype=np.int16), 2.0) == 12


def test_functions_do_not_call_kernels_from_the_cache():
    _scaled_sum(np.arange(3.0), 2.0)
    loaded = kernel(_scaled_sum.py_func)
    loaded(np.arange(3.0), 2.0)

    @numba.njit
    def caller(values):
        return loaded(values, 2.0)

    with pytest.raises(RuntimeError, match="unfit for linking"):
        caller(np.arange(3.0))


def test_the_cache_directory_of_other_functions_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert kernel(_scaled_sum.py_func).stats.cache_path.startswith(str(kernel_cache_directory()))
    assert numba.config.CACHE_DIR == str(tmp_path)
