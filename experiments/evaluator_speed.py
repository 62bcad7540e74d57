"""Positions a second of a backend, by batch size, from packed positions to the network's outputs.

    taskset -c 0 python -m experiments.evaluator_speed --positions positions.txt --backend numba --batches 64,1024,16384

The positions, one FEN a line (`experiments.make_positions` makes them), are put in random order first, so that nothing
is gained from one to the next; --in-order leaves them as they are.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np

from games.xiangqi.packed import pack_fens
from nets import DEFAULT_NETWORK
from nnue_jax.evaluator import Evaluator
from uci.backend_names import load_evaluator

ROUNDS = 7
SECONDS_PER_ROUND = 0.5


def read_positions(path: Path, count: int, in_order: bool) -> np.ndarray:
    """[n] PACKED, the first `count` positions of a file."""
    with path.open(encoding="utf-8") as file:
        packed = pack_fens([line.strip() for line, _ in zip(file, range(count), strict=False) if line.strip()])
    return packed if in_order else packed[np.random.default_rng(0).permutation(len(packed))]


def positions_per_s(evaluator: Evaluator, packed: np.ndarray, batch: int) -> list[float]:
    """One figure a round."""
    batches = [packed[start : start + batch] for start in range(0, len(packed) - batch + 1, batch)]
    if not batches:
        raise SystemExit(f"There are {len(packed)} positions; expected {batch}, one batch, at least.")
    evaluator.outputs(batches[0])
    figures = []
    for _ in range(ROUNDS):
        done = 0
        begun = time.perf_counter()
        while time.perf_counter() - begun < SECONDS_PER_ROUND:
            evaluator.outputs(batches[done % len(batches)])
            done += 1
        figures.append(done * batch / (time.perf_counter() - begun))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how many positions a second a backend evaluates.")
    parser.add_argument("--positions", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=65536, help="positions to use (default %(default)s)")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--network", default=DEFAULT_NETWORK)
    parser.add_argument("--batches", default="1,64,1024,16384", help="batch sizes (default %(default)s)")
    parser.add_argument("--in-order", action="store_true")
    arguments = parser.parse_args()
    packed = read_positions(arguments.positions, arguments.count, arguments.in_order)
    evaluator = load_evaluator(arguments.network, arguments.backend)
    print(f"{evaluator.name} on {evaluator.device}, {len(packed)} positions")
    for batch in map(int, arguments.batches.split(",")):
        figures = positions_per_s(evaluator, packed, batch)
        low, high = min(figures) / 1000, max(figures) / 1000
        print(f"batch {batch:6d}  {median(figures) / 1000:9.1f} thousand positions/s  ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
