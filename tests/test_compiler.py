"""`compiler`: versions, the machine, and sentences about what is not there."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

import jax
import jaxlib
import llvmlite
import numba
import numpy as np
import pytest

from games.jit import cache_root, kernel_cache_directory
from nnue_jax import jax_devices
from uci import compiler
from uci.compiler import NOT_INSTALLED, VECTOR_FEATURES, compiler_lines, cpu_name, vector_features, versions


def facts() -> dict[str, str]:
    """The lines by their labels."""
    pairs = [line.split(": ", 1) for line in compiler_lines()]
    found = {label.rstrip(): value for label, value in pairs}
    assert len(found) == len(pairs)
    return found


def run(script: str, **variables: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_versions_are_those_in_use():
    found = versions()
    assert found.pop("jaxfish") == installed_version("jaxfish")
    python = found.pop("Python")
    assert python.startswith(f"{platform.python_version()} ({platform.python_implementation()}, built with ")
    assert platform.python_compiler() in python
    assert found.pop("LLVM") == ".".join(map(str, llvmlite.binding.llvm_version_info))
    assert found == {
        "NumPy": np.__version__,
        "Numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "JAX": jax.__version__,
        "jaxlib": jaxlib.__version__,
    }


def test_a_package_that_is_missing(monkeypatch):
    def version(package):
        if package.startswith("jax") and package != "jaxfish":
            raise PackageNotFoundError(package)
        return "1.2"

    monkeypatch.setattr(compiler, "version", version)
    found = versions()
    assert (found["JAX"], found["jaxlib"], found["Numba"]) == (NOT_INSTALLED, NOT_INSTALLED, "1.2")


def test_lines():
    found = facts()
    assert versions().items() <= found.items()
    assert found["Operating system"] == platform.platform()
    assert found["Processor"] == cpu_name()
    assert found["Vector features"] == vector_features()
    assert found["Processors"] == f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} may be used"
    assert found["Kernel cache"] == str(kernel_cache_directory())
    assert all("\n" not in line and line == line.rstrip() for line in compiler_lines())


def test_jax_devices_and_cache():
    found = facts()
    first = jax.local_devices()[0]
    assert f"{first.platform}:{first.id} ({first.device_kind})" in found["JAX devices"].split(", ")
    assert len(found["JAX devices"].split(", ")) == len(jax.local_devices())


@pytest.mark.parametrize(("folder", "shown"), [(None, None), ("/elsewhere", "/elsewhere"), ("", "none")])
def test_the_cache_folder_of_jax(folder, shown):
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", folder)
    try:
        assert facts()["JAX cache"] == (str(cache_root() / "jax") if shown is None else shown)
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_without_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    found = facts()
    assert found["JAX devices"].startswith("none, because JAX cannot be imported: ModuleNotFoundError: ")
    assert "JAX cache" not in found


def test_without_devices(monkeypatch):
    def no_devices(kind=None):
        raise RuntimeError("the chip is\n  on holiday")

    monkeypatch.setattr(jax_devices, "devices", no_devices)
    found = facts()
    assert found["JAX devices"] == "none, because JAX says: RuntimeError: the chip is on holiday"
    assert "JAX cache" in found


def test_a_platform_that_is_not_there():
    script = "from uci.compiler import compiler_lines; print(*compiler_lines(), sep='\\n')"
    printed = run(script, JAX_PLATFORMS="tpu")
    assert "none, because JAX says: RuntimeError: " in printed
    assert "Kernel cache" in printed


def test_cpu_name_from_the_system(monkeypatch, tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel\t\t: 17\nmodel name\t: Fast: 9000 @ 3 GHz\n\nmodel name\t: Slow\n")
    monkeypatch.setattr(compiler, "CPUINFO", cpuinfo)
    by_llvm = llvmlite.binding.get_host_cpu_name()
    assert cpu_name() == f"Fast: 9000 @ 3 GHz ({by_llvm})"


@pytest.mark.parametrize("content", [None, "", "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"])
def test_cpu_name_where_the_system_has_none(monkeypatch, tmp_path, content):
    cpuinfo = tmp_path / "cpuinfo"
    if content is not None:
        cpuinfo.write_text(content)
    monkeypatch.setattr(compiler, "CPUINFO", cpuinfo)
    by_llvm = llvmlite.binding.get_host_cpu_name()
    monkeypatch.setattr(platform, "processor", lambda: "Chip")
    assert cpu_name() == f"Chip ({by_llvm})"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert cpu_name() == f"{platform.machine()} ({by_llvm})"


def test_vector_features(monkeypatch):
    there = {"avx2": True, "avx512vnni": True, "avx512f": False, "sse2": True, "dotprod": True}
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: there)
    assert vector_features() == "avx2 avx512vnni dotprod"
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", dict)
    assert vector_features() == "none that is looked for"
    assert len(set(VECTOR_FEATURES)) == len(VECTOR_FEATURES)


def test_the_dot_product_of_portable_kernels():
    script = "from uci import compiler; print(compiler._byte_dot_product())"
    assert run(script, JAXFISH_PORTABLE="1").strip() == "multiplications and additions, since JAXFISH_PORTABLE is set"


def test_importing_is_cheap():
    heavy = ("numpy", "numba", "llvmlite", "jax", "jaxlib")
    script = f"import sys, uci.compiler; print(*(name for name in {heavy} if name in sys.modules))"
    assert run(script).split() == []
    script = f"import sys, uci.compiler; uci.compiler.versions(); print(*(n for n in {heavy} if n in sys.modules))"
    assert run(script).split() == ["llvmlite"]
