"""Sums of rows of weights, as vectors: the arithmetic of the accumulators."""

from numba import int64

from games.jit import leaf
from nnue_jax.architecture import LAYER_STACKS
from nnue_jax.simd import add, load_i8x32_as_i16, load_i16x32, load_i32x16, store_vector, subtract

LANES = 32  # of int16 in a vector


@leaf
def _change_four(weight, place, sums, is_added):
    """Four neighbouring vectors of sums, with those of a row from `place` on added or subtracted."""
    rows = (
        load_i8x32_as_i16(weight, place),
        load_i8x32_as_i16(weight, place + LANES),
        load_i8x32_as_i16(weight, place + 2 * LANES),
        load_i8x32_as_i16(weight, place + 3 * LANES),
    )
    if is_added:
        return add(sums[0], rows[0]), add(sums[1], rows[1]), add(sums[2], rows[2]), add(sums[3], rows[3])
    return (
        subtract(sums[0], rows[0]),
        subtract(sums[1], rows[1]),
        subtract(sums[2], rows[2]),
        subtract(sums[3], rows[3]),
    )


@leaf
def apply_rows(weight, width, rows, added, removed_from, removed, origin, source, memory, target):
    """sums[target:] = sums[source:] + rows[:added] - rows[removed_from:][:removed], each a row of `weight`.

    `origin` and `memory` are the addresses of the int16 sums read and written; the places count elements.
    """
    step = 4 * LANES if width % (4 * LANES) == 0 else LANES
    for column in range(0, width, step):
        if step == LANES:
            value = load_i16x32(origin, source + column)
            for k in range(added):
                value = add(value, load_i8x32_as_i16(weight, int64(rows[k]) * width + column))
            for k in range(removed_from, removed_from + removed):
                value = subtract(value, load_i8x32_as_i16(weight, int64(rows[k]) * width + column))
            store_vector(memory, target + column, value)
            continue
        place = source + column
        sums = (
            load_i16x32(origin, place),
            load_i16x32(origin, place + LANES),
            load_i16x32(origin, place + 2 * LANES),
            load_i16x32(origin, place + 3 * LANES),
        )
        for k in range(added):
            sums = _change_four(weight, int64(rows[k]) * width + column, sums, True)
        for k in range(removed_from, removed_from + removed):
            sums = _change_four(weight, int64(rows[k]) * width + column, sums, False)
        place = target + column
        store_vector(memory, place, sums[0])
        store_vector(memory, place + LANES, sums[1])
        store_vector(memory, place + 2 * LANES, sums[2])
        store_vector(memory, place + 3 * LANES, sums[3])


@leaf
def apply_psqt_rows(psqt, rows, added, removed_from, removed, origin, source, memory, target):
    """As `apply_rows`, for int32 sums of LAYER_STACKS columns."""
    sums = load_i32x16(origin, source)
    for k in range(added):
        sums = add(sums, load_i32x16(psqt, int64(rows[k]) * LAYER_STACKS))
    for k in range(removed_from, removed_from + removed):
        sums = subtract(sums, load_i32x16(psqt, int64(rows[k]) * LAYER_STACKS))
    store_vector(memory, target, sums)


@leaf
def copy_sums(width, origin, source, memory, target):
    for i in range(0, width, LANES):
        store_vector(memory, target + i, load_i16x32(origin, source + i))
