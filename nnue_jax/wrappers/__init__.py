"""Evaluators around evaluators, and evaluators without a network: for tests, measurements and caching."""

from nnue_jax.wrappers.cached import CachedEvaluator
from nnue_jax.wrappers.checked import CheckedEvaluator, DisagreementError
from nnue_jax.wrappers.constant import ConstantEvaluator
from nnue_jax.wrappers.delayed import DelayedEvaluator
from nnue_jax.wrappers.random_outputs import RandomEvaluator

__all__ = [
    "CachedEvaluator",
    "CheckedEvaluator",
    "ConstantEvaluator",
    "DelayedEvaluator",
    "DisagreementError",
    "RandomEvaluator",
]
