"""How every kernel of the project is compiled, and where its machine code is kept.

Three decorators are enough. A `kernel` is called from Python. A `leaf` is called by kernels and other leaves, and is
always inlined. A `routine` is called like a leaf but compiled once, for what is large and not always wanted. Leaves and
routines have no entry from Python, so calling one there crashes (use its `py_func`). All release the GIL and use C
semantics for division.

Numba's on-disk cache notices a change in the file of a cached function, but not in the functions it
calls. So the cache directory is named after a hash of all sources that hold kernels: whatever is
edited, the next start compiles anew. The directory is handed to Numba for our functions only; a
program that imports this package keeps its own setting for its own kernels.
"""

import hashlib
import os
from functools import cache
from pathlib import Path

import numba
from numba.core import config
from platformdirs import user_cache_path

SOURCE_FOLDERS = ("games", "nnue_jax", "search")
OPTIONS = {"nogil": True, "error_model": "numpy"}

# With JAXFISH_PORTABLE=1 the kernels use no instruction of one processor family alone, for tests.
PORTABLE = os.environ.get("JAXFISH_PORTABLE", "") not in ("", "0")


@cache
def source_hash() -> str:
    """Sixteen hex digits that change with any source file that may hold a kernel."""
    digest = hashlib.sha256(f"portable={PORTABLE}".encode())
    root = Path(__file__).resolve().parent.parent
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Folder of all our caches: $JAXFISH_CACHE_DIR or the user's cache directory."""
    override = os.environ.get("JAXFISH_CACHE_DIR")
    return Path(override) if override else user_cache_path("jaxfish", appauthor=False)


@cache
def kernel_cache_directory() -> Path:
    """Folder in which Numba keeps the machine code of these very sources."""
    return cache_root() / "kernels" / source_hash()


# The wrappers that Python would call take a quarter of the time to compile.
WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _compiled(function, **options):
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(kernel_cache_directory())
    try:
        return numba.njit(**OPTIONS, **options)(function)
    finally:
        config.CACHE_DIR = previous


def kernel(function):
    """Compile `function` on its first call, or load it from the cache."""
    return _compiled(function, cache=True)


def leaf(function):
    """Compile a `function` that is inlined into each of its callers."""
    return _compiled(function, forceinline=True, **WITHOUT_WRAPPERS)


def routine(function):
    """Compile a `function` that kernels call; a function that does not say so takes this over from its caller."""
    return _compiled(function, forceinline=False, **WITHOUT_WRAPPERS)
