"""The CPU evaluator: incremental sums (`accumulator`) and the layers behind them in explicit vectors."""

import numpy as np
from numba import int32, int64

from games.integers import truncated_division
from games.jit import kernel, leaf
from games.memory import address_of, aligned_copy, aligned_zeros, load_i32
from games.xiangqi.geometry import NO_SQUARE, PIECES
from games.xiangqi.position import minor_count, rook_count
from nnue_jax.accumulator import CACHE_ENTRIES, EVALUATOR, MAX_ATTACKS, PLIES, bring_up_to_date, reset
from nnue_jax.architecture import HIDDEN, LAYER_STACKS, THREAT_FEATURES
from nnue_jax.features import layer_stack_table
from nnue_jax.network_file import Network
from nnue_jax.reference import (
    ACTIVATION_MAX,
    CLIP_MAX,
    FC0_SHIFT,
    FC0_SQUARE_SHIFT,
    FC1_SHIFT,
    FC1_SQUARE_SHIFT,
    OUTPUT_SCALE,
    POSITIONAL_DENOMINATOR,
    POSITIONAL_NUMERATOR,
    PRODUCT_SHIFT,
    SKIP_MINUS,
    SKIP_PLUS,
)
from nnue_jax.rows import LANES
from nnue_jax.simd import (
    add,
    broadcast_4_bytes,
    dot_u8_i8,
    load_i8x64,
    load_i16x32,
    load_i32x16,
    maximum,
    minimum,
    multiply,
    shift_right_arithmetic,
    shift_right_logical,
    splat_i16x32,
    splat_i32x16,
    store_as_bytes,
    store_vector,
    sum_lanes,
)
from nnue_jax.threat_accumulator import SPARE_LIST, bring_threats_up_to_date
from nnue_jax.threats import threat_table

_LAYER_STACK = layer_stack_table()
_SQUARE_ROOT_CAP = 32767  # a larger output saturates after squaring anyway
_HALF = HIDDEN // 2  # int32 lanes in a vector


@leaf
def layer_stack(position):
    """Layer stack 0 ... 15 of the side to move."""
    us = position.side
    them = 1 - us
    rooks = rook_count(position, us) * 3 + rook_count(position, them)
    minors = minor_count(position, us) * 5 + minor_count(position, them)
    return int64(_LAYER_STACK[rooks * 25 + minors])


@leaf
def _units(evaluator, place):
    """A vector of accumulated units, of piece-square features and threats together."""
    units = load_i16x32(evaluator.accumulators, place)
    if evaluator.threats:
        units = add(units, load_i16x32(evaluator.threat_accumulators, place))
    return units


@leaf
def _psqt_sum(evaluator, place):
    total = int64(load_i32(evaluator.psqt_sums, place))
    if evaluator.threats:
        total += int64(load_i32(evaluator.threat_psqt_sums, place))
    return int64(int32(total))  # the sum of both wraps around, as each does


@leaf
def _transform(evaluator, side, ply):
    """Pairwise products of both accumulators into `transformed`, side to move first."""
    width = evaluator.width
    half = width // 2
    zero = splat_i16x32(0)
    cap = splat_i16x32(CLIP_MAX)
    for part in range(2):
        source = (ply * 2 + (side ^ part)) * width
        for i in range(0, half, LANES):
            first = maximum(minimum(_units(evaluator, source + i), cap), zero)
            second = maximum(minimum(_units(evaluator, source + half + i), cap), zero)
            # 255 * 255 fits 16 bits unsigned, hence the logical shift.
            product = shift_right_logical(multiply(first, second), PRODUCT_SHIFT)
            store_as_bytes(evaluator.transformed, part * half + i, product)


@leaf
def _activate(evaluator, place, outputs, square_shift, shift):
    """Squared activations of 16 outputs to hidden[place:], clipped ones to hidden[place + H:]."""
    cap = splat_i32x16(ACTIVATION_MAX)
    limit = splat_i32x16(_SQUARE_ROOT_CAP)
    root = maximum(minimum(outputs, limit), splat_i32x16(-_SQUARE_ROOT_CAP))
    squared = minimum(shift_right_arithmetic(multiply(root, root), square_shift), cap)
    clipped = maximum(minimum(shift_right_arithmetic(outputs, shift), cap), splat_i32x16(0))
    store_as_bytes(evaluator.hidden, place, squared)
    store_as_bytes(evaluator.hidden, place + HIDDEN, clipped)


