"""The big table on a CPU: rows are gathered, gradients scattered and Adam's step taken by Numba, on several threads.

What the network computes with are integers: weights in int8, rounded sums of the shared and the bucket's part, so that
the forward pass is that of the quantised network. Rounding and clipping are ignored by gradients ("straight through"),
except where an accumulator is clipped.

Rows of a batch are worked on by bucket: the 689 rows of the table that a bucket needs stay in a core's cache. Threads
share the rows of a batch when gathering, the columns of the table when scattering, and piece squares in Adam's step;
each sum has a fixed order, whatever the number of threads.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numba import float32, int32, int64

from games.jit import kernel, leaf
from games.memory import CACHE_LINE_BYTES, address_of, aligned_copy, aligned_zeros, prefetch
from games.xiangqi.geometry import KING, PIECES
from nnue_jax.architecture import FEATURE_BUCKETS, LAYER_STACKS, PIECE_SQUARE_FEATURES, PIECE_SQUARES
from nnue_jax.features import local_indices
from nnue_jax.reference import CLIP_MAX, PRODUCT_SHIFT
from nnue_jax.rows import apply_rows
from nnue_jax.simd import store_vector
from nnue_jax.training.features import Batch
from nnue_jax.training.optimiser import AdamStep
from nnue_jax.training.parameters import LIMIT, SCALE, TABLE_NAMES, Parameters, limit_of
from nnue_jax.training.vectors import FLOATS, add_floats, load_f32x16

# A product of two accumulators of one is an activation of one: the derivative of the integers' arithmetic in floats.
FLOAT_BYTES, INDEX_BYTES = 4, 2
AHEAD = 3  # rows between asking for what one needs and needing it
_OWN_KING = [index for (own, kind, _), index in local_indices().items() if own and kind == KING]
_PRODUCT_SLOPE = np.float32(1 / (1 << PRODUCT_SHIFT))


_WEIGHT_SCALE, _PSQT_SCALE, _BIAS_SCALE = (np.float32(SCALE[name]) for name in ("weight", "psqt", "bias"))
# Largest integers, and the parameters that they are.
_WEIGHT_LIMIT, _PSQT_LIMIT = (np.float32(LIMIT[name]) for name in ("weight", "psqt"))
_WEIGHT_MAX, _PSQT_MAX, _BIAS_MAX = (np.float32(limit_of(name)) for name in ("weight", "psqt", "bias"))


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
        self.bias[:] = np.rint(np.clip(own["bias"], -_BIAS_MAX, _BIAS_MAX) * _BIAS_SCALE)
        self._on_threads(
            lambda first, end: _quantise(own["shared"], own["bucket"], self.weight, first, end), PIECE_SQUARES
        )
        self._on_threads(
            lambda first, end: _quantise_psqt(own["psqt_shared"], own["psqt_bucket"], self.psqt, first, end),
            LAYER_STACKS,
        )

    def gather(self, batch: Batch, sums: np.ndarray, transformed: np.ndarray, psqt_sums: np.ndarray) -> None:
        """Fill accumulators [R, W] int16, inputs of fc0 [N, W] uint8 and differences of PSQT sums [N] float32."""
        self._on_threads(
            lambda first, end: _gather(
                address_of(self.weight), self.bias, batch.features, batch.lengths, batch.order, sums, transformed,
                first, end,
            ),
            len(batch.order),
        )  # fmt: skip
        self._on_threads(
            lambda first, end: _gather_psqt(
                self.psqt, batch.features, batch.lengths, batch.stack_of_tile, batch.tile, psqt_sums, first, end
            ),
            batch.slots,
        )

    def scatter(self, batch: Batch, sums: np.ndarray, inputs_gradient: np.ndarray, psqt_gradient: np.ndarray) -> None:
        """Add to the gradients, given those of the inputs of fc0 [N, W] and of the PSQT differences [N]."""

        def scatter_parts(parts: list[tuple[int, int, int, int]]) -> None:
            for part in parts:
                _scatter(
                    sums, batch.features, batch.lengths, batch.order, inputs_gradient, self.weight_gradient, *part
                )  # fmt: skip

        tasks = [
            self._pool.submit(scatter_parts, parts)
            for parts in shares_of_buckets(batch.bucket_ends, self.width // 2, self.threads)
        ]
        _scatter_psqt(batch.features, batch.lengths, batch.stack_of_tile, batch.tile, psqt_gradient, self.psqt_gradient)
        for task in tasks:
            task.result()

    def step(self, adam: AdamStep) -> None:
        """Adam's step for all parameters; sets the integers, and the gradients to zero."""
        own, first, second = self.parameters, self.first, self.second
        hyper = adam.array
        # Every row has its own king and the bias once each.
        of_kings = self.weight_gradient.reshape(FEATURE_BUCKETS, PIECE_SQUARES, -1)[:, _OWN_KING].sum((0, 1))
        _step_bias(own["bias"], first["bias"], second["bias"], of_kings, self.bias, hyper)
        self._on_threads(
            lambda start, end: _step_weights(
                own["shared"], first["shared"], second["shared"], own["bucket"], first["bucket"], second["bucket"],
                self.weight_gradient, self.weight, hyper, start, end,
            ),
            PIECE_SQUARES,
        )  # fmt: skip
        self._on_threads(
            lambda start, end: _step_psqt(
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


@leaf
def _clip(value, low, high):
    return min(max(value, low), high)


@kernel
def _quantise(shared, bucket, weight, first, end):
    """For the piece squares `first` to `end`."""
    for f in range(first, end):
        for b in range(FEATURE_BUCKETS):
            own = bucket[b, f]
            row = weight[b * PIECE_SQUARES + f]
            both = shared[f]
            for c in range(len(own)):
                row[c] = int64(_clip(np.rint((both[c] + own[c]) * _WEIGHT_SCALE), -_WEIGHT_LIMIT, _WEIGHT_LIMIT))


@kernel
def _quantise_psqt(shared, bucket, psqt, first, end):
    """For the stacks `first` to `end`."""
    for stack in range(first, end):
        for b in range(FEATURE_BUCKETS):
            for f in range(PIECE_SQUARES):
                whole = np.rint((shared[stack, f] + bucket[stack, b, f]) * _PSQT_SCALE)
                psqt[stack, b * PIECE_SQUARES + f] = int64(_clip(whole, -_PSQT_LIMIT, _PSQT_LIMIT))


@kernel
def _gather(weight, bias, features, lengths, order, sums, transformed, first, end):
    """For the rows number `first` to `end` of `order`."""
    width = len(bias)
    half = width // 2
    for i in range(first, end):
        row = int64(order[i])
        target = sums[row]
        apply_rows(
            weight, width, features[row], int64(lengths[row]), int64(0), int64(0),
            bias.ctypes.data, int64(0), sums.ctypes.data, row * width,
        )  # fmt: skip
        products = transformed[row // 2, (row & 1) * half : (row & 1) * half + half]
        lower = target[:half]
        upper = target[half:]
        for c in range(half):
            one = min(max(int32(lower[c]), int32(0)), int32(CLIP_MAX))
            other = min(max(int32(upper[c]), int32(0)), int32(CLIP_MAX))
            products[c] = (one * other) >> int32(PRODUCT_SHIFT)


@kernel
def _gather_psqt(psqt, features, lengths, stack_of_tile, tile, psqt_sums, first, end):
    """For the slots `first` to `end`."""
    for slot in range(first, end):
        column = psqt[stack_of_tile[slot // tile]]
        total = int64(0)
        for k in range(int64(lengths[2 * slot])):
            total += column[features[2 * slot, k]]
        for k in range(int64(lengths[2 * slot + 1])):
            total -= column[features[2 * slot + 1, k]]
        psqt_sums[slot] = total


@leaf
def _slopes(ours, other, gradient, result):
    """Gradients of clipped accumulators, given those of their products with others."""
    for c in range(len(result)):
        value = int32(ours[c])
        factor = float32(min(max(int32(other[c]), int32(0)), int32(CLIP_MAX)))
        inside = value >= 0 and value <= CLIP_MAX
        result[c] = gradient[c] * factor * _PRODUCT_SLOPE if inside else float32(0)


@leaf
def _add_to(target, values):
    for c in range(len(values)):
        target[c] += values[c]


@leaf
def _add_vector(memory, place, value):
    store_vector(memory, place, add_floats(load_f32x16(memory, place), value))


@leaf
def _add_to_rows(table, width, rows, length, first, values, columns):
    """Add the floats at the address `values`, a multiple of FLOATS, to rows of a table, from column `first` on."""
    c = int64(0)
    while c + 4 * FLOATS <= columns:
        one = load_f32x16(values, c)
        two = load_f32x16(values, c + FLOATS)
        three = load_f32x16(values, c + 2 * FLOATS)
        four = load_f32x16(values, c + 3 * FLOATS)
        for k in range(length):
            place = int64(rows[k]) * width + first + c
            _add_vector(table, place, one)
            _add_vector(table, place + FLOATS, two)
            _add_vector(table, place + 2 * FLOATS, three)
            _add_vector(table, place + 3 * FLOATS, four)
        c += 4 * FLOATS
    while c < columns:
        one = load_f32x16(values, c)
        for k in range(length):
            _add_vector(table, int64(rows[k]) * width + first + c, one)
        c += FLOATS


@leaf
def _prefetch_row(sums, features, inputs_gradient, row, first, columns):
    """Ask for what `_scatter` will need of a row: rows come in an order that the processor does not foresee."""
    width = sums.shape[1]
    half = width // 2
    prefetch(features.ctypes.data, row * PIECES * INDEX_BYTES)
    for c in range(0, columns * FLOAT_BYTES, CACHE_LINE_BYTES):
        prefetch(inputs_gradient.ctypes.data, (row * half + first) * FLOAT_BYTES + c)
    for c in range(0, columns * INDEX_BYTES, CACHE_LINE_BYTES):
        prefetch(sums.ctypes.data, (row * width + first) * INDEX_BYTES + c)
        prefetch(sums.ctypes.data, (row * width + half + first) * INDEX_BYTES + c)


@kernel
def _scatter(sums, features, lengths, order, inputs_gradient, weight_gradient, start, stop, first, end):
    """For the rows number `start` to `stop` of `order` and the columns `first` to `end` of both halves.

    `first` and `end` are multiples of FLOATS.
    """
    width = sums.shape[1]
    half = width // 2
    columns = end - first
    gradients = np.empty(2 * columns, np.float32)
    lower = gradients[:columns]
    upper = gradients[columns:]
    values = int64(gradients.ctypes.data)
    table = int64(weight_gradient.ctypes.data)
    for i in range(start, stop):
        row = int64(order[i])
        length = int64(lengths[row])
        _prefetch_row(sums, features, inputs_gradient, int64(order[min(i + AHEAD, stop - 1)]), first, columns)
        place = (row & 1) * half + first
        gradient = inputs_gradient[row // 2, place : place + columns]
        ours = sums[row, first:end]
        other = sums[row, half + first : half + end]
        _slopes(ours, other, gradient, lower)
        _slopes(other, ours, gradient, upper)
        rows = features[row]
        _add_to_rows(table, width, rows, length, first, values, columns)
        _add_to_rows(table, width, rows, length, half + first, values + columns * FLOAT_BYTES, columns)


@kernel
def _scatter_psqt(features, lengths, stack_of_tile, tile, gradient, psqt_gradient):
    for slot in range(len(gradient)):
        column = psqt_gradient[stack_of_tile[slot // tile]]
        value = gradient[slot]
        for k in range(int64(lengths[2 * slot])):
            column[features[2 * slot, k]] += value
        for k in range(int64(lengths[2 * slot + 1])):
            column[features[2 * slot + 1, k]] -= value


@leaf
def _adam(value, gradient, first, second, rate, decay, hyper):
    """(value, first, second) after a step; numbers, float32."""
    first = hyper[3] * first + hyper[4] * gradient
    second = hyper[5] * second + hyper[6] * gradient * gradient
    way = first * hyper[7] / (np.sqrt(second * hyper[8]) + hyper[9])
    return value - rate * (way + decay * value), first, second


@kernel
def _step_bias(value, first, second, gradient, bias, hyper):
    for c in range(len(value)):
        moved, first[c], second[c] = _adam(
            value[c], gradient[c] * _BIAS_SCALE, first[c], second[c], hyper[0], float32(0), hyper
        )
        value[c] = _clip(moved, -_BIAS_MAX, _BIAS_MAX)
        bias[c] = int64(np.rint(value[c] * _BIAS_SCALE))


@leaf
def _step_row(value, first, second, gradient, scale, rate, decay, hyper):
    """Adam's step of a row; gradients are by integers."""
    for c in range(len(value)):
        value[c], first[c], second[c] = _adam(value[c], gradient[c] * scale, first[c], second[c], rate, decay, hyper)


@leaf
def _finish_row(own, shared, gradient, integers, limit, scale):
    """Limit the sums of own and shared parts, round them, and clear the gradient."""
    for c in range(len(own)):
        own[c] = _clip(own[c], -limit - shared[c], limit - shared[c])
        integers[c] = int32(np.rint((own[c] + shared[c]) * scale))
        gradient[c] = 0


@kernel
def _step_weights(
    shared, shared_first, shared_second, bucket, bucket_first, bucket_second, gradient, weight, hyper, start, end
):
    """For the piece squares `start` to `end`."""
    total = np.empty(shared.shape[1], np.float32)
    for f in range(start, end):
        total[:] = 0
        for b in range(FEATURE_BUCKETS):
            _add_to(total, gradient[b * PIECE_SQUARES + f])
        both = shared[f]
        _step_row(both, shared_first[f], shared_second[f], total, _WEIGHT_SCALE, hyper[0], hyper[2], hyper)
        for c in range(len(both)):
            both[c] = _clip(both[c], -_WEIGHT_MAX, _WEIGHT_MAX)
        for b in range(FEATURE_BUCKETS):
            row = b * PIECE_SQUARES + f
            own = bucket[b, f]
            _step_row(
                own, bucket_first[b, f], bucket_second[b, f], gradient[row], _WEIGHT_SCALE, hyper[1], hyper[2], hyper
            )
            _finish_row(own, both, gradient[row], weight[row], _WEIGHT_MAX, _WEIGHT_SCALE)


@kernel
def _step_psqt(
    shared, shared_first, shared_second, bucket, bucket_first, bucket_second, gradient, psqt, hyper, start, end
):
    """For the stacks `start` to `end`."""
    total = np.empty(PIECE_SQUARES, np.float32)
    for stack in range(start, end):
        total[:] = 0
        for b in range(FEATURE_BUCKETS):
            _add_to(total, gradient[stack, b * PIECE_SQUARES : (b + 1) * PIECE_SQUARES])
        both = shared[stack]
        _step_row(both, shared_first[stack], shared_second[stack], total, _PSQT_SCALE, hyper[0], float32(0), hyper)
        for c in range(len(both)):
            both[c] = _clip(both[c], -_PSQT_MAX, _PSQT_MAX)
        for b in range(FEATURE_BUCKETS):
            columns = slice(b * PIECE_SQUARES, (b + 1) * PIECE_SQUARES)
            own = bucket[stack, b]
            of_bucket = gradient[stack, columns]
            _step_row(
                own, bucket_first[stack, b], bucket_second[stack, b], of_bucket, _PSQT_SCALE, hyper[1], hyper[2], hyper
            )
            _finish_row(own, both, of_bucket, psqt[stack, columns], _PSQT_MAX, _PSQT_SCALE)
