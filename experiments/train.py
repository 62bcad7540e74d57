"""Train a network on records of self-play.

    python -m experiments.train data/ --output net.nnue --width 256 --epochs 3 --batch 16384 --seed 1

DATA are folders of shards. Beside OUT, the network, are written OUT.checkpoint.npz, all that training goes on
from, OUT.csv, the losses, and OUT.png, a plot of them. Of each folder the last games are held out; after each epoch the
losses on them are logged and the network is written.

With --resume a run that was interrupted, even by `kill -9`, goes on from its last checkpoint and ends with the same
network as one that was not; if there is no checkpoint, it begins. The settings must be the same.

Without --init the value is at first that of the bootstrap network, so that no run begins with worthless pieces. All
losses are squared errors of expected points, where sigmoid(value / scale) points are expected.
"""

import argparse
import json
import signal
import sys
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from experiments.make_bootstrap_network import bootstrap_psqt
from experiments.training_log import LossLog, ProgressLine, plot_log
from nnue_jax.network_file import QUICK_LEVEL, SMALL_LEVEL, NetworkError, read_network, write_network
from nnue_jax.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from nnue_jax.training.dataset import TrainingData
from nnue_jax.training.loader import Loader, in_batches
from nnue_jax.training.model import Aim
from nnue_jax.training.optimiser import AdamSettings, Schedule
from nnue_jax.training.parameters import parameters_of, random_parameters
from nnue_jax.training.quantise import check_quantised, quantised
from nnue_jax.training.records import RecordsError
from nnue_jax.training.statistics import best_scale
from nnue_jax.training.trainer import make_trainer

