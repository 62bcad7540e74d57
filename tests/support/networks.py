"""Random networks, the same on every machine and with every version of NumPy."""

from functools import cache

import numpy as np

from nets import BOOTSTRAP_NETWORK
from nnue_jax.architecture import HIDDEN, LAYER_STACKS, PIECE_SQUARE_FEATURES, THREAT_FEATURES, Architecture
from nnue_jax.network_file import LayerStack, Network, read_network


class Source:
    """Integers from a raw PCG64 stream, which NumPy guarantees not to change."""

    def __init__(self, seed: int):
        self._stream = np.random.PCG64(seed)

    def uniform(self, shape: tuple[int, ...], amplitude: int, dtype: str) -> np.ndarray:
        """Integers from -amplitude to amplitude."""
        words = self._stream.random_raw(int(np.prod(shape)))
        values = (words % np.uint64(2 * amplitude + 1)).astype(np.int64) - amplitude
        return values.reshape(shape).astype(dtype)


def _random_stack(source: Source, width: int, extreme: bool) -> LayerStack:
    def weight(shape: tuple[int, int], amplitude: int) -> np.ndarray:
        return source.uniform(shape, 127 if extreme else amplitude, "i1")

    return LayerStack(
        fc0_bias=source.uniform((HIDDEN,), 3000, "<i4"),
        fc0_weight=weight((HIDDEN, width), 30),
        fc1_bias=source.uniform((HIDDEN,), 2000, "<i4"),
        fc1_weight=weight((HIDDEN, 2 * HIDDEN), 20),
        fc2_bias=source.uniform((1,), 3000, "<i4"),
        fc2_weight=weight((1, 4 * HIDDEN), 40),
    )


@cache
def bootstrap_network() -> Network:
    """The one whose positional part is silent."""
    return read_network(BOOTSTRAP_NETWORK)


@cache
def random_network(width: int, extreme: bool = False, threats: bool = False) -> Network:
    """A network whose units are neither dead nor saturated, with threat features or without.

    An extreme one is on the brink everywhere: half of its accumulators start near the ends of int16 and wrap
    around, so do the PSQT sums, and the layers meet all their limits.
    """
    source = Source(2 * width + extreme)
    threat_source = Source(2 * width + extreme + 1_000_000)
    threat_count = THREAT_FEATURES if threats else 0
    bias = source.uniform((width,), 200, "<i2")
    if extreme:
        bias[::2] ^= -32768
    return Network(
        architecture=Architecture(width, threats),
        description=f"random, width {width}".encode(),
        transformer_bias=bias,
        threat_weight=threat_source.uniform((threat_count, width), 127 if extreme else 20, "i1"),
        threat_psqt=threat_source.uniform((threat_count, LAYER_STACKS), (1 << 31) - 1 if extreme else 3000, "<i4"),
        piece_square_weight=source.uniform((PIECE_SQUARE_FEATURES, width), 127 if extreme else 30, "i1"),
        piece_square_psqt=source.uniform(
            (PIECE_SQUARE_FEATURES, LAYER_STACKS), (1 << 31) - 1 if extreme else 5000, "<i4"
        ),
        stacks=tuple(_random_stack(source, width, extreme) for _ in range(LAYER_STACKS)),
    )
