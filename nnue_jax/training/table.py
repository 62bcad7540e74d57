"""The big table on a CPU: rows are gathered, gradients scattered and Adam's step taken by Numba, on several threads.

What the network computes with are integers: weights in int8, rounded sums of the shared and the bucket's part, so that
the forward pass is that of the quantised network. Rounding and clipping are ignored by gradients ("straight through"),
except where an accumulator is clipped.

Rows of a batch are worked on by bucket: the 689 rows of the table that a bucket needs stay in a core's cache. Threads
share the rows of a batch when gathering, buckets of the table when scattering, and piece squares in Adam's step;
each sum has a fixed order, whatever the number of threads.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from games.memory import address_of, aligned_copy, aligned_zeros
from games.xiangqi.geometry import KING
from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARE_FEATURES, PIECE_SQUARES
from nnue_jax.features import local_indices
from nnue_jax.training.features import Batch
from nnue_jax.training.optimiser import AdamStep
from nnue_jax.training.parameters import TABLE_NAMES, Parameters
from nnue_jax.training.table_steps import (
    BIAS_MAX,
    BIAS_SCALE,
    quantise,
    quantise_psqt,
    step_bias,
    step_psqt,
    step_weights,
)
from nnue_jax.training.table_sums import gather, gather_psqt, scatter, scatter_psqt
from nnue_jax.training.vectors import FLOATS

_OWN_KING = [index for (own, kind, _), index in local_indices().items() if own and kind == KING]


class Table:
    """The parameters in front of the layers, with their moments and gradients."""

    def __init__(self, parameters: Parameters, threads: int):
        self.width = len(parameters["bias"])
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="table")
        self.parameters = {name: aligned_copy(np.asarray(parameters[name], np.float32)) for name in TABLE_NAMES}
        self.first, self.second = (
            {name: aligned_zeros(array.shape, np.float32) for name, array in self.parameters.items()} for _ in range(2)
        )
        # Gradients by integers, of the sums of both parts; Adam's step leaves zeros.
        self.weight_gradient = aligned_zeros((PIECE_SQUARE_FEATURES, self.width), np.float32)
        self.psqt_gradient = aligned_zeros((LAYER_STACKS, PIECE_SQUARE_FEATURES), np.float32)
        # What the network computes with.
        self.weight = aligned_zeros((PIECE_SQUARE_FEATURES, self.width), np.int8)
        self.psqt = aligned_zeros((LAYER_STACKS, PIECE_SQUARE_FEATURES), np.int32)
        self.bias = aligned_zeros(self.width, np.int16)
        self.quantise()

    def _on_threads(self, function, count: int) -> None:
        """function(first, end) for even parts of range(count), one a thread."""
        ends = [count * i // self.threads for i in range(self.threads + 1)]
        for task in [self._pool.submit(function, *part) for part in pairwise(ends)]:
            task.result()

    def quantise(self) -> None:
        """Set the integers to the rounded parameters."""
        own = self.parameters
        self.bias[:] = np.rint(np.clip(own["bias"], -BIAS_MAX, BIAS_MAX) * BIAS_SCALE)
        self._on_threads(
            lambda first, end: quantise(own["shared"], own["bucket"], self.weight, first, end), PIECE_SQUARES
        )
        self._on_threads(
            lambda first, end: quantise_psqt(own["psqt_shared"], own["psqt_bucket"], self.psqt, first, end),
            LAYER_STACKS,
        )

    def gather(self, batch: Batch, sums: np.ndarray, transformed: np.ndarray, psqt_sums: np.ndarray) -> None:
        """Fill accumulators [R, W] int16, inputs of fc0 [N, W] uint8 and differences of PSQT sums [N] float32."""
        self._on_threads(
            lambda first, end: gather(
                address_of(self.weight), self.bias, batch.features, batch.lengths, batch.order, sums, transformed,
                first, end,
            ),
            len(batch.order),
        )  # fmt: skip
        self._on_threads(
            lambda first, end: gather_psqt(
                self.psqt, batch.features, batch.lengths, batch.stack_of_tile, batch.tile, psqt_sums, first, end
            ),
            batch.slots,
        )

    def scatter(self, batch: Batch, sums: np.ndarray, inputs_gradient: np.ndarray, psqt_gradient: np.ndarray) -> None:
        """Add to the gradients, given those of the inputs of fc0 [N, W] and of the PSQT differences [N]."""

        def scatter_parts(parts: list[tuple[int, int, int, int]]) -> None:
            for part in parts:
                scatter(
                    sums, batch.features, batch.lengths, batch.order, inputs_gradient, self.weight_gradient, *part
                )  # fmt: skip

        tasks = [
            self._pool.submit(scatter_parts, parts)
            for parts in shares_of_buckets(batch.bucket_ends, self.width // 2, self.threads)
        ]
        scatter_psqt(batch.features, batch.lengths, batch.stack_of_tile, batch.tile, psqt_gradient, self.psqt_gradient)
        for task in tasks:
            task.result()

    def step(self, adam: AdamStep) -> None:
        """Adam's step for all parameters; sets the integers, and the gradients to zero."""
        own, first, second = self.parameters, self.first, self.second
        hyper = adam.array
        # Every row has its own king and the bias once each.
        of_kings = self.weight_gradient.reshape(FEATURE_BUCKETS, PIECE_SQUARES, -1)[:, _OWN_KING].sum((0, 1))
        step_bias(own["bias"], first["bias"], second["bias"], of_kings, self.bias, hyper)
        self._on_threads(
            lambda start, end: step_weights(
                own["shared"], first["shared"], second["shared"], own["bucket"], first["bucket"], second["bucket"],
                self.weight_gradient, self.weight, hyper, start, end,
            ),
            PIECE_SQUARES,
        )  # fmt: skip
        self._on_threads(
            lambda start, end: step_psqt(
                own["psqt_shared"], first["psqt_shared"], second["psqt_shared"], own["psqt_bucket"],
                first["psqt_bucket"], second["psqt_bucket"], self.psqt_gradient, self.psqt, hyper, start, end,
            ),
            LAYER_STACKS,
        )  # fmt: skip


def shares_of_buckets(ends: np.ndarray, columns: int, threads: int) -> list[list[tuple[int, int, int, int]]]:
    """For each thread, parts (first row, end, first column, end) of equal size in all.

    `ends` [24] are the ends of the buckets in the order of rows. A part lies in one bucket, so that no two threads ever
    write to the same place; a bucket that several threads share is divided by columns.
    """
    starts = np.concatenate([[0], ends[:-1]])
    groups = columns // FLOATS
    total = int(ends[-1]) * groups
    shares: list[list[tuple[int, int, int, int]]] = [[] for _ in range(threads)]
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        owners = [(done + (end - start) * group) * threads // max(1, total) for group in range(groups)]
        for owner in sorted(set(owners)):
            if start < end:
                first = owners.index(owner)
                part = (start, end, first * FLOATS, (first + owners.count(owner)) * FLOATS)
                shares[owner].append(part)
        done += (end - start) * groups
    return shares
