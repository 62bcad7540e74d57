"""Which devices JAX has, and where it keeps what it compiled."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from importlib.util import find_spec

import numpy as np

from games.jit import cache_root

ACCELERATORS = ("gpu", "tpu")
BATCH_AXIS = "batch"


def may_have_accelerator() -> bool:
    """Whether a plugin for something beside the CPU is installed; found out without importing jax, in milliseconds.

    JAX reaches GPUs and the like through plugins, which are packages below `jax_plugins` or entry points of that name,
    and TPUs through `libtpu`. JAX_PLATFORMS=cpu hides them all.
    """
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False
    return any(map(find_spec, ("jax_plugins", "libtpu"))) or bool(entry_points(group="jax_plugins"))


def devices(kind: str | None = None) -> list:
    """This machine's devices of a kind, `cpu`, `gpu` or `tpu`; by default of the kind that JAX prefers.

    RuntimeError with JAX's reason if there are none.
    """
    import jax

    return jax.local_devices(backend=kind)


def describe(used: list) -> str:
    """`NVIDIA H200`, `8 x TPU v4`."""
    kind = used[0].device_kind
    return kind if len(used) == 1 else f"{len(used)} x {kind}"


def program_cache_directory() -> str:
    """Folder in which JAX keeps its programs: the one this process has set, otherwise ours; empty for nowhere."""
    import jax

    folder = jax.config.jax_compilation_cache_dir
    return str(cache_root() / "jax") if folder is None else folder


def keep_compiled_programs() -> None:
    """Let JAX keep every program in our cache folder, unless the process already has a folder for them.

    The setting holds for the whole process: JAX knows no other.
    """
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", program_cache_directory())
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def run_on_calling_threads() -> None:
    """Let every program for the CPU run on the thread that calls it, and on no other.

    JAX would give each program to threads of its own and cut it into parts; where one thread for each processor
    calls, the hand-overs cost a third of the speed. The setting holds for the whole process, and only if JAX has not
    looked for devices before, so it is for programs, not for libraries.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    with _environment("PJRT_NPROC", "1"), suppress(RuntimeError):  # whoever needs devices is told that there are none
        devices()


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while, unless it is set."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def mesh_of(used: list):
    """A mesh with one axis, along which batches are divided."""
    import jax

    return jax.sharding.Mesh(np.array(used), (BATCH_AXIS,))
