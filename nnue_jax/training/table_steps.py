"""Adam's step for the big table, and the rounding of its parameters; `optimiser` says what a step is."""

import numpy as np
from numba import float32, int32, int64

from games.jit import kernel, leaf
from nnue_jax.architecture import FEATURE_BUCKETS, PIECE_SQUARES
from nnue_jax.training.parameters import LIMIT, SCALE, limit_of

WEIGHT_SCALE, PSQT_SCALE, BIAS_SCALE = (np.float32(SCALE[name]) for name in ("weight", "psqt", "bias"))
# Largest integers, and the parameters that they are.
WEIGHT_LIMIT, PSQT_LIMIT = (np.float32(LIMIT[name]) for name in ("weight", "psqt"))
WEIGHT_MAX, PSQT_MAX, BIAS_MAX = (np.float32(limit_of(name)) for name in ("weight", "psqt", "bias"))


@leaf
def _clip(value, low, high):
    return min(max(value, low), high)


@kernel
def quantise(shared, bucket, weight, first, end):
    """For the piece squares `first` to `end`."""
    for f in range(first, end):
        for b in range(FEATURE_BUCKETS):
            own = bucket[b, f]
            row = weight[b * PIECE_SQUARES + f]
            both = shared[f]
            for c in range(len(own)):
                row[c] = int64(_clip(np.rint((both[c] + own[c]) * WEIGHT_SCALE), -WEIGHT_LIMIT, WEIGHT_LIMIT))


@kernel
def quantise_psqt(shared, bucket, psqt, first, end):
    """For the stacks `first` to `end`."""
    for stack in range(first, end):
        for b in range(FEATURE_BUCKETS):
            for f in range(PIECE_SQUARES):
                whole = np.rint((shared[stack, f] + bucket[stack, b, f]) * PSQT_SCALE)
                psqt[stack, b * PIECE_SQUARES + f] = int64(_clip(whole, -PSQT_LIMIT, PSQT_LIMIT))


@leaf
def add_to(target, values):
    for c in range(len(values)):
        target[c] += values[c]


@leaf
def _adam(value, gradient, first, second, rate, decay, hyper):
    """(value, first, second) after a step; numbers, float32."""
    first = hyper[3] * first + hyper[4] * gradient
    second = hyper[5] * second + hyper[6] * gradient * gradient
    way = first * hyper[7] / (np.sqrt(second * hyper[8]) + hyper[9])
    return value - rate * (way + decay * value), first, second


@kernel
def step_bias(value, first, second, gradient, bias, hyper):
    for c in range(len(value)):
        moved, first[c], second[c] = _adam(
            value[c], gradient[c] * BIAS_SCALE, first[c], second[c], hyper[0], float32(0), hyper
        )
        value[c] = _clip(moved, -BIAS_MAX, BIAS_MAX)
        bias[c] = int64(np.rint(value[c] * BIAS_SCALE))


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
def step_weights(
    shared, shared_first, shared_second, bucket, bucket_first, bucket_second, gradient, weight, hyper, start, end
):
    """For the piece squares `start` to `end`."""
    total = np.empty(shared.shape[1], np.float32)
    for f in range(start, end):
        total[:] = 0
        for b in range(FEATURE_BUCKETS):
            add_to(total, gradient[b * PIECE_SQUARES + f])
        both = shared[f]
        _step_row(both, shared_first[f], shared_second[f], total, WEIGHT_SCALE, hyper[0], hyper[2], hyper)
        for c in range(len(both)):
            both[c] = _clip(both[c], -WEIGHT_MAX, WEIGHT_MAX)
        for b in range(FEATURE_BUCKETS):
            row = b * PIECE_SQUARES + f
            own = bucket[b, f]
            _step_row(
                own, bucket_first[b, f], bucket_second[b, f], gradient[row], WEIGHT_SCALE, hyper[1], hyper[2], hyper
            )
            _finish_row(own, both, gradient[row], weight[row], WEIGHT_MAX, WEIGHT_SCALE)


@kernel
def step_psqt(
    shared, shared_first, shared_second, bucket, bucket_first, bucket_second, gradient, psqt, hyper, start, end
):
    """For the stacks `start` to `end`."""
    total = np.empty(PIECE_SQUARES, np.float32)
    for stack in range(start, end):
        total[:] = 0
        for b in range(FEATURE_BUCKETS):
            add_to(total, gradient[stack, b * PIECE_SQUARES : (b + 1) * PIECE_SQUARES])
        both = shared[stack]
        _step_row(both, shared_first[stack], shared_second[stack], total, PSQT_SCALE, hyper[0], float32(0), hyper)
        for c in range(len(both)):
            both[c] = _clip(both[c], -PSQT_MAX, PSQT_MAX)
        for b in range(FEATURE_BUCKETS):
            columns = slice(b * PIECE_SQUARES, (b + 1) * PIECE_SQUARES)
            own = bucket[stack, b]
            of_bucket = gradient[stack, columns]
            _step_row(
                own, bucket_first[stack, b], bucket_second[stack, b], of_bucket, PSQT_SCALE, hyper[1], hyper[2], hyper
            )
            _finish_row(own, both, of_bucket, psqt[stack, columns], PSQT_MAX, PSQT_SCALE)
