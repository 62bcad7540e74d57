"""A device that does not exist: an evaluator of stated latency and throughput, for measuring what feeds it.

It sums the piece-square part alone, so that even a CPU keeps up with a fast device. For a network whose positional part
is silent, as the bootstrap network's is, that is exact.
"""

import threading
import time

import numpy as np
from numba import int32, int64

from games.integers import truncated_division
from games.jit import kernel, leaf
from games.memory import address_of, aligned_copy, load_i32
from games.xiangqi.geometry import NO_SQUARE, PIECES, PIECES_PER_SIDE, SQUARES
from games.xiangqi.packed import PACKED, unpack_pieces
from games.xiangqi.position import POSITION
from nnue_jax.accumulator import LOCAL_FEATURES, MIRROR_TERMS, orientation
from nnue_jax.architecture import PIECE_SQUARES
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import layer_stack
from nnue_jax.reference import OUTPUT_SCALE

BATCH_SIZES = tuple(1 << bits for bits in range(17))


@leaf
def _mirror_code(packed, side):
    code = int64(0)
    for piece in range(side * PIECES_PER_SIDE, side * PIECES_PER_SIDE + PIECES_PER_SIDE):
        square = int64(packed.square_of[piece])
        if square != NO_SQUARE:
            code += MIRROR_TERMS[piece * SQUARES + square]
    return code


@kernel
def _sum_psqt(packed, position, psqt_address, rows, psqt):
    """psqt outputs of [n] PACKED positions; at the address lie i32 [S, rows], `position` is scratch."""
    for i in range(len(packed)):
        one = packed[i]
        unpack_pieces(one, position)
        us = int64(one.side)
        codes = _mirror_code(one, int64(0)), _mirror_code(one, int64(1))
        own_code, other_code = codes[us], codes[1 - us]
        seen_by_us = orientation(position, us, own_code, other_code)
        seen_by_them = orientation(position, 1 - us, other_code, own_code)
        column = layer_stack(position) * rows
        our_row = column + (seen_by_us >> 1) * PIECE_SQUARES
        their_row = column + (seen_by_them >> 1) * PIECE_SQUARES
        our_table = (us * 2 + (seen_by_us & 1)) * (PIECES + 1) * SQUARES
        their_table = ((1 - us) * 2 + (seen_by_them & 1)) * (PIECES + 1) * SQUARES
        ours, theirs = int64(0), int64(0)
        for piece in range(PIECES):
            square = int64(one.square_of[piece])
            if square != NO_SQUARE:
                place = piece * SQUARES + square
                ours += int64(load_i32(psqt_address, our_row + int64(LOCAL_FEATURES[our_table + place])))
                theirs += int64(load_i32(psqt_address, their_row + int64(LOCAL_FEATURES[their_table + place])))
        difference = int64(int32(ours)) - int64(int32(theirs))  # both wrap around, as in every evaluator
        psqt[i] = truncated_division(truncated_division(difference, int64(2)), int64(OUTPUT_SCALE))


class SimulatedDevice(Evaluator):
    """Takes latency_us for a batch, and 1 / positions_per_s more for each position; computes one batch at a time.

    The latencies of several batches overlap, as those of a queue on a device do.
    """

    name = "simulated"
    preferred_batch = 1024
    maximum_batch = BATCH_SIZES[-1]
    batch_sizes = BATCH_SIZES

    def __init__(self, network: Network, latency_us: float = 200.0, positions_per_s: float = 20e6):
        if latency_us < 0 or positions_per_s <= 0:
            raise ValueError(
                f"A device with a latency of {latency_us} µs and {positions_per_s} positions/s is impossible; "
                "expected at least 0 µs and more than 0 positions/s."
            )
        self.device = f"simulated: {latency_us:g} µs, {positions_per_s / 1e6:g} million positions/s"
        self._latency_s = latency_us / 1e6
        self._position_s = 1 / positions_per_s
        self._psqt = aligned_copy(network.piece_square_psqt.T)
        self._scratch = threading.local()
        self._lock = threading.Lock()
        self._free_at = 0.0

    def warm_up(self) -> None:
        self.outputs(np.zeros(0, PACKED))

    def begin(self, packed: np.ndarray):
        begun_at = time.perf_counter()
        with self._lock:
            self._free_at = max(self._free_at, begun_at) + self._position_s * len(packed)
            ready_at = self._free_at + self._latency_s
        psqt = np.empty(len(packed), np.int32)
        _sum_psqt(packed, self._position(), address_of(self._psqt), self._psqt.shape[1], psqt)
        return ready_at, psqt

    def finish(self, begun) -> tuple[np.ndarray, np.ndarray]:
        ready_at, psqt = begun
        left_s = ready_at - time.perf_counter()
        if left_s > 0:
            time.sleep(left_s)
        return psqt, np.zeros_like(psqt)

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.finish(self.begin(np.ascontiguousarray(packed)))

    def _position(self):
        """A POSITION record of this thread's own."""
        position = getattr(self._scratch, "position", None)
        if position is None:
            position = self._scratch.position = np.zeros(1, POSITION)
            position["square_of"] = NO_SQUARE
        return position[0]
