"""The backend `numba`: the kernels of the search, used on many positions at once, on several threads."""

import queue
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import int64

from games.jit import kernel
from games.processors import available_processors
from games.xiangqi.geometry import NO_SQUARE
from games.xiangqi.packed import unpack, unpack_pieces
from games.xiangqi.position import POSITION
from nnue_jax.accumulator import EVALUATOR, reset
from nnue_jax.evaluator import Evaluator
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import EvaluatorMemory, SharedParameters, evaluate

PREFERRED_BATCH = 1024
MAXIMUM_BATCH = 1 << 20
SHARE = 4096  # positions that one thread takes at a time


@kernel
def _fill_outputs(evaluator, position, packed, psqt, positional):
    """Evaluate [n] PACKED positions one after the other; each finds its sums by way of those before it."""
    for i in range(len(packed)):
        if evaluator.threats:
            unpack(packed[i], position)
        else:
            unpack_pieces(packed[i], position)
        reset(evaluator, position)
        evaluate(evaluator, position, int64(0))
        psqt[i] = evaluator.psqt
        positional[i] = evaluator.positional


class _Worker:
    """What one thread needs to evaluate."""

    def __init__(self, parameters: SharedParameters):
        self._memory = EvaluatorMemory(parameters)
        self._evaluator = np.zeros(1, EVALUATOR)
        self._memory.attach(self._evaluator[0])
        self._position = np.zeros(1, POSITION)
        self._position["square_of"] = NO_SQUARE

    def fill(self, packed: np.ndarray, psqt: np.ndarray, positional: np.ndarray) -> None:
        _fill_outputs(self._evaluator[0], self._position[0], packed, psqt, positional)


class NumbaBatchEvaluator(Evaluator):
    """Evaluates on `threads` threads, by default one for each processor that this process may use."""

    name = "numba"
    preferred_batch = PREFERRED_BATCH
    maximum_batch = MAXIMUM_BATCH

    def __init__(self, network: Network, threads: int | None = None):
        self.threads = threads or len(available_processors())
        self.device = f"{self.threads} CPU thread{'s' if self.threads > 1 else ''}"
        parameters = SharedParameters(network)
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for _ in range(self.threads):
            self._idle.put(_Worker(parameters))
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="evaluator")

    def outputs(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        psqt, positional = (np.zeros(len(packed), np.int32) for _ in range(2))
        packed = np.ascontiguousarray(packed)
        shares = [slice(start, start + SHARE) for start in range(0, len(packed), SHARE)]
        if self.threads == 1 or len(shares) == 1:
            self._fill(packed, psqt, positional)
        else:
            tasks = [self._pool.submit(self._fill, packed[share], psqt[share], positional[share]) for share in shares]
            for task in tasks:
                task.result()
        return psqt, positional

    def _fill(self, packed: np.ndarray, psqt: np.ndarray, positional: np.ndarray) -> None:
        worker = self._idle.get()
        try:
            worker.fill(packed, psqt, positional)
        finally:
            self._idle.put(worker)