@leaf
def _layer(inputs, width, weight, row, low, high):
    """Add to the sums `low` and `high` of 32 outputs the products of `width` bytes and a matrix of tiles at `row`.

    Eight chains of sums hide the latency of the dot products; `width` is a multiple of 16.
    """
    zero = splat_i32x16(0)
    low_1, low_2, low_3 = zero, zero, zero
    high_1, high_2, high_3 = zero, zero, zero
    for i in range(0, width, 16):
        tile = row + i * HIDDEN
        four = broadcast_4_bytes(inputs, i)
        low = dot_u8_i8(low, four, load_i8x64(weight, tile))
        high = dot_u8_i8(high, four, load_i8x64(weight, tile + 64))
        four = broadcast_4_bytes(inputs, i + 4)
        low_1 = dot_u8_i8(low_1, four, load_i8x64(weight, tile + 128))
        high_1 = dot_u8_i8(high_1, four, load_i8x64(weight, tile + 192))
        four = broadcast_4_bytes(inputs, i + 8)
        low_2 = dot_u8_i8(low_2, four, load_i8x64(weight, tile + 256))
        high_2 = dot_u8_i8(high_2, four, load_i8x64(weight, tile + 320))
        four = broadcast_4_bytes(inputs, i + 12)
        low_3 = dot_u8_i8(low_3, four, load_i8x64(weight, tile + 384))
        high_3 = dot_u8_i8(high_3, four, load_i8x64(weight, tile + 448))
    low = add(add(low, low_1), add(low_2, low_3))
    high = add(add(high, high_1), add(high_2, high_3))
    return low, high


@leaf
def _first_layer(evaluator, stack):
    width = evaluator.width
    low = load_i32x16(evaluator.fc0_bias, stack * HIDDEN)
    high = load_i32x16(evaluator.fc0_bias, stack * HIDDEN + _HALF)
    low, high = _layer(evaluator.transformed, width, evaluator.fc0_weight, stack * HIDDEN * width, low, high)
    store_vector(evaluator.fc0_out, 0, low)
    store_vector(evaluator.fc0_out, _HALF, high)
    _activate(evaluator, int64(0), low, FC0_SQUARE_SHIFT, FC0_SHIFT)
    _activate(evaluator, int64(_HALF), high, FC0_SQUARE_SHIFT, FC0_SHIFT)


@leaf
def _second_layer(evaluator, stack):
    inputs = 2 * HIDDEN
    low = load_i32x16(evaluator.fc1_bias, stack * HIDDEN)
    high = load_i32x16(evaluator.fc1_bias, stack * HIDDEN + _HALF)
    low, high = _layer(evaluator.hidden, inputs, evaluator.fc1_weight, stack * HIDDEN * inputs, low, high)
    _activate(evaluator, int64(2 * HIDDEN), low, FC1_SQUARE_SHIFT, FC1_SHIFT)
    _activate(evaluator, int64(2 * HIDDEN + _HALF), high, FC1_SQUARE_SHIFT, FC1_SHIFT)


@leaf
def _output(evaluator, stack):
    row = stack * 4 * HIDDEN
    sums = dot_u8_i8(splat_i32x16(0), load_i8x64(evaluator.hidden, 0), load_i8x64(evaluator.fc2_weight, row))
    sums = dot_u8_i8(sums, load_i8x64(evaluator.hidden, 64), load_i8x64(evaluator.fc2_weight, row + 64))
    skip = int64(load_i32(evaluator.fc0_out, SKIP_PLUS)) - int64(load_i32(evaluator.fc0_out, SKIP_MINUS))
    return int64(sum_lanes(sums)) + int64(load_i32(evaluator.fc2_bias, stack)) + skip


@leaf
def evaluate(evaluator, position, ply):
    """Set `psqt` and `positional` to the output for the position at `ply` of the line."""
    for perspective in range(2):
        bring_up_to_date(evaluator, position, perspective, ply)
    if evaluator.threats:
        bring_threats_up_to_date(evaluator, position, ply)
    stack = layer_stack(position)
    side = position.side
    us = _psqt_sum(evaluator, (ply * 2 + side) * LAYER_STACKS + stack)
    them = _psqt_sum(evaluator, (ply * 2 + 1 - side) * LAYER_STACKS + stack)
    evaluator.psqt = truncated_division(truncated_division(us - them, int64(2)), int64(OUTPUT_SCALE))
    _transform(evaluator, side, ply)
    _first_layer(evaluator, stack)
    _second_layer(evaluator, stack)
    raw = truncated_division(_output(evaluator, stack) * POSITIONAL_NUMERATOR, int64(POSITIONAL_DENOMINATOR))
    evaluator.positional = truncated_division(raw, int64(OUTPUT_SCALE))


