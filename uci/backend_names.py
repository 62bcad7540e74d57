"""From the name of a backend, as a user gives it, to what the engine evaluates with.

auto         an accelerator if JAX has one, otherwise numba; for one root always numba
numba        the searchers evaluate by themselves, on the CPU
jax, jax:cpu, jax:gpu, jax:tpu, jax:gpu:0, reference    in batches, see `nnue_jax.backends`
simulated, simulated:LATENCY_US:MILLIONS_PER_S          in batches, as a device of that latency and throughput would
"""

import os
from collections.abc import Callable

import numpy as np

from nnue_jax.backends import BackendError, available_backends
from nnue_jax.evaluator import Evaluator
from nnue_jax.jax_devices import ACCELERATORS, run_on_calling_threads
from nnue_jax.network_file import Network
from nnue_jax.reference import SKIP_MINUS, SKIP_PLUS

AUTO, NUMBA, SIMULATED = "auto", "numba", "simulated"
DEFAULT_LATENCY_US, DEFAULT_MILLIONS_PER_S = 200.0, 20.0

EvaluatorMaker = Callable[[Network], Evaluator]


def make_evaluator(name: str, one_root: bool = False) -> tuple[EvaluatorMaker | None, str]:
    """(what makes the batched evaluator of a network, None for numba; a sentence that says what was chosen and why).

    one_root: whether it is for searches of one position after the other. On one root many searchers do much of their
    work twice, so a batched backend has to be asked for by name.
    BackendError, at once or when the evaluator is made, for a backend that is unknown or not there.
    """
    if name == AUTO and one_root:
        return (
            None,
            f"Backend {AUTO}: {NUMBA}, since one position is searched best by threads that evaluate themselves.",
        )
    if name == AUTO:
        accelerator = next((f"jax:{kind}" for kind in ACCELERATORS if f"jax:{kind}" in available_backends()), None)
        if accelerator is None:
            return None, f"Backend {AUTO}: {NUMBA}, since JAX has no accelerator here."
        return _maker(accelerator), f"Backend {AUTO}: {accelerator}, since JAX has this accelerator."
    if name == NUMBA:
        return None, f"Backend {NUMBA}: every search thread evaluates by itself."
    family, *numbers = name.split(":")
    if family == SIMULATED:
        return _simulated(name, numbers), f"Backend {name}: a device that does not exist, for development."
    return _maker(name), f"Backend {name}: positions are evaluated in batches."


def _maker(name: str) -> EvaluatorMaker:
    return lambda network: load_evaluator(network, name)


def load_evaluator(network: str | os.PathLike | Network, name: str) -> Evaluator:
    """`Evaluator.load` as it suits a process of our own."""
    if name.startswith("jax"):
        run_on_calling_threads()
    return Evaluator.load(network, name)


def _simulated(name: str, numbers: list[str]) -> EvaluatorMaker:
    try:
        latency_us, millions_per_s = map(float, numbers or (DEFAULT_LATENCY_US, DEFAULT_MILLIONS_PER_S))
        is_possible = 0 <= latency_us < np.inf and 0 < millions_per_s < np.inf
    except ValueError:
        is_possible = False
    if not is_possible:
        raise BackendError(
            f"The backend '{name}' is unknown; expected {SIMULATED} or {SIMULATED}:LATENCY_US:MILLIONS_PER_S, such as "
            f"{SIMULATED}:200:20."
        )

    def make(network: Network) -> Evaluator:
        if _is_piece_square_only(network):
            from nnue_jax.simulated_device import SimulatedDevice

            return SimulatedDevice(network, latency_us, 1e6 * millions_per_s)
        from nnue_jax.wrappers.delayed import DelayedEvaluator

        return DelayedEvaluator(Evaluator.load(network, NUMBA), latency_us / 1000, 1e6 * millions_per_s)

    return make


def _is_piece_square_only(network: Network) -> bool:
    """Whether the network's positional part is zero whatever the position, as the bootstrap network's is."""
    return not any(
        stack.fc2_weight.any()
        or stack.fc2_bias.any()
        or stack.fc0_bias[SKIP_PLUS] != stack.fc0_bias[SKIP_MINUS]
        or (stack.fc0_weight[SKIP_PLUS] != stack.fc0_weight[SKIP_MINUS]).any()
        for stack in network.stacks
    )