CHECKED_POSITIONS = 4096
POSITIONS_FOR_SCALE = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Everything that the trained network depends on, beside the data and the network it begins with."""

    width: int
    epochs: int
    batch: int
    learning_rate: float
    warmup_steps: int
    final_share: float
    weight_decay: float
    own_rate: float
    score_share: float
    scale: float
    value: str
    validation_share: float
    seed: int


@dataclass
class Progress:
    """Where a run stands, as its checkpoint tells."""

    epoch: int = 0
    batch: int = 0  # of the epoch, the next one
    seconds: float = 0.0  # spent so far
    log_bytes: int = 0
    loss_sum: float = 0.0  # since the last row of the log
    loss_count: int = 0


class Interrupted(Exception):
    """Somebody wants the run to end between two batches."""


class Run:
    """One training run, from where it stands to its end."""

    def __init__(self, arguments: argparse.Namespace, settings: Settings, data: TrainingData):
        self._settings = settings
        self._arguments = arguments
        self._data = data
        self._held_out = data.validation()
        self._output: Path = arguments.output
        self._checkpoint = self._output.with_name(self._output.name + ".checkpoint.npz")
        self._log_path = self._output.with_name(self._output.name + ".csv")
        self._steps_in_epoch = data.batches_per_epoch(settings.batch)
        steps = self._steps_in_epoch * settings.epochs
        self._schedule = Schedule(settings.learning_rate, settings.warmup_steps, steps, settings.final_share)
        self._line = ProgressLine(settings.epochs, steps, settings.batch)
        self._identity = {
            "settings": asdict(settings),
            "positions": [data.positions, data.validation_positions],
            "held_out_crc": zlib.crc32(self._held_out.tobytes()),
            "max_positions": arguments.max_positions,
            "init": str(arguments.init) if arguments.init else None,
        }
        self.progress = Progress()
        state = self._found_state() if arguments.resume else None
        aim = Aim(settings.scale, settings.score_share, settings.value == "search")
        adam = AdamSettings(weight_decay=settings.weight_decay, own_rate=settings.own_rate)
        self._trainer = make_trainer(self._first_parameters(), aim, adam, arguments.threads)
        if state is not None:
            self._trainer.load_state(state)
        self._log = LossLog(self._log_path, self.progress.log_bytes)
        self._started_at = time.monotonic() - self.progress.seconds
        self._saved_at = time.monotonic()
        self._is_interrupted = False

    def interrupt(self) -> None:
        """Have `go` raise Interrupted once the batch at hand is learnt: half a step could not be gone on with."""
        self._is_interrupted = True

    def _found_state(self) -> dict | None:
        """Of the checkpoint, which also sets `progress`; None if there is none."""
        if not self._checkpoint.exists():
            return None
        state, note = load_checkpoint(self._checkpoint)
        if note["identity"] != self._identity:
            raise CheckpointError(
                f"'{self._checkpoint}' belongs to another run, {note['identity']}; expected {self._identity}."
            )
        self.progress = Progress(**note["progress"])
        return state

    def _first_parameters(self) -> dict:
        settings = self._settings
        if self._arguments.init is None:
            return random_parameters(settings.width, settings.seed, bootstrap_psqt())
        network = read_network(self._arguments.init)
        if network.architecture.width != settings.width:
            raise NetworkError(
                f"'{self._arguments.init}' has width {network.architecture.width}; expected {settings.width}."
            )
        return parameters_of(network)

    def go(self) -> None:
        """Train to the end."""
        loader = Loader(self._data, self._settings.batch, self._settings.seed)
        self._line.say(
            f"{self._data.positions:,} positions to learn from, {len(self._held_out):,} held out, "
            f"scale {self._settings.scale}"
        )
        if self._trainer.steps == 0:
            self._validate("before training")
        while self.progress.epoch < self._settings.epochs:
            for batch in loader.batches(self.progress.epoch, self.progress.batch):
                self._learn(batch)
                if self._is_interrupted:
                    raise Interrupted
            self.progress.epoch += 1
            self.progress.batch = 0
            is_last = self.progress.epoch == self._settings.epochs
            self._write_row(self._validate(f"epoch {self.progress.epoch}"))
            self._write_network(SMALL_LEVEL if is_last else QUICK_LEVEL)
            self.save()
            self._plot()
        if not self._output.exists():
            self._write_network(SMALL_LEVEL)

    def close(self) -> None:
        self._log.close()

    def _plot(self) -> None:
        try:
            plot_log(self._log_path, self._output.with_name(self._output.name + ".png"))
        except ImportError as error:
            self._line.say(f"No plot was drawn: {error}. The extra 'experiments' brings matplotlib.")

    def _learn(self, batch) -> None:
        rate = self._schedule.rate_at(self._trainer.steps)
        loss = float(self._trainer.step(batch, rate))
        progress = self.progress
        progress.batch += 1
        progress.loss_sum += loss
        progress.loss_count += 1
        self._line.show(progress.epoch, self._trainer.steps, progress.loss_sum / progress.loss_count, rate)
        if self._trainer.steps % self._arguments.log_steps == 0:
            self._write_row()
        if time.monotonic() - self._saved_at > self._arguments.checkpoint_seconds:
            self.save()

    def _write_row(self, validation: dict | None = None) -> None:
        progress, step = self.progress, self._trainer.steps
        row = {
            "step": step,
            "epoch": progress.epoch if validation else progress.epoch + 1,
            "positions": step * self._settings.batch,
            "learning_rate": f"{self._schedule.rate_at(step):.4g}",
            "positions_per_s": f"{self._line.rate:.0f}",
            "seconds": f"{time.monotonic() - self._started_at:.1f}",
            **(validation or {}),
        }
        if progress.loss_count:
            row["train_loss"] = f"{progress.loss_sum / progress.loss_count:.6f}"
        self._log.add(row)
        progress.loss_sum, progress.loss_count = 0.0, 0

    def _validate(self, when: str) -> dict:
        """Losses on the positions held out, as columns of the log."""
        if len(self._held_out) == 0:
            return {}
        batches = in_batches(self._held_out, self._settings.batch)
        mixed, score, result = sum(map(self._trainer.losses, batches)) / len(self._held_out)
        self._line.say(f"{when}: held-out loss {mixed:.5f}, against score {score:.5f}, against result {result:.5f}")
        self._line.pause()
        return {
            "validation_mixed": f"{mixed:.6f}",
            "validation_score": f"{score:.6f}",
            "validation_result": f"{result:.6f}",
        }

    def save(self) -> None:
        """Write a checkpoint."""
        self.progress.seconds = time.monotonic() - self._started_at
        self.progress.log_bytes = self._log.size
        note = {"identity": self._identity, "progress": asdict(self.progress)}
        save_checkpoint(self._checkpoint, self._trainer.state(), note)
        self._saved_at = time.monotonic()
        self._line.pause()

    def _some_positions(self) -> np.ndarray:
        """RECORDs on which the network is checked: held out, or from training if none are."""
        if len(self._held_out):
            return self._held_out[:CHECKED_POSITIONS]
        return next(self._data.batches(min(CHECKED_POSITIONS, self._settings.batch), self._settings.seed, epoch=0))

    def _write_network(self, level: int) -> None:
        description = json.dumps({"training": self._identity, "steps": self._trainer.steps})
        network = quantised(self._trainer.parameters(), description)
        check_quantised(network, self._trainer, self._some_positions())
        write_network(network, self._output, level)


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", metavar="DATA", help="folders of shards")
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="the .nnue file to write")
    parser.add_argument("--width", type=int, default=256, help="default %(default)s")
    parser.add_argument("--epochs", type=int, default=3, help="default %(default)s")
    parser.add_argument("--batch", type=int, default=16384, help="positions a step (default %(default)s)")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest learning rate (default %(default)s)")
    parser.add_argument("--warmup", type=int, default=200, help="steps to the highest rate (default %(default)s)")
    parser.add_argument("--final-share", type=float, default=0.02, help="of the rate at the end (default %(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.1, help="decoupled (default %(default)s)")
    parser.add_argument(
        "--own-rate", type=float, default=0.3, help="share of the rate for parts of one bucket (default %(default)s)"
    )
    parser.add_argument(
        "--lambda", dest="score_share", type=float, default=0.7, metavar="L",
        help="share of the score in the target, the rest is the result (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--scale", type=float, help="internal units of a logit (default: what fits scores to results)")
    parser.add_argument(
        "--value", choices=("search", "sum"), default="search",
        help="what is compared: the value the search makes of the outputs, or their sum (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--validation-share", type=float, default=0.02, help="held out (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--init", type=Path, metavar="FILE", help="network to go on from; its width must be the same")
    parser.add_argument("--resume", action="store_true", help="go on from OUT.checkpoint.npz if it is there")
    parser.add_argument("--max-positions", type=int, help="in memory at once, 42 bytes each (default: all)")
    parser.add_argument("--threads", type=int, help="of the processor (default: all)")
    parser.add_argument("--log-steps", type=int, default=100, help="steps a row of the log (default %(default)s)")
    parser.add_argument(
        "--checkpoint-seconds", type=float, default=120, help="between checkpoints (default %(default)s)"
    )
    return parser.parse_args(words)


def fitted_scale(data: TrainingData) -> float:
    """The scale with which scores promise best what results were, found on an even part of the training positions."""
    size = min(data.positions, POSITIONS_FOR_SCALE)
    records = next(data.batches(size, 0, 0))
    counts = np.zeros((3, 1 << 16), np.int64)
    np.add.at(counts, (records["result"].astype(np.int64) + 1, records["score"].astype(np.int64) + (1 << 15)), 1)
    return float(best_scale(counts)[0])


def settings_of(arguments: argparse.Namespace, data: TrainingData) -> Settings:
    scale = arguments.scale if arguments.scale is not None else fitted_scale(data)
    return Settings(
        width=arguments.width,
        epochs=arguments.epochs,
        batch=arguments.batch,
        learning_rate=arguments.lr,
        warmup_steps=arguments.warmup,
        final_share=arguments.final_share,
        weight_decay=arguments.weight_decay,
        own_rate=arguments.own_rate,
        score_share=arguments.score_share,
        scale=scale,
        value=arguments.value,
        validation_share=arguments.validation_share,
        seed=arguments.seed,
    )


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    try:
        data = TrainingData(arguments.data, arguments.validation_share, arguments.max_positions)
        if data.batches_per_epoch(arguments.batch) == 0:
            raise RecordsError(f"There are {data.positions} training positions; expected a batch, {arguments.batch}.")
        run = Run(arguments, settings_of(arguments, data), data)
    except (RecordsError, CheckpointError, NetworkError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    previous = signal.signal(signal.SIGINT, lambda number, frame: run.interrupt())
    try:
        run.go()
    except Interrupted:
        run.save()
        print("\nInterrupted; the same command with --resume goes on.", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, previous)
        run.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