@kernel
def evaluate_kernel(evaluator, position):
    """Evaluate one position on its own."""
    reset(evaluator, position)
    evaluate(evaluator, position, int64(0))


def _tiles(weight: np.ndarray) -> np.ndarray:
    """[S, outputs, inputs] -> [S, inputs / 4, outputs, 4], the order in which the dot products read."""
    stacks, outputs, inputs = weight.shape
    return weight.reshape(stacks, outputs, inputs // 4, 4).transpose(0, 2, 1, 3)


class SharedParameters:
    """A network's parameters laid out for the kernels; read only, shared by all evaluators of a process."""

    def __init__(self, network: Network):
        stacks = network.stacks
        self.architecture = network.architecture
        self.arrays = {
            name: aligned_copy(array)
            for name, array in {
                "transformer_bias": network.transformer_bias,
                "piece_square_weight": network.piece_square_weight,
                "piece_square_psqt": network.piece_square_psqt,
                "fc0_weight": _tiles(np.stack([stack.fc0_weight for stack in stacks])),
                "fc0_bias": np.stack([stack.fc0_bias for stack in stacks]),
                "fc1_weight": _tiles(np.stack([stack.fc1_weight for stack in stacks])),
                "fc1_bias": np.stack([stack.fc1_bias for stack in stacks]),
                "fc2_weight": np.stack([stack.fc2_weight for stack in stacks]),
                "fc2_bias": np.stack([stack.fc2_bias for stack in stacks]),
            }.items()
        }
        if network.architecture.threats:
            self.arrays |= {
                name: aligned_copy(array)
                for name, array in {
                    "threat_weight": network.threat_weight,
                    "threat_psqt": network.threat_psqt,
                    "threat_table": threat_table(),
                }.items()
            }


class EvaluatorMemory:
    """Everything an EVALUATOR record points to. It must live as long as the record is used."""

    def __init__(self, parameters: SharedParameters):
        width = parameters.architecture.width
        self.parameters = parameters
        self.arrays = {
            "accumulators": aligned_zeros((PLIES, 2, width), np.int16),
            "psqt_sums": aligned_zeros((PLIES, 2, LAYER_STACKS), np.int32),
            "cached_accumulators": aligned_zeros((CACHE_ENTRIES, width), np.int16),
            "cached_psqt": aligned_zeros((CACHE_ENTRIES, LAYER_STACKS), np.int32),
            "cached_squares": aligned_zeros((CACHE_ENTRIES, PIECES), np.uint8),
            "transformed": aligned_zeros(max(width, 64), np.uint8),
            "hidden": aligned_zeros(4 * HIDDEN, np.uint8),
            "fc0_out": aligned_zeros(HIDDEN, np.int32),
        }
        if parameters.architecture.threats:
            self.arrays |= {
                "threat_accumulators": aligned_zeros((PLIES + 1, 2, width), np.int16),
                "threat_psqt_sums": aligned_zeros((PLIES + 1, 2, LAYER_STACKS), np.int32),
                "threat_lists": aligned_zeros((SPARE_LIST + 1, MAX_ATTACKS), np.uint16),
                "threat_marks": aligned_zeros(THREAT_FEATURES + 1, np.uint8),
            }
        self.arrays["cached_accumulators"][:] = parameters.arrays["transformer_bias"]
        self.arrays["cached_squares"][:] = NO_SQUARE

    def attach(self, evaluator) -> None:
        """Make an EVALUATOR record use this memory."""
        evaluator["width"] = self.parameters.architecture.width
        evaluator["threats"] = self.parameters.architecture.threats
        evaluator["states"]["threat_count"] = 0
        for name, array in (self.parameters.arrays | self.arrays).items():
            evaluator[name] = address_of(array)


class NumbaEvaluator:
    """Evaluates single positions with the kernels that the search uses."""

    def __init__(self, network: Network):
        self._memory = EvaluatorMemory(SharedParameters(network))
        self._evaluator = np.zeros(1, EVALUATOR)
        self._memory.attach(self._evaluator[0])

    def evaluate(self, position: np.ndarray) -> tuple[int, int]:
        """(psqt, positional) of a POSITION array [1], from the side to move's view."""
        record = self._evaluator[0]
        evaluate_kernel(record, position[0])
        return int(record["psqt"]), int(record["positional"])
