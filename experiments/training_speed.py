"""Measure what a step of training on this machine's processor costs, part by part.

    python -m experiments.training_speed data/ --width 256 --batch 16384

The parts run one after the other, as in training, but for the features: there another thread makes those of the next
batch meanwhile, and the whole step, which is measured last, is shorter than the sum if cores are idle in between.
"""

import argparse
import time
from itertools import chain, count
from pathlib import Path

import numpy as np

from experiments.make_bootstrap_network import bootstrap_psqt
from nnue_jax.training.dataset import TrainingData
from nnue_jax.training.features import make_batch
from nnue_jax.training.loader import Loader
from nnue_jax.training.model import Aim
from nnue_jax.training.optimiser import AdamSettings
from nnue_jax.training.parameters import random_parameters
from nnue_jax.training.trainer import CpuTrainer

WARM_STEPS = 3
RATE = 1e-3
SEED = 1


def measure_parts(trainer: CpuTrainer, data: TrainingData, size: int, steps: int) -> dict[str, list[float]]:
    """Seconds of each part of each step."""
    parts = {name: [] for name in ("features", "gather", "layers", "scatter", "adam")}
    epochs = chain.from_iterable(data.batches(size, SEED, epoch) for epoch in count())
    for number in range(WARM_STEPS + steps):
        times = [time.perf_counter()]
        batch = make_batch(next(epochs), size)
        for part in (trainer.gather, trainer.learn_layers, trainer.scatter, trainer.learn_table):
            times.append(time.perf_counter())
            part(batch, RATE)
        times.append(time.perf_counter())
        if number >= WARM_STEPS:
            for name, start, end in zip(parts, times, times[1:], strict=False):
                parts[name].append(end - start)
    return parts


def measure_steps(trainer: CpuTrainer, data: TrainingData, size: int, seconds: float) -> float:
    """Seconds a step, in training."""
    epoch, steps, start = 0, 0, None
    loader = Loader(data, size, SEED)
    while True:
        for batch in loader.batches(epoch):
            trainer.step(batch, RATE)
            if start is None:
                start = time.perf_counter()
                continue
            steps += 1
            if time.perf_counter() - start > seconds:
                return (time.perf_counter() - start) / steps
        epoch += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", metavar="DATA", help="folders of shards")
    parser.add_argument("--width", type=int, default=256, help="default %(default)s")
    parser.add_argument("--batch", type=int, default=16384, help="default %(default)s")
    parser.add_argument("--steps", type=int, default=30, help="that are measured part by part (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of whole steps (default %(default)s)")
    parser.add_argument("--threads", type=int, help="default: one for each processor")
    arguments = parser.parse_args()
    data = TrainingData(arguments.data)
    if not data.batches_per_epoch(arguments.batch):
        parser.error(f"{data.positions} positions are fewer than a batch")
    parameters = random_parameters(arguments.width, 1, bootstrap_psqt())
    trainer = CpuTrainer(parameters, Aim(600, 0.7), AdamSettings(), arguments.threads)
    parts = measure_parts(trainer, data, arguments.batch, arguments.steps)
    for name, seconds in parts.items():
        print(f"{name:10} {1000 * np.median(seconds):7.1f} ms   best {1000 * min(seconds):7.1f}")
    total = sum(np.median(seconds) for seconds in parts.values())
    print(f"{'sum':10} {1000 * total:7.1f} ms")
    step = measure_steps(trainer, data, arguments.batch, arguments.seconds)
    print(f"{'step':10} {1000 * step:7.1f} ms   {arguments.batch / step:,.0f} positions/s")


if __name__ == "__main__":
    main()
