"""The network's layers on a device, each in the forms that suit different processors.

All forms are exact. Products run in float32, which holds every integer below 2**24: activations are at most 127 and
weights at least -128, so the sums of up to EXACT_INPUTS products stay below that, and longer ones are split. Biases,
and all that may wrap around, are added as integers.

Shapes: n positions; W, Q, T, S, H as in `architecture`.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
from jax import lax

from nnue_jax.architecture import FEATURE_BUCKETS, HIDDEN, LAYER_STACKS, PIECE_SQUARE_FEATURES, PIECE_SQUARES
from nnue_jax.jax_features import PieceSquares
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
from nnue_jax.threats import NO_FEATURE

EXACT_INPUTS = 1024
assert EXACT_INPUTS * ACTIVATION_MAX * 128 < 1 << 24

TILE_POSITIONS = 32  # positions that go through the layers of one stack together; best of 16, 32, 64 on a CPU
HOT_POSITIONS = 1024  # positions whose features are spread out at once, 66 kB each
THREAT_GROUP = 24  # threats added at once; best of 8, 16, 24, 32 on a CPU, and most positions have fewer

_SQUARE_ROOT_CAP = 32767  # a larger output saturates after squaring anyway
_PSQT_SCALE = Fraction(1, 2 * OUTPUT_SCALE)
_POSITIONAL_SCALE = Fraction(POSITIONAL_NUMERATOR, POSITIONAL_DENOMINATOR * OUTPUT_SCALE)


def looped_rows(weight: jax.Array, features: jax.Array) -> jax.Array:
    """[m, W] int16 sums of the rows of weight [., W] int8 that features [m, .] select."""
    return lax.map(lambda row: _sum_of_rows(weight, row), features)


def _sum_of_rows(weight: jax.Array, features: jax.Array) -> jax.Array:
    # Other ways of indexing allow for negative indices, and take ten times as long.
    return jnp.take(weight, features, axis=0, mode="clip").sum(-2, dtype=jnp.int16)


def gathered_rows(weight: jax.Array, features: jax.Array) -> jax.Array:
    """`looped_rows` in one step, for processors with many lanes."""
    return _sum_of_rows(weight, features)


def multiplied_rows(weight: jax.Array, found: PieceSquares) -> jax.Array:
    """[2n, W] int16 piece-square sums as a matrix product, for processors that do little else well.

    The features of a position are spread out to Q zeros and ones. Eight bits are enough for them and for the
    weights [Q, W] bfloat16; sums are float32.
    """
    bucket, local = found.bucket.reshape(-1), found.local.reshape(-1, found.local.shape[-1])

    def product(part):
        bucket, local = part
        in_block = (local[:, :, None] == jnp.arange(PIECE_SQUARES)).any(1)
        is_block = bucket[:, None] == jnp.arange(FEATURE_BUCKETS)
        hot = (is_block[:, :, None] & in_block[:, None, :]).reshape(-1, PIECE_SQUARE_FEATURES)
        sums = jnp.matmul(hot.astype(jnp.bfloat16), weight, preferred_element_type=jnp.float32)
        return sums.astype(jnp.int32).astype(jnp.int16)

    return _in_parts(product, (bucket, local), 2 * HOT_POSITIONS)


def _in_parts(function, arrays, size: int):
    """function(arrays) for arrays [m, ...], computed for at most `size` rows at a time."""
    rows = len(arrays[0])
    if rows <= size or rows % size:
        return function(arrays)
    parts = lax.map(function, tuple(array.reshape(-1, size, *array.shape[1:]) for array in arrays))
    return parts.reshape(rows, *parts.shape[2:])


def psqt_of_stack(psqt: jax.Array, features: jax.Array, layer_stack: jax.Array) -> jax.Array:
    """[n, 2] int32 sums of one column, from the flat columns [S * rows] and features [n, 2, .]."""
    rows = len(psqt) // LAYER_STACKS
    return jnp.take(psqt, layer_stack[:, None, None] * rows + features, mode="clip").sum(-1)


def threat_sums(sum_rows, weight, psqt, features: jax.Array, layer_stack: jax.Array) -> tuple[jax.Array, jax.Array]:
    """([2n, W] int16, [n, 2] int32) sums for threat features [n, 2, A], most of which are NO_FEATURE.

    They are sorted, so that NO_FEATURE comes last, and added in groups, as many as the position with most of them
    needs.
    """
    features = jnp.sort(features, axis=-1)
    active = (features != NO_FEATURE).sum(-1).max()
    filling = -features.shape[-1] % THREAT_GROUP
    features = jnp.pad(features, ((0, 0), (0, 0), (0, filling)), constant_values=NO_FEATURE)

    def group_sums(group):
        of_group = lax.dynamic_slice_in_dim(features, group * THREAT_GROUP, THREAT_GROUP, axis=2)
        hidden = sum_rows(weight, of_group.reshape(-1, THREAT_GROUP))
        return hidden, psqt_of_stack(psqt, of_group, layer_stack)

    def add_group(group, sums):
        return jax.tree.map(jnp.add, sums, group_sums(group))

    return lax.fori_loop(1, -(-active // THREAT_GROUP), add_group, group_sums(0))


def transform(hidden: jax.Array) -> jax.Array:
    """[n, 2, W] int16 accumulators of us and them -> [n, W] float32 inputs of fc0."""
    half = hidden.shape[-1] // 2

    def products(perspective):
        clipped = jnp.clip(hidden[:, perspective], 0, CLIP_MAX).astype(jnp.int32)
        return (clipped[:, :half] * clipped[:, half:] >> PRODUCT_SHIFT).astype(jnp.float32)

    # Both perspectives at once, and a change of shape, would be neater; a CPU then takes as long as for all the rest.
    return jnp.concatenate([products(0), products(1)], axis=1)


def _product(inputs: jax.Array, weight: jax.Array) -> jax.Array:
    """[n, inputs] and [inputs, outputs] float32 integers -> [n, outputs] int32."""
    parts = [
        jnp.matmul(
            inputs[:, start : start + EXACT_INPUTS],
            weight[start : start + EXACT_INPUTS],
            precision=lax.Precision.HIGHEST,
        ).astype(jnp.int32)
        for start in range(0, inputs.shape[1], EXACT_INPUTS)
    ]
    return sum(parts[1:], parts[0])


def _activations(outputs: jax.Array, square_shift: int, shift: int) -> tuple[jax.Array, jax.Array]:
    """int32 outputs -> float32 activations, (squared, clipped)."""
    root = jnp.clip(outputs, -_SQUARE_ROOT_CAP, _SQUARE_ROOT_CAP)
    squared = jnp.minimum(root * root >> square_shift, ACTIVATION_MAX)
    clipped = jnp.clip(outputs >> shift, 0, ACTIVATION_MAX)
    return squared.astype(jnp.float32), clipped.astype(jnp.float32)


def _propagate(product, stack, inputs: jax.Array) -> jax.Array:
    """[n] int32 positional outputs from [n, W] inputs of fc0.

    `product` multiplies inputs with the weights of each position's stack; `stack` holds all of its parameters. The
    two kinds of activations are kept apart, since joining them costs more than all products.
    """
    fc0 = product(inputs, stack["fc0_weight"]) + stack["fc0_bias"]
    hidden0 = _activations(fc0, FC0_SQUARE_SHIFT, FC0_SHIFT)
    fc1 = stack["fc1_bias"]
    for part, hidden in enumerate(hidden0):
        fc1 = fc1 + product(hidden, stack["fc1_weight"][..., part * HIDDEN : (part + 1) * HIDDEN, :])
    hidden1 = _activations(fc1, FC1_SQUARE_SHIFT, FC1_SHIFT)
    fc2 = stack["fc2_bias"]
    for part, hidden in enumerate((*hidden0, *hidden1)):
        weight = stack["fc2_weight"][..., part * HIDDEN : (part + 1) * HIDDEN]
        fc2 = fc2 + (hidden * weight).sum(-1).astype(jnp.int32)
    return scaled(_POSITIONAL_SCALE, [fc2, fc0[:, SKIP_PLUS]], [fc0[:, SKIP_MINUS]])


def by_tiles(stacks: dict[str, jax.Array], inputs: jax.Array, layer_stack: jax.Array) -> jax.Array:
    """[n] int32 positional outputs of positions in ascending order of layer stack.

    A tile of positions goes through every stack from its first to its last one, which is mostly one.
    """
    positions = len(inputs)
    tile = min(TILE_POSITIONS, positions)
    if positions % tile:
        tile = positions

    def evaluate_tile(part):
        inputs, layer_stack = part

        def evaluate_stack(number, outputs):
            stack = {name: lax.dynamic_index_in_dim(array, number, keepdims=False) for name, array in stacks.items()}
            return jnp.where(layer_stack == number, _propagate(_product, stack, inputs), outputs)

        return lax.fori_loop(layer_stack[0], layer_stack[-1] + 1, evaluate_stack, jnp.zeros(tile, jnp.int32))

    return lax.map(evaluate_tile, (inputs.reshape(-1, tile, inputs.shape[1]), layer_stack.reshape(-1, tile))).ravel()


def through_all_stacks(stacks: dict[str, jax.Array], inputs: jax.Array, layer_stack: jax.Array) -> jax.Array:
    """[n] int32 positional outputs of positions in any order.

    Every position goes through all stacks in one product a layer, and keeps the outputs of its own.
    """
    is_stack = layer_stack[:, None, None] == jnp.arange(LAYER_STACKS)[:, None]

    def product(inputs, weight):
        together = weight.transpose(1, 0, 2).reshape(weight.shape[1], -1)
        outputs = _product(inputs, together).reshape(-1, LAYER_STACKS, weight.shape[2])
        return jnp.where(is_stack, outputs, 0).sum(1)

    of_each = {
        name: array if name in ("fc0_weight", "fc1_weight") else jnp.take(array, layer_stack, axis=0, mode="clip")
        for name, array in stacks.items()
    }
    return _propagate(product, of_each, inputs)


def psqt_output(sums: jax.Array) -> jax.Array:
    """[n, 2] int32 sums of us and them -> [n] int32."""
    return scaled(_PSQT_SCALE, [sums[:, 0]], [sums[:, 1]])


def scaled(scale: Fraction, added: list[jax.Array], subtracted: list[jax.Array]) -> jax.Array:
    """scale * (sum of `added` - sum of `subtracted`), rounded toward zero; exact for all int32 operands.

    The denominator is a power of two. A sum may need more than 32 bits, so quotients and remainders by the denominator
    are summed apart.
    """
    mask = scale.denominator - 1
    shift = mask.bit_length()
    high = sum(term >> shift for term in added) - sum(term >> shift for term in subtracted)
    low = sum(term & mask for term in added) - sum(term & mask for term in subtracted)
    high += low >> shift
    low = scale.numerator * (low & mask)
    floor = scale.numerator * high + (low >> shift)
    return floor + ((floor < 0) & (low & mask != 0))
