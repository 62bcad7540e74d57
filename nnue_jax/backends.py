"""The backends by name, and which of them are there.

reference    NumPy, the specification: slow
numba        the kernels of the search, on all processors this process may use
jax          JAX on its default devices
jax:cpu, jax:gpu, jax:tpu    on all devices of that kind; jax:gpu:0 on one of them
auto         jax on an accelerator if there is one, numba otherwise

Nothing heavy is imported before a backend needs it; `auto` imports jax only where a plugin for an accelerator is
installed.
"""

from nnue_jax.evaluator import Evaluator
from nnue_jax.jax_devices import ACCELERATORS, devices, may_have_accelerator
from nnue_jax.network_file import Network

BACKENDS = ("auto", "reference", "numba", "jax", "jax:cpu", "jax:gpu", "jax:tpu")
JAX_KINDS = ("cpu", *ACCELERATORS)


class BackendError(ValueError):
    """A backend that is unknown or not there; the message lists those that are."""


def available_backends() -> list[str]:
    """Those of BACKENDS that work on this machine."""
    missing = [f"jax:{kind}" for kind in ACCELERATORS if not _has_accelerator(kind)]
    return [name for name in BACKENDS if name not in missing]


def create(network: Network, backend: str = "auto", **options) -> Evaluator:
    """An evaluator of `network`; `options` are those of the backend's class.

    BackendError for a backend that is unknown or not there, TypeError or ValueError for an option that it does not
    take.
    """
    if backend == "auto":
        backend = next((f"jax:{kind}" for kind in ACCELERATORS if _has_accelerator(kind)), "numba")
    if backend == "reference":
        from nnue_jax.reference_backend import ReferenceEvaluator

        return ReferenceEvaluator(network, **options)
    if backend == "numba":
        from nnue_jax.numba_batch import NumbaBatchEvaluator

        return NumbaBatchEvaluator(network, **options)
    used = _jax_devices(backend)
    from nnue_jax.jax_evaluator import JaxEvaluator

    return JaxEvaluator(network, used, **options)


def _has_accelerator(kind: str) -> bool:
    if not may_have_accelerator():
        return False
    try:
        return bool(devices(kind))
    except RuntimeError:  # JAX's way to say no; whoever asks for the backend by name is told why
        return False


def _jax_devices(backend: str) -> list:
    """The devices that `jax`, `jax:KIND` or `jax:KIND:INDEX` names."""
    family, *rest = backend.split(":")
    kind, *index = rest or [None]
    is_known = family == "jax" and (not rest or kind in JAX_KINDS) and len(index) <= 1
    if not is_known or not all(text.isascii() and text.isdigit() for text in index):
        raise BackendError(f"The backend '{backend}' is unknown; {_those_there()}")
    try:
        found = devices(kind)
    except RuntimeError as error:
        raise BackendError(f"The backend '{backend}' is not there: JAX says '{error}'; {_those_there()}") from error
    if not index:
        return found
    number = int(index[0])
    if number >= len(found):
        raise BackendError(
            f"The backend '{backend}' is not there: the devices of that kind are numbered 0 to {len(found) - 1}; "
            f"{_those_there()}"
        )
    return found[number : number + 1]


def _those_there() -> str:
    return f"expected one of {', '.join(available_backends())}."
