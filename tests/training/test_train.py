"""`python -m experiments.train`: whole runs on little data."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from experiments import train, training_log
from experiments.training_log import COLUMNS, LossLog, ProgressLine, plot_log, read_log
from nnue_jax.network_file import read_network
from nnue_jax.training.records import read_shard, write_shard
from tests.training.data import some_records

WIDTH = 64


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A folder of two shards."""
    folder = tmp_path_factory.mktemp("data")
    records = some_records(1000)
    write_shard(folder / "shard-000000.zst", records[:600])
    write_shard(folder / "shard-000001.zst", records[600:])
    return folder


def words(data: Path, output: Path, *more: str) -> list[str]:
    fixed = "--width 64 --epochs 2 --batch 128 --lr 2e-3 --warmup 2 --validation-share 0.1 --log-steps 3".split()
    return [str(data), "--output", str(output), *fixed, *more]


def losses_in(path: Path) -> list[list[str]]:
    """Of a log, all but the columns of time."""
    return [[row[name] for name in COLUMNS if name not in ("seconds", "positions_per_s")] for row in read_log(path)]


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_at(monkeypatch, calls: int) -> None:
    """Let the training end in the middle of the step that is this one of all to come."""
    learn = train.Run._learn
    numbers = count(1)

    def learn_until(run, batch):
        if next(numbers) == calls:
            raise Killed
        learn(run, batch)

    monkeypatch.setattr(train.Run, "_learn", learn_until)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory) -> Path:
    """The network of a run that was not interrupted."""
    output = tmp_path_factory.mktemp("whole") / "net.nnue"
    assert train.main(words(data, output)) == 0
    return output


def test_a_run_leaves_a_network_a_checkpoint_and_a_log(trained):
    network = read_network(trained)
    assert network.architecture.width == WIDTH
    assert b'"learning_rate": 0.002' in network.description
    names = {path.name for path in trained.parent.iterdir()}
    assert {"net.nnue", "net.nnue.checkpoint.npz", "net.nnue.csv"} <= names <= {*names, "net.nnue.png"}
    assert not [name for name in names if name.endswith(".part")]
    rows = read_log(trained.with_name("net.nnue.csv"))
    assert [row["step"] for row in rows if row["validation_mixed"]] == ["7", "14"]
    assert all(float(row["train_loss"]) > 0 for row in rows)


def test_the_same_command_makes_the_same_network(trained, data, tmp_path):
    output = tmp_path / "net.nnue"
    assert train.main(words(data, output)) == 0
    assert output.read_bytes() == trained.read_bytes()


# Within the first epoch, after its end, within the second, and at the very last step.
@pytest.mark.parametrize("step", [3, 8, 12, 14])
def test_a_run_goes_on_after_it_was_killed(step, trained, data, tmp_path, monkeypatch):
    output = tmp_path / "net.nnue"
    command = words(data, output, "--resume", "--checkpoint-seconds", "0")
    with monkeypatch.context() as patch:
        kill_at(patch, step)
        with pytest.raises(Killed):
            train.main(command)
    assert train.main(command) == 0
    assert output.read_bytes() == trained.read_bytes()
    assert losses_in(tmp_path / "net.nnue.csv") == losses_in(trained.with_name("net.nnue.csv"))


def test_without_a_fresh_checkpoint_steps_are_taken_anew(trained, data, tmp_path, monkeypatch):
    """The last checkpoint is from the end of the first epoch; rows of the log beyond it go."""
    output = tmp_path / "net.nnue"
    command = words(data, output, "--resume")
    with monkeypatch.context() as patch:
        kill_at(patch, 13)
        with pytest.raises(Killed):
            train.main(command)
    assert train.main(command) == 0
    assert output.read_bytes() == trained.read_bytes()
    assert losses_in(tmp_path / "net.nnue.csv") == losses_in(trained.with_name("net.nnue.csv"))


def test_a_finished_run_is_not_trained_further(trained, data):
    before = trained.read_bytes(), losses_in(trained.with_name("net.nnue.csv"))
    assert train.main(words(data, trained, "--resume")) == 0
    assert (trained.read_bytes(), losses_in(trained.with_name("net.nnue.csv"))) == before


def test_a_checkpoint_of_other_settings_is_refused(trained, data, capsys):
    assert train.main(words(data, trained, "--resume", "--seed", "2")) == 1
    error = capsys.readouterr().err
    assert "belongs to another run" in error and "'seed': 1" in error and "'seed': 2" in error


def test_a_checkpoint_of_other_data_is_refused(trained, data, tmp_path, capsys):
    """Of as many positions."""
    for path in sorted(data.iterdir()):
        records = read_shard(path)
        records["score"] += 1
        write_shard(tmp_path / path.name, records)
    assert train.main(words(tmp_path, trained, "--resume", "--scale", f"{scale_of(trained)}")) == 1
    assert "belongs to another run" in capsys.readouterr().err


