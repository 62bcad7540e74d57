"""What training data look like: counts, results, and how scores, material, plies and depths are spread."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numba import int64

from games.jit import kernel
from games.xiangqi.geometry import NO_SQUARE, PIECES, SQUARES
from games.xiangqi.tables import ZOBRIST, ZOBRIST_SIDE
from nnue_jax.training.records import Shard

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
SCALES = range(100, 4001, 10)  # among which the best is looked for
_SCORE_OFFSET = 1 << 15
_SCORES = np.arange(-_SCORE_OFFSET, _SCORE_OFFSET)


@kernel
def _keys_kernel(packed, keys):
    for i in range(len(packed)):
        key = int64(ZOBRIST_SIDE) if packed[i].side != 0 else int64(0)
        for piece in range(PIECES):
            square = int64(packed[i].square_of[piece])
            if square != NO_SQUARE:
                key ^= ZOBRIST[piece * SQUARES + square]
        keys[i] = key


def position_keys(packed: np.ndarray) -> np.ndarray:
    """[n] int64, Zobrist key of placement and side to move of each of [n] PACKED."""
    keys = np.zeros(len(packed), np.int64)
    _keys_kernel(packed, keys)
    return keys


def best_scale(counts: np.ndarray) -> tuple[int, float]:
    """(s, mean squared error): the s for which 1 / (1 + exp(-score / s)) fits the points best.

    counts: [3, 65536], positions by result + 1 and score + 32768, from the side to move's view.
    """
    seen = counts.any(axis=0)
    counts, scores = counts[:, seen], _SCORES[seen]

    def error(scale: int) -> float:
        expected = 0.5 + 0.5 * np.tanh(scores / (2 * scale))
        return sum(
            float((counts[i] * np.square(points - expected)).sum()) for i, points in enumerate((0.0, 0.5, 1.0))
        ) / max(1, counts.sum())

    scale = min(SCALES, key=error)
    return scale, error(scale)


class Statistics:
    """Sums over shards; `lines` makes a table of them."""

    def __init__(self):
        self.shards = 0
        self.games = 0
        self.positions = 0
        self.numbers: Counter[str] = Counter()  # of the shards' makers
        self.game_results = np.zeros(3, np.int64)  # lost, drawn, won by White; of games with a record
        self.white_results = np.zeros(3, np.int64)  # of positions
        self.scores = np.zeros((3, 2 * _SCORE_OFFSET), np.int64)  # by result + 1 and score, of the side to move
        self.pieces = np.zeros(PIECES + 1, np.int64)
        self.plies = np.zeros(1 << 16, np.int64)
        self.depths = np.zeros(1 << 8, np.int64)
        self._keys: list[np.ndarray] = []

    def add(self, shard: Shard) -> None:
        records = shard.records
        packed = records["packed"]
        self.shards += 1
        self.games += shard.header.games
        self.positions += len(records)
        self.numbers.update(shard.header.numbers)
        white = np.where(packed["side"] == 0, records["result"], -records["result"]) + 1
        self.white_results += np.bincount(white, minlength=3)
        ends = np.cumsum(shard.game_lengths)[shard.game_lengths > 0]
        self.game_results += np.bincount(white[ends - 1], minlength=3)
        for i in range(3):
            scores = records["score"][records["result"] == i - 1].astype(np.int64)
            self.scores[i] += np.bincount(scores + _SCORE_OFFSET, minlength=2 * _SCORE_OFFSET)
        pieces = (packed["square_of"] != NO_SQUARE).sum(axis=1)
        self.pieces += np.bincount(pieces, minlength=len(self.pieces))
        self.plies += np.bincount(records["ply"], minlength=len(self.plies))
        self.depths += np.bincount(records["depth"], minlength=len(self.depths))
        self._keys.append(position_keys(packed))

    @property
    def duplicates(self) -> int:
        """Positions that were there before: the same placement and side to move."""
        keys = np.sort(np.concatenate([np.zeros(0, np.int64), *self._keys]))
        return int((np.diff(keys) == 0).sum())

    def lines(self) -> list[str]:
        """A table."""
        if self.positions == 0:
            return [f"{self.shards:,} shards without a position"]
        scale, error = best_scale(self.scores)
        rows = [
            ("shards", f"{self.shards:,}"),
            ("games", f"{self.games:,}"),
            ("positions", f"{self.positions:,}, {self.positions / max(1, self.games):.1f} a game"),
            ("games won by White, drawn, lost", _shares(self.game_results[::-1])),
            ("positions of such games", _shares(self.white_results[::-1])),
            ("positions of games won by the mover, drawn, lost", _shares(self.scores.sum(axis=1)[::-1])),
            ("duplicates", f"{100 * self.duplicates / self.positions:.2f} %"),
            ("", "".join(f"{100 * q:>7.0f}%" for q in QUANTILES)),
            ("score", _quantiles(self.scores.sum(axis=0), _SCORE_OFFSET)),
            ("absolute score", _quantiles(_folded(self.scores.sum(axis=0)))),
            ("pieces on the board", _quantiles(self.pieces)),
            ("ply", _quantiles(self.plies)),
        ]
        if self.depths[1:].any():
            rows.append(("depth", _quantiles(self.depths)))
        rows.append(("best scale of the result by score", f"{scale}, mean squared error {error:.5f}"))
        rows += [(name, f"{count:,}") for name, count in sorted(self.numbers.items())]
        width = max(len(name) for name, _ in rows)
        return [f"{name:{width}}  {text}".rstrip() for name, text in rows]


def collect(shards: Iterable[Shard]) -> Statistics:
    statistics = Statistics()
    for shard in shards:
        statistics.add(shard)
    return statistics


def _folded(counts: np.ndarray) -> np.ndarray:
    """Counts by absolute score."""
    folded = np.zeros(_SCORE_OFFSET + 1, np.int64)
    np.add.at(folded, np.abs(_SCORES), counts)
    return folded


def _quantiles(counts: np.ndarray, offset: int = 0) -> str:
    """Values at QUANTILES, when counts[v + offset] says how often v occurs."""
    sums = np.cumsum(counts)
    return "".join(f"{int(np.searchsorted(sums, q * sums[-1])) - offset:>8}" for q in QUANTILES)


def _shares(counts: np.ndarray) -> str:
    return ", ".join(f"{100 * count / max(1, counts.sum()):.1f} %" for count in counts)
