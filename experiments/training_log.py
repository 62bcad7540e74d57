"""What a training run tells: a live line on standard error, rows of a CSV file, and a plot of them."""

import csv
import sys
import time
from pathlib import Path

COLUMNS = (
    "step",
    "epoch",
    "positions",
    "learning_rate",
    "train_loss",
    "validation_mixed",
    "validation_score",
    "validation_result",
    "positions_per_s",
    "seconds",
)
PERIOD_S = 0.5  # of the live line on a terminal
QUIET_PERIOD_S = 15.0  # of lines elsewhere


class LossLog:
    """A CSV file that grows by a row at a time. A run that goes on cuts off what came after its checkpoint."""

    def __init__(self, path: Path, size: int):
        """`size`: bytes of it that count; 0 begins anew."""
        self._file = path.open("r+" if size else "w", encoding="utf-8", newline="")
        self._file.truncate(size)
        self._file.seek(size)
        if not size:
            self.add(dict(zip(COLUMNS, COLUMNS, strict=True)))

    def add(self, row: dict) -> None:
        """Write a row; columns that it lacks stay empty."""
        csv.DictWriter(self._file, COLUMNS, restval="", lineterminator="\n").writerow(row)
        self._file.flush()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_log(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def plot_log(path: Path, output: Path) -> None:
    """Draw the losses of a log over the positions seen, as PNG; ImportError without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = read_log(path)
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    for name, label, ax in (
        ("train_loss", "training, mixed", axes[0]),
        ("validation_mixed", "held out, mixed", axes[0]),
        ("validation_score", "held out, against score", axes[0]),
        ("validation_result", "held out, against result", axes[1]),
    ):
        points = [(int(row["positions"]) / 1e6, float(row[name])) for row in rows if row[name]]
        if points:
            ax.plot(*zip(*points, strict=True), label=label, marker="" if name == "train_loss" else "o")
    for ax in axes:
        ax.set_ylabel("squared error of expected points")
        ax.grid(alpha=0.3)
        ax.legend()
    axes[1].set_xlabel("million positions")
    FigureCanvasAgg(figure).print_png(str(output))


class ProgressLine:
    """Shows where a run stands, over and over in the same line of a terminal."""

    def __init__(self, epochs: int, steps: int, batch: int):
        self._epochs, self._steps, self._batch = epochs, steps, batch
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = self._counted_at = time.monotonic()
        self._counted_step: int | None = None
        self.rate = 0.0  # positions a second

    def show(self, epoch: int, step: int, loss: float, learning_rate: float) -> None:
        """After `step` steps; most calls show nothing."""
        now = time.monotonic()
        if self._counted_step is None:
            self._counted_step, self._counted_at = step, now
            return
        self.rate = (step - self._counted_step) * self._batch / max(now - self._counted_at, 1e-9)
        if now - self._shown_at < (PERIOD_S if self._is_terminal else QUIET_PERIOD_S):
            return
        self._shown_at = now
        left_s = (self._steps - step) * self._batch / max(self.rate, 1e-9)
        text = (
            f"epoch {epoch + 1} of {self._epochs}, step {step:,} of {self._steps:,}: loss {loss:.5f}, "
            f"learning rate {learning_rate:.1e}, {self.rate:,.0f} positions/s, {_duration(left_s)} left"
        )
        print(f"\r{text:<118}" if self._is_terminal else text, end="" if self._is_terminal else "\n", file=sys.stderr)
        sys.stderr.flush()

    def pause(self) -> None:
        """What follows is not training, and is not to count in its speed."""
        self._counted_step = None

    def say(self, text: str) -> None:
        """A line of its own."""
        print(f"\r{text:<118}".rstrip() if self._is_terminal else text, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
