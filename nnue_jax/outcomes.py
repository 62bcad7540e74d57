"""From the network's outputs to values, centipawns and expected results, for many positions at once.

The slow twins, for one position, are `value.blend`, `value.damp` and `win_rate.WinRate`.
"""

import math

import numpy as np
from numba import int64

from games.jit import kernel, leaf
from games.xiangqi.geometry import CANNON, KIND_OF, KNIGHT, NO_SQUARE, PIECES, ROOK
from nnue_jax.value import (
    CANNON_VALUE,
    KNIGHT_VALUE,
    ROOK_VALUE,
    blend,
    damp,
)
from nnue_jax.win_rate import MODEL_COUNTS

_ATTACK_VALUES = {ROOK: ROOK_VALUE, CANNON: CANNON_VALUE, KNIGHT: KNIGHT_VALUE}
# [32] int64, by identity: what a piece adds to `attacking_material`, and to `model_material`.
_ATTACK_VALUE = np.array([_ATTACK_VALUES.get(int(kind), 0) for kind in KIND_OF[:PIECES]], np.int64)
_MODEL_COUNT = np.array([MODEL_COUNTS.get(int(kind), 0) for kind in KIND_OF[:PIECES]], np.int64)


@leaf
def packed_material(packed):
    """`model_material` of a PACKED record."""
    counted = int64(0)
    for piece in range(PIECES):
        if packed.square_of[piece] != NO_SQUARE:
            counted += _MODEL_COUNT[piece]
    return counted


@kernel
def fill_outcomes(packed, psqt, positional, a_table, b_table, value, cp, win, draw, loss):
    """Fill the int32 arrays [n] `value` to `loss`, which are zero, for all of [n] PACKED that are not in check.

    a_table, b_table: the win-rate model, as `WinRateModel.tables` gives it.
    """
    for i in range(len(packed)):
        if packed[i].in_check:
            continue
        attacking = int64(0)
        for piece in range(PIECES):
            if packed[i].square_of[piece] != NO_SQUARE:
                attacking += _ATTACK_VALUE[piece]
        v = damp(blend(int64(psqt[i]), int64(positional[i]), attacking), int64(packed[i].rule60))
        counted = packed_material(packed[i])
        a, b = a_table[counted], b_table[counted]
        score = 100 * v / a
        value[i] = v
        cp[i] = math.copysign(math.floor(abs(score) + 0.5), score)
        win[i] = 0.5 + 1000 / (1 + math.exp(min((a - v) / b, 700.0)))
        loss[i] = 0.5 + 1000 / (1 + math.exp(min((a + v) / b, 700.0)))
        draw[i] = 1000 - win[i] - loss[i]
