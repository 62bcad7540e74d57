"""Two evaluators that must agree."""

import numpy as np

from games.xiangqi.fen import format_fen
from games.xiangqi.packed import position_of
from nnue_jax.evaluator import Evaluator


class DisagreementError(ValueError):
    """Two evaluators have given different outputs; the message is a sentence with the first such position."""


class CheckedEvaluator(Evaluator):
    """The outputs of `first`, once `second` has given the same ones; DisagreementError if it gives others."""

    def __init__(self, first: Evaluator, second: Evaluator):
        self.first = first
        self.second = second
        self.name = f"{first.name} checked by {second.name}"
        self.device = first.device
        self.win_rate_model = first.win_rate_model
        self.preferred_batch = first.preferred_batch
        self.maximum_batch = min(first.maximum_batch, second.maximum_batch)

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        psqt, positional = self.first.outputs(packed)
        other_psqt, other_positional = self.second.outputs(packed)
        differing = np.flatnonzero((psqt != other_psqt) | (positional != other_positional))
        if differing.size:
            number = differing[0]
            record = packed[number]
            fen = format_fen(position_of(record), int(record["rule60"]), int(record["side"]))
            raise DisagreementError(
                f"Position {number} of {len(packed)}, '{fen}', has PSQT and positional outputs "
                f"{psqt[number]} and {positional[number]} by {self.first.name}, "
                f"{other_psqt[number]} and {other_positional[number]} by {self.second.name}; expected the same."
            )
        return psqt, positional
