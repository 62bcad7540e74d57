"""The network as a function that can be differentiated: `reference`'s arithmetic in float32, integer by integer.

Parameters are rounded and activations cut down as in the quantised network, so outputs are equal to its, not only near
them, as long as no sum passes 2**24. Gradients go straight through the rounding, and end where something is clipped.

Shapes: N slots, T tiles of slots that share a layer stack (see `features`), others as in `architecture`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from nnue_jax.architecture import HIDDEN
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
from nnue_jax.training.parameters import LIMIT, SCALE

COMPLEXITY_DIVISOR = 11743  # of `value.blend`
_SQUARE_ROOT_CAP = 32767  # a larger output saturates after squaring anyway
_POSITIONAL_SCALE = POSITIONAL_NUMERATOR / POSITIONAL_DENOMINATOR  # 75 / 128, which float32 holds


class Targets(NamedTuple):
    """What a batch says of its positions, [N] each; see `features.Batch`."""

    weight: jax.Array
    score: jax.Array
    result: jax.Array
    gain: jax.Array


class Aim(NamedTuple):
    """What the loss compares. scale: internal units of one logit. score_share: of the target, the rest is the result.

    is_searched: whether the value is what the search makes of the outputs, or their sum.
    """

    scale: float
    score_share: float
    is_searched: bool = True


@jax.custom_jvp
def _round(value: jax.Array) -> jax.Array:
    return jnp.round(value)


@jax.custom_jvp
def _truncate(value: jax.Array) -> jax.Array:
    return jnp.trunc(value)


for _rounding in (_round, _truncate):
    _rounding.defjvp(lambda values, tangents, rounding=_rounding: (rounding(*values), *tangents))


def integers(name: str, parameter: jax.Array) -> jax.Array:
    """The integers that a parameter quantises to."""
    return jnp.clip(_round(parameter * SCALE[name]), -LIMIT[name], LIMIT[name])


def _inside(value: jax.Array, high: int) -> jax.Array:
    return (value >= 0) & (value <= high)


@jax.custom_jvp
def products(sums: jax.Array) -> jax.Array:
    """Accumulators [N, 2, W] of us and them -> inputs of fc0 [N, W]."""
    first, second = jnp.split(jnp.clip(sums, 0, CLIP_MAX), 2, axis=-1)
    return jnp.floor(first * second / (1 << PRODUCT_SHIFT)).reshape(len(sums), -1)


@products.defjvp
def _products_jvp(values, tangents):
    (sums,), (change,) = values, tangents
    first, second = jnp.split(jnp.clip(sums, 0, CLIP_MAX), 2, axis=-1)
    change_first, change_second = jnp.split(jnp.where(_inside(sums, CLIP_MAX), change, 0), 2, axis=-1)
    slope = (change_first * second + change_second * first) / (1 << PRODUCT_SHIFT)
    return products(sums), slope.reshape(len(sums), -1)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _squared(outputs: jax.Array, shift: int) -> jax.Array:
    root = jnp.clip(outputs, -_SQUARE_ROOT_CAP, _SQUARE_ROOT_CAP).astype(jnp.int32)
    return jnp.minimum(root * root >> shift, ACTIVATION_MAX).astype(jnp.float32)


@_squared.defjvp
def _squared_jvp(shift, values, tangents):
    (outputs,), (change,) = values, tangents
    inside = outputs * outputs <= (ACTIVATION_MAX + 1) << shift
    return _squared(outputs, shift), jnp.where(inside, outputs, 0) * (2 / (1 << shift)) * change


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _clipped(outputs: jax.Array, shift: int) -> jax.Array:
    return jnp.clip(jnp.floor(outputs / (1 << shift)), 0, ACTIVATION_MAX)


@_clipped.defjvp
def _clipped_jvp(shift, values, tangents):
    (outputs,), (change,) = values, tangents
    inside = _inside(outputs, (ACTIVATION_MAX + 1) << shift)
    return _clipped(outputs, shift), jnp.where(inside, change, 0) / (1 << shift)


def _activations(outputs: jax.Array, square_shift: int, shift: int) -> tuple[jax.Array, jax.Array]:
    """(squared, clipped)."""
    return _squared(outputs, square_shift), _clipped(outputs, shift)


def _affine(inputs: jax.Array, weight: jax.Array) -> jax.Array:
    """[T, t, inputs], [T, outputs, inputs] -> [T, t, outputs]; with this order of the weights derivatives are fast."""
    return jnp.einsum("tni,toi->tno", inputs, weight, precision=lax.Precision.HIGHEST)


def effective_layers(common: dict, stack: dict) -> dict:
    """Integer parameters of all stacks, with an axis [S] in front."""
    return {name: integers(name, common[name] + stack[name]) for name in common}


def positional(common: dict, stack: dict, inputs: jax.Array, stack_of_tile: jax.Array) -> jax.Array:
    """[N] positional outputs, in internal units, from the inputs of fc0 [N, W]."""
    layers = {
        name: jnp.take(array, stack_of_tile, axis=0, mode="clip")
        for name, array in effective_layers(common, stack).items()
    }
    tiles = inputs.reshape(len(stack_of_tile), -1, inputs.shape[-1])
    fc0 = _affine(tiles, layers["fc0_weight"]) + layers["fc0_bias"][:, None]
    hidden0 = _activations(fc0, FC0_SQUARE_SHIFT, FC0_SHIFT)
    fc1 = layers["fc1_bias"][:, None]
    for part, hidden in enumerate(hidden0):
        fc1 = fc1 + _affine(hidden, layers["fc1_weight"][..., part * HIDDEN : (part + 1) * HIDDEN])
    hidden1 = _activations(fc1, FC1_SQUARE_SHIFT, FC1_SHIFT)
    fc2 = layers["fc2_bias"][:, None]
    for part, hidden in enumerate((*hidden0, *hidden1)):
        fc2 = fc2 + _affine(hidden, layers["fc2_weight"][..., part * HIDDEN : (part + 1) * HIDDEN])
    output = fc2[..., 0] + fc0[..., SKIP_PLUS] - fc0[..., SKIP_MINUS]
    raw = _truncate(output * _POSITIONAL_SCALE)
    return _truncate(raw / OUTPUT_SCALE).reshape(-1)


def psqt_output(psqt_sums: jax.Array) -> jax.Array:
    """[N] psqt outputs, in internal units, from the differences of the sums of us and them."""
    return _truncate(_truncate(psqt_sums / 2) / OUTPUT_SCALE)


def search_value(psqt: jax.Array, positional: jax.Array, gain: jax.Array) -> jax.Array:
    """`value.damp` of `value.blend`, without rounding; `gain` is what material and the 60-move counter do."""
    value = psqt + positional
    return (value - value * jnp.abs(psqt - positional) / COMPLEXITY_DIVISOR) * gain


def value_of(aim: Aim, psqt: jax.Array, positional: jax.Array, targets: Targets) -> jax.Array:
    return search_value(psqt, positional, targets.gain) if aim.is_searched else psqt + positional


def losses(aim: Aim, value: jax.Array, targets: Targets) -> jax.Array:
    """[3] sums over the positions of squared errors of the expected points: against the mixture, score and result."""
    expected = jax.nn.sigmoid(value / aim.scale)
    of_score = jax.nn.sigmoid(targets.score / aim.scale)
    mixed = aim.score_share * of_score + (1 - aim.score_share) * targets.result
    goals = jnp.stack([mixed, of_score, targets.result])
    return (jnp.square(expected - goals) * targets.weight).sum(-1)


def mean_loss(aim: Aim, value: jax.Array, targets: Targets) -> jax.Array:
    """What is minimised: the mean of the first of `losses`."""
    return losses(aim, value, targets)[0] / targets.weight.sum()
