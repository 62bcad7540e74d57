"""`compiler`: what the engine is made with, the machine it runs on, and where it keeps what it compiled.

Nothing heavy is imported before it is asked for.
"""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = {"NumPy": "numpy", "Numba": "numba", "llvmlite": "llvmlite", "JAX": "jax", "jaxlib": "jaxlib"}
NOT_INSTALLED = "not installed"

# LLVM's names, on x86 and then on ARM, of what makes vectors wider or byte products faster.
VECTOR_FEATURES = (
    *("sse4.1", "avx2", "avxvnni", "avx512f", "avx512bw", "avx512vl", "avx512vnni"),
    *("neon", "dotprod", "i8mm", "sve", "sve2"),
)

CPUINFO = Path("/proc/cpuinfo")
_LABEL_WIDTH = 20


def versions() -> dict[str, str]:
    """Version of the engine and of everything that compiles or runs it, by name."""
    from llvmlite import binding

    found = {"jaxfish": version("jaxfish"), "Python": _python()}
    for name, package in PACKAGES.items():
        found[name] = _package_version(package)
        if name == "llvmlite":
            found["LLVM"] = ".".join(map(str, binding.llvm_version_info))
    return found


def _python() -> str:
    return f"{platform.python_version()} ({platform.python_implementation()}, built with {platform.python_compiler()})"


def _package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def compiler_lines() -> list[str]:
    """The lines that `compiler` prints; asks JAX for its devices, which may take seconds."""
    facts = {**versions(), **_machine(), **_jax(), "Kernel cache": _kernel_cache()}
    return [f"{name:<{_LABEL_WIDTH}}: {value}" for name, value in facts.items()]


def _machine() -> dict[str, str]:
    from games.processors import available_processors

    return {
        "Operating system": platform.platform(),
        "Processor": cpu_name(),
        "Vector features": vector_features(),
        "Byte dot product": _byte_dot_product(),
        "Processors": f"{len(available_processors())} of {os.cpu_count() or 'an unknown number'} may be used",
    }


def cpu_name() -> str:
    """The processor's name as the system gives it, and in brackets as LLVM does."""
    from llvmlite import binding

    return f"{_model_name() or platform.processor() or platform.machine()} ({binding.get_host_cpu_name()})"


def _model_name() -> str:
    """The first model name in /proc/cpuinfo; empty where there is no such file, or no name in it."""
    if not CPUINFO.exists():
        return ""
    for line in CPUINFO.read_text(errors="replace").splitlines():
        label, _, value = line.partition(":")
        if label.strip().lower() == "model name":
            return value.strip()
    return ""


def vector_features() -> str:
    """Those of VECTOR_FEATURES that LLVM finds in this processor."""
    from llvmlite import binding

    there = binding.get_host_cpu_features()
    return " ".join(name for name in VECTOR_FEATURES if there.get(name)) or "none that is looked for"


def _byte_dot_product() -> str:
    from games.jit import PORTABLE
    from nnue_jax.simd import HAS_NATIVE_DOT

    if HAS_NATIVE_DOT:
        return "one instruction of AVX-512 VNNI"
    return "multiplications and additions" + (", since JAXFISH_PORTABLE is set" if PORTABLE else "")


def _kernel_cache() -> str:
    from games.jit import kernel_cache_directory

    return str(kernel_cache_directory())


def _jax() -> dict[str, str]:
    """JAX's devices and the folder of its programs, or the reason why there are none."""
    try:
        import jax  # noqa: F401
    except Exception as error:  # a broken installation may raise anything, and this command is there to show it
        return {"JAX devices": f"none, because JAX cannot be imported: {_one_line(error)}"}
    from nnue_jax.jax_devices import devices, program_cache_directory

    try:
        found = ", ".join(f"{device.platform}:{device.id} ({device.device_kind})" for device in devices())
    except RuntimeError as error:
        found = f"none, because JAX says: {_one_line(error)}"
    return {"JAX devices": found, "JAX cache": program_cache_directory() or "none"}


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
