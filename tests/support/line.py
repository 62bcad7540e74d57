"""A walk through the game tree with the incremental evaluator, as the search does it."""

import numpy as np

from games.jit import kernel
from games.xiangqi.movegen import in_check_kernel, legal_moves
from games.xiangqi.position import make_move, pass_move, unmake_move
from nnue_jax.accumulator import EVALUATOR, PLIES, push, push_pass, reset
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import EvaluatorMemory, SharedParameters, evaluate


@kernel
def _reset(evaluator, position):
    reset(evaluator, position)


@kernel
def _play(evaluator, position, ply, move):
    captured = make_move(position, move)
    push(evaluator, position, ply, move, captured)
    return captured


@kernel
def _pass(evaluator, position, ply):
    pass_move(position)
    push_pass(evaluator, ply)


@kernel
def _unmake(position, move, captured):
    unmake_move(position, move, captured)


@kernel
def _unpass(position):
    pass_move(position)


@kernel
def _evaluate(evaluator, position, ply):
    evaluate(evaluator, position, ply)


class Line:
    """A position at the end of a line of moves and passes from a root.

    The accumulators and the refresh cache live as long as the line, so a new root finds the cache of the old one.
    """

    MAX_PLY = PLIES - 1

    def __init__(self, network: Network):
        self._memory = EvaluatorMemory(SharedParameters(network))
        self._evaluator = np.zeros(1, EVALUATOR)
        self._memory.attach(self._evaluator[0])

    def start(self, position: np.ndarray) -> None:
        self.position = position.copy()
        self._played: list[tuple[int, int] | None] = []
        _reset(self._evaluator[0], self.position[0])

    @property
    def ply(self) -> int:
        return len(self._played)

    @property
    def record(self):
        """POSITION record."""
        return self.position[0]

    @property
    def in_check(self) -> bool:
        return bool(in_check_kernel(self.record))

    def legal_moves(self) -> list[int]:
        return legal_moves(self.position)

    def play(self, move: int) -> int:
        """Returns the identity captured, or EMPTY."""
        captured = _play(self._evaluator[0], self.record, self.ply, move)
        self._played.append((move, captured))
        return captured

    def pass_move(self) -> None:
        _pass(self._evaluator[0], self.record, self.ply)
        self._played.append(None)

    def take_back(self) -> None:
        """Undo the last move or pass; the evaluator is not told, as its states below are still right."""
        played = self._played.pop()
        if played is None:
            _unpass(self.record)
        else:
            _unmake(self.record, *played)

    def evaluate(self) -> tuple[int, int]:
        """(psqt, positional)."""
        evaluator = self._evaluator[0]
        _evaluate(evaluator, self.record, self.ply)
        return int(evaluator["psqt"]), int(evaluator["positional"])

    def orientation(self, perspective: int) -> int:
        return int(self._evaluator["states"][0, self.ply]["orientation"][perspective])

    def sums(self, perspective: int) -> tuple[np.ndarray, np.ndarray]:
        """([W] int16, [S] int32) of the present ply, of all features together, valid once evaluated."""
        arrays = self._memory.arrays
        hidden, psqt = (arrays[name][self.ply, perspective] for name in ("accumulators", "psqt_sums"))
        if self._evaluator[0]["threats"]:
            hidden = hidden + arrays["threat_accumulators"][self.ply, perspective]
            psqt = psqt + arrays["threat_psqt_sums"][self.ply, perspective]
        return hidden, psqt
