"""The backends by name, and which of them are there.

reference    NumPy, the specification: slow
numba        the kernels of the search, on all processors this process may use
jax          JAX on its default device
jax:cpu, jax:gpu, jax:tpu    on all devices of that kind; jax:gpu:0 on one of them
auto         jax on an accelerator if there is one, numba otherwise
"""

BACKENDS = ("auto", "reference", "numba", "jax", "jax:cpu", "jax:gpu", "jax:tpu")


class BackendError(ValueError):
    """A backend that is unknown or not there; the message lists those that are."""
