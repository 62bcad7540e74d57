"""Training data for tests: positions of random games, with scores that their material and king files explain."""

from collections.abc import Iterator
from functools import cache
from itertools import islice

import numpy as np

from games.xiangqi.geometry import BLACK, CANNON, FILES, KIND_OF, KNIGHT, NO_SQUARE, PAWN, PIECES, PIECES_PER_SIDE, ROOK
from games.xiangqi.packed import pack_fens
from nnue_jax.training.records import RECORD
from tests.support.games import random_games

_VALUES = {ROOK: 1300, CANNON: 770, KNIGHT: 720, PAWN: 120}


STRIDE = 8  # plies from one record to the next


def _fens(seed: int) -> Iterator[str]:
    return (game.fen() for moments in random_games(seed) for game in moments)


@cache
def some_records(count: int, seed: int = 11) -> np.ndarray:
    """[count] RECORD; games are 50 records long."""
    records = np.zeros(count, RECORD)
    records["packed"] = pack_fens(fen for fen in islice(_fens(seed), 0, STRIDE * count, STRIDE))
    squares, side = records["packed"]["square_of"], records["packed"]["side"]
    values = np.array([_VALUES.get(int(kind), 0) for kind in KIND_OF[:PIECES]])
    values[PIECES_PER_SIDE:] *= -1
    score = (values * (squares != NO_SQUARE)).sum(1) + 40 * (squares[:, 0] % FILES == 4)
    records["score"] = np.where(side == BLACK, -score, score)
    rng = np.random.default_rng(seed)
    records["result"] = np.sign(records["score"] + rng.normal(0, 600, count)).astype(np.int8)
    records["ply"] = np.arange(count) % 50
    return records


def mirrored(records: np.ndarray) -> np.ndarray:
    """The same positions with files a and i swapped."""
    result = records.copy()
    squares = result["packed"]["square_of"]
    result["packed"]["square_of"] = np.where(
        squares == NO_SQUARE, NO_SQUARE, squares + FILES - 1 - 2 * (squares % FILES)
    )
    return result