def scale_of(trained: Path) -> float:
    return json.loads(read_network(trained).description)["training"]["settings"]["scale"]


def test_interrupted_by_the_user(trained, data, tmp_path, monkeypatch, capsys):
    """Half a step is never kept, so the resumed run ends with the same network."""
    output = tmp_path / "net.nnue"
    learn = train.Run._learn
    numbers = count(1)

    def interrupted_learn(run, batch):
        if next(numbers) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        learn(run, batch)

    with monkeypatch.context() as context:
        context.setattr(train.Run, "_learn", interrupted_learn)
        assert train.main(words(data, output)) == 130
    assert "--resume goes on" in capsys.readouterr().err
    assert not output.exists()
    assert train.main(words(data, output, "--resume")) == 0
    assert output.read_bytes() == trained.read_bytes()


def test_it_goes_on_from_a_network(trained, data, tmp_path, capsys):
    output = tmp_path / "net.nnue"
    assert train.main(words(data, output, "--init", str(trained), "--epochs", "1")) == 0
    first, last = [line for line in capsys.readouterr().err.splitlines() if "held-out loss" in line]
    end_of_other = read_log(trained.with_name("net.nnue.csv"))[-1]["validation_mixed"]
    assert f"held-out loss {float(end_of_other):.5f}" in first
    assert last.startswith("epoch 1")


def test_another_width_is_refused(trained, data, tmp_path, capsys):
    assert train.main(words(data, tmp_path / "net.nnue", "--init", str(trained), "--width", "96")) == 1
    assert "has width 64; expected 96" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [(["--batch", "2000"], "expected a batch, 2000"), (["--validation-share", "1.5"], "share of validation games")],
)
def test_what_cannot_be_trained_is_said(more, message, data, tmp_path, capsys):
    assert train.main(words(data, tmp_path / "net.nnue", *more)) == 1
    assert message in capsys.readouterr().err


def test_no_data(tmp_path, capsys):
    assert train.main(words(tmp_path / "nowhere", tmp_path / "net.nnue")) == 1
    assert "nowhere' is no folder" in capsys.readouterr().err


def test_the_scale_is_fitted(tmp_path):
    """Results drawn with the odds of a scale give this scale back."""
    records = np.concatenate([some_records(1000)] * 50)
    rng = np.random.default_rng(3)
    wins = rng.random(len(records)) < 1 / (1 + np.exp(-records["score"] / 700))
    records["result"] = np.where(wins, 1, -1)
    write_shard(tmp_path / "shard-000000.zst", records, [1000] * 50)
    data = train.TrainingData([tmp_path], 0.0)
    assert abs(train.fitted_scale(data) - 700) < 70


def test_log_is_cut_to_what_counts(tmp_path):
    path = tmp_path / "log.csv"
    log = LossLog(path, 0)
    log.add({"step": 1, "train_loss": 0.5})
    size = log.size
    log.add({"step": 2, "train_loss": 0.4})
    log.close()
    log = LossLog(path, size)
    log.add({"step": 3, "train_loss": 0.3})
    log.close()
    with path.open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "3"]


def test_plot(trained, tmp_path):
    pytest.importorskip("matplotlib")
    plot_log(trained.with_name("net.nnue.csv"), tmp_path / "losses.png")
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_the_live_line_tells_speed_and_time_left(monkeypatch, capsys):
    clock = iter([0, 0, 10, 16, 17])
    monkeypatch.setattr(training_log.time, "monotonic", lambda: float(next(clock)))
    line = ProgressLine(epochs=2, steps=1000, batch=100)
    for step in (20, 120, 180, 181):  # at 0, 10, 16 and 17 s
        line.show(1, step, 0.0123, 1e-3)
    assert capsys.readouterr().err == (
        "epoch 2 of 2, step 180 of 1,000: loss 0.01230, learning rate 1.0e-03, 1,000 positions/s, 1:22 left\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 1.0])
def test_a_killed_process_goes_on(delay_s, trained, data, tmp_path):
    """SIGKILL, after the first checkpoint and some time."""
    output = tmp_path / "net.nnue"
    command = [sys.executable, "-m", "experiments.train", *words(data, output, "--resume", "--checkpoint-seconds", "0")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=Path(train.__file__).parent.parent)
    checkpoint = tmp_path / "net.nnue.checkpoint.npz"
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(delay_s)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, cwd=Path(train.__file__).parent.parent)
    assert output.read_bytes() == trained.read_bytes()
    assert losses_in(tmp_path / "net.nnue.csv") == losses_in(trained.with_name("net.nnue.csv"))
