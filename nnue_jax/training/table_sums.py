"""Sums for the big table: rows of weights gathered into accumulators, and gradients scattered to rows.

Rows come in an order, `features.Batch.order`, in which those of a bucket are together.
"""

import numpy as np
from numba import float32, int32, int64

from games.jit import kernel, leaf
from games.memory import CACHE_LINE_BYTES, prefetch
from games.xiangqi.geometry import PIECES
from nnue_jax.reference import CLIP_MAX, PRODUCT_SHIFT
from nnue_jax.rows import apply_rows
from nnue_jax.simd import store_vector
from nnue_jax.training.vectors import FLOATS, add_floats, load_f32x16

FLOAT_BYTES, INDEX_BYTES = 4, 2
AHEAD = 3  # rows between asking for what one needs and needing it
_PRODUCT_SLOPE = np.float32(1 / (1 << PRODUCT_SHIFT))


@kernel
def gather(weight, bias, features, lengths, order, sums, transformed, first, end):
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
def gather_psqt(psqt, features, lengths, stack_of_tile, tile, psqt_sums, first, end):
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
def scatter(sums, features, lengths, order, inputs_gradient, weight_gradient, start, stop, first, end):
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
def scatter_psqt(features, lengths, stack_of_tile, tile, gradient, psqt_gradient):
    for slot in range(len(gradient)):
        column = psqt_gradient[stack_of_tile[slot // tile]]
        value = gradient[slot]
        for k in range(int64(lengths[2 * slot])):
            column[features[2 * slot, k]] += value
        for k in range(int64(lengths[2 * slot + 1])):
            column[features[2 * slot + 1, k]] -= value
