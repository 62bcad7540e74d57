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

import llvmlite.binding as llvm
import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import _nrt_python
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


class _MachineCode(CompileResultCacheImpl):
    """What is kept of a kernel: not its LLVM bitcode, which takes longer to read than all the rest.

    Numba keeps it to link other functions to the kernel; but only Python calls kernels.
    """

    def reduce(self, result):
        (name, kind, (machine_code, _)), *rest = super().reduce(result)
        # Numba looks for the kernel in the machine code only if the bitcode defines a function of that name.
        stub = f'define void @"{result.fndesc.llvm_cpython_wrapper_name}"() {{ ret void }}'
        return (name, kind, (machine_code, llvm.parse_assembly(stub).as_bitcode())), *rest

    def rebuild(self, target_context, payload):
        result = super().rebuild(target_context, payload)
        result.library._shared_module = None  # so that Numba calls it unfit for linking if a function calls the kernel
        return result


class _KernelCache(FunctionCache):
    """Loads machine code without what only a compiler needs.

    Numba would first fill its tables of all that it can compile, and import SciPy for the linear algebra among it: that
    is more than a third of a start at which every kernel is in the cache. If one is not, the compiler fills them.
    """

    _impl_class = _MachineCode

    def load_overload(self, sig, target_context):
        _publish_runtime()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


@cache
def _publish_runtime() -> None:
    """Give LLVM the addresses of the functions of Numba's runtime that machine code may call."""
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def kernel(function):
    """Compile `function` on its first call, or load it from the cache."""
    dispatcher = numba.njit(**OPTIONS)(function)
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(kernel_cache_directory())
    try:
        dispatcher._cache = _KernelCache(function)  # what `cache=True` does with a FunctionCache
    finally:
        config.CACHE_DIR = previous
    return dispatcher


def leaf(function):
    """Compile a `function` that is inlined into each of its callers."""
    return numba.njit(**OPTIONS, forceinline=True, **WITHOUT_WRAPPERS)(function)


def routine(function):
    """Compile a `function` that kernels call; a function that does not say so takes this over from its caller."""
    return numba.njit(**OPTIONS, forceinline=False, **WITHOUT_WRAPPERS)(function)
