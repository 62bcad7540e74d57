"""Adam with decoupled weight decay, and the learning rate's schedule; the same on all devices.

A parameter w with gradient g changes by -rate * (m / (sqrt(v) + epsilon) + decay * w), m and v being the bias-corrected
running means of g and its square. Parts of single buckets and stacks learn at a share of the rate.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import optax

from nnue_jax.training.parameters import limit_of

# Names of parameters, or of groups of them, by what is done to them.
OWN_PARTS = ("bucket", "psqt_bucket", "stack")  # learn at `own_rate`
DECAYING = ("shared", "bucket", "psqt_bucket", "stack")
# What the sum of a shared and an own part is limited as.
_SUMS = {"shared": ("bucket", "weight"), "psqt_shared": ("psqt_bucket", "psqt")}


@dataclass(frozen=True)
class Schedule:
    """A rise from nothing over `warmup_steps`, then half a cosine down to `final_share` of the rate at `steps`."""

    rate: float
    warmup_steps: int
    steps: int
    final_share: float = 0.02

    def rate_at(self, step: int) -> float:
        """Learning rate of step 0, 1, ..."""
        cosine = (1 + math.cos(math.pi * min(1.0, step / max(1, self.steps)))) / 2
        return (
            self.rate
            * min(1.0, (step + 1) / max(1, self.warmup_steps))
            * (self.final_share + (1 - self.final_share) * cosine)
        )


@dataclass(frozen=True)
class AdamSettings:
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    own_rate: float = 0.3


@dataclass(frozen=True)
class AdamStep:
    """The numbers of one step; `number` counts from 1."""

    settings: AdamSettings
    rate: float
    number: int

    @cached_property
    def array(self) -> np.ndarray:
        """[10] float32 for kernels: rate, own rate, decay, betas and what they leave, corrections, epsilon."""
        own = self.settings
        return np.array(
            [
                self.rate,
                self.rate * own.own_rate,
                own.weight_decay,
                own.beta1,
                1 - own.beta1,
                own.beta2,
                1 - own.beta2,
                1 / (1 - own.beta1**self.number),
                1 / (1 - own.beta2**self.number),
                own.epsilon,
            ],
            np.float32,
        )


def adam_directions(settings: AdamSettings) -> optax.GradientTransformation:
    return optax.scale_by_adam(settings.beta1, settings.beta2, settings.epsilon)


def stepped(settings: AdamSettings, parameters: dict, directions: dict, rate: jax.Array) -> dict:
    """Parameters, by group, after a step of this rate into Adam's directions, within their limits."""
    moved = {}
    for group, values in parameters.items():
        decay = settings.weight_decay if group in DECAYING else 0.0
        share = rate * (settings.own_rate if group in OWN_PARTS else 1.0)
        moved[group] = jax.tree.map(
            lambda value, way, share=share, decay=decay: value - share * (way + decay * value),
            values,
            directions[group],
        )
    return limited(moved)


def limited(parameters: dict) -> dict:
    """Parameters of which those of integers, and the sums of shared and own parts, are within their limits."""
    result = dict(parameters)
    if "bias" in result:
        result["bias"] = jnp.clip(result["bias"], -limit_of("bias"), limit_of("bias"))
    if "common" in result:
        pairs = {
            name: _limited_sum(result["common"][name], result["stack"][name], limit_of(name), 0)
            for name in result["common"]
        }
        result["common"] = {name: pair[0] for name, pair in pairs.items()}
        result["stack"] = {name: pair[1] for name, pair in pairs.items()}
    for shared, (own, name) in _SUMS.items():
        if shared in result:
            axis = 0 if own == "bucket" else 1
            result[shared], result[own] = _limited_sum(result[shared], result[own], limit_of(name), axis)
    return result


def _limited_sum(shared, own, limit: float, axis: int):
    shared = jnp.clip(shared, -limit, limit)
    whole = jnp.expand_dims(shared, axis)
    # Only what is beyond the limit changes: the sum and difference of both would cost the smaller one its digits.
    return shared, jnp.clip(own, -limit - whole, limit - whole)
