"""The command that fills folders with self-play: the same bytes whatever happens to it on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import selfplay
from experiments.selfplay_folder import RunSettings, SelfPlayFolder, Task
from experiments.selfplay_game import GameSettings, SelfPlayer
from nets import DEFAULT_NETWORK
from nnue_jax.training.records import RecordsError, read_games, read_header, read_shard, shard_path, shard_paths

ROOT = Path(__file__).resolve().parents[2]
NODES = 120
SETTINGS = RunSettings(seed=3, games_per_shard=2, game=GameSettings(NODES), network=DEFAULT_NETWORK)
OPTIONS = ("--nodes", str(NODES), "--seed", "3", "--games-per-shard", "2")
MANY = 100_000  # games, more than anybody waits for
DEADLINE_S = 120


@pytest.fixture
def start():
    """start(folder, games, *options): the command, in a process group of its own, as a terminal would start it."""
    started = []

    def start(folder: Path, games: int, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "experiments.selfplay", str(folder), "--games", str(games), *OPTIONS, *options]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()  # the workers follow
        process.communicate()


def wait_for_shards(folder: Path, count: int, process: subprocess.Popen) -> None:
    """Until the first `count` shards are there; several processes may finish later ones before them."""
    deadline = time.monotonic() + DEADLINE_S
    while not all(shard_path(folder, number).exists() for number in range(count)):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_end_of_group(group: int) -> None:
    """Until no process of the group is left."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def contents(folder: Path, shards: int) -> list[bytes]:
    return [shard_path(folder, number).read_bytes() for number in range(shards)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    """A folder of four whole shards, made in this process and in one go."""
    folder = tmp_path_factory.mktemp("reference")
    fill(folder, 8)
    return folder


class Flag:
    """What workers ask whether the run is to end: after `shards` looks at the first game of a shard, it is."""

    def __init__(self, looks: int = MANY):
        self._looks = looks

    def is_set(self) -> bool:
        self._looks -= 1
        return self._looks < 0


class Sums(list):
    """Shared sums that nobody shares."""

    def get_lock(self):
        return nullcontext()


def fill(folder: Path, games: int, settings: RunSettings = SETTINGS, looks: int = MANY) -> Sums:
    """What a run does, with one worker in this process."""
    target = SelfPlayFolder(folder, settings)
    target.begin(games)
    live = Sums([0] * len(selfplay.SUMS))
    worker = selfplay.Worker(settings, folder, live, Flag(looks))
    for task in target.missing(games):
        worker.make_shard(task)
    target.end()
    return live


def test_shards_hold_the_games(reference, network):
    """In the order of their numbers, whole, and with what they have cost."""
    player = SelfPlayer(network, SETTINGS.game, SETTINGS.seed)
    for number, path in enumerate(shard_paths(reference)):
        games = [player.play(2 * number + i) for i in range(2)]
        shard = read_games(path)
        assert shard.game_lengths.tolist() == [len(game.records) for game in games]
        assert (shard.records == np.concatenate([game.records for game in games])).all()
        numbers = shard.header.numbers
        assert numbers["nodes"] == sum(game.nodes for game in games)
        assert sum(numbers.get(end, 0) for end in selfplay.ENDS) == 2


def test_manifest(reference):
    manifest = json.loads((reference / "manifest.json").read_text())
    assert manifest["seed"] == 3
    assert manifest["settings"]["nodes"] == NODES
    assert len(manifest["network"]["sha256"]) == 64
    assert len(manifest["engines"]) == 1
    assert manifest["engines"][0].keys() == {"version", "commit", "sources"}
    assert manifest["games"] == manifest["numbers"]["games"] == 8
    assert manifest["numbers"]["positions"] == sum(len(read_shard(path)) for path in shard_paths(reference))


@pytest.mark.parametrize("looks", range(0, 9, 2))
def test_going_on_where_a_run_was_stopped(reference, tmp_path, looks):
    """A shard that was not finished is not there; afterwards everything is as in a run without a stop."""
    fill(tmp_path, 8, looks=looks)
    assert len(shard_paths(tmp_path)) == looks // 2
    fill(tmp_path, 8)
    assert contents(tmp_path, 4) == contents(reference, 4)
    assert (tmp_path / "manifest.json").read_bytes() == (reference / "manifest.json").read_bytes()


def test_only_missing_shards_are_made(reference, tmp_path):
    fill(tmp_path, 8)
    shard_path(tmp_path, 1).unlink()
    times = {path: path.stat().st_mtime_ns for path in shard_paths(tmp_path)}
    assert SelfPlayFolder(tmp_path, SETTINGS).missing(8) == [Task(1, 2, 2)]
    live = fill(tmp_path, 8)
    assert dict(zip(selfplay.SUMS, live, strict=True))["games"] == 2
    assert contents(tmp_path, 4) == contents(reference, 4)
    assert all(path.stat().st_mtime_ns == before for path, before in times.items())


def test_prolonging(reference, tmp_path):
    """The last shard of five games has one; it becomes a whole one."""
    fill(tmp_path, 5)
    assert [read_header(path).games for path in shard_paths(tmp_path)] == [2, 2, 1]
    assert SelfPlayFolder(tmp_path, SETTINGS).missing(5) == []
    fill(tmp_path, 8)
    assert contents(tmp_path, 4) == contents(reference, 4)
    assert SelfPlayFolder(tmp_path, SETTINGS).missing(3) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 4}, "seed was 3 and is 4"),
        ({"games_per_shard": 3}, "games_per_shard was 2 and is 3"),
        ({"game": GameSettings(NODES + 1)}, "settings.nodes was 120 and is 121"),
        ({"game": GameSettings(NODES, random_per_mille=0)}, "settings.random_per_mille was 25 and is 0"),
    ],
)
def test_other_settings_are_refused(reference, change, words):
    before = (reference / "manifest.json").read_bytes()
    with pytest.raises(RecordsError, match=rf"^'{reference}' holds games made with other settings: {words}\."):
        SelfPlayFolder(reference, replace(SETTINGS, **change))
    assert (reference / "manifest.json").read_bytes() == before


def test_another_network_is_refused_and_another_name_is_not(reference, tmp_path):
    copy = tmp_path / "copy.nnue"
    copy.write_bytes(DEFAULT_NETWORK.read_bytes())
    SelfPlayFolder(reference, replace(SETTINGS, network=copy))
    copy.write_bytes(DEFAULT_NETWORK.read_bytes()[:-1])
    with pytest.raises(RecordsError, match=r"network\.sha256 was .* and is "):
        SelfPlayFolder(reference, replace(SETTINGS, network=copy))


def test_another_engine_is_noted(tmp_path, monkeypatch):
    fill(tmp_path, 1)
    monkeypatch.setattr("experiments.selfplay_folder.source_hash", lambda: "0123")
    fill(tmp_path, 2)
    fill(tmp_path, 2)
    engines = json.loads((tmp_path / "manifest.json").read_text())["engines"]
    assert [engine["sources"] == "0123" for engine in engines] == [False, True]


def test_folders_that_are_something_else(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear ...")
    with pytest.raises(RecordsError, match="is not empty"):
        SelfPlayFolder(tmp_path, SETTINGS)
    (tmp_path / "manifest.json").write_text('{"seed": 3}')
    with pytest.raises(RecordsError, match="is no manifest"):
        SelfPlayFolder(tmp_path, SETTINGS)


def test_a_damaged_shard_is_not_counted(tmp_path):
    fill(tmp_path, 2)
    path = shard_path(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(RecordsError, match="does not begin with"):
        SelfPlayFolder(tmp_path, SETTINGS).missing(2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--nodes", "0"), "A search of 0 nodes"),
        (("--seed", "-1"), "The seed is -1"),
        (("--network", "none.nnue"), "none.nnue"),
        (("--nodes", "4"), "found no balanced opening"),
    ],
)
def test_wrong_arguments(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.setattr(sys, "argv", ["selfplay", str(tmp_path / "data"), "--games", "1", *options])
    assert selfplay.main() == 1
    assert words in capsys.readouterr().err


def test_killed_and_taken_up(reference, tmp_path, start):
    """SIGKILL leaves whole shards only, and no process behind; then two processes make what one has made."""
    folder = tmp_path / "data"
    process = start(folder, MANY, "--processes", "2")
    wait_for_shards(folder, 2, process)
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    wait_for_end_of_group(process.pid)
    (folder / "shard-000001.zst.1234.part").write_bytes(b"half a")
    shard_path(folder, 0).unlink()
    done = start(folder, 8, "--processes", "2")
    output, errors = done.communicate(timeout=DEADLINE_S)
    assert done.returncode == 0, errors
    assert "games" in output
    assert "8 of 8 games" in errors.splitlines()[-1]
    assert contents(folder, 4) == contents(reference, 4)
    assert list(folder.glob("*.part")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(reference, tmp_path, start, number):
    """Ctrl-C reaches all processes of a group, SIGTERM the first; either ends the run with a sentence."""
    folder = tmp_path / "data"
    process = start(folder, MANY, "--processes", "1" if number == signal.SIGTERM else "2")
    wait_for_shards(folder, 1, process)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "Interrupted; the same command goes on."
    assert "Traceback" not in errors
    wait_for_end_of_group(process.pid)
    assert list(folder.glob("*.part")) == []
    assert contents(folder, 1) == contents(reference, 1)
    numbers = json.loads((folder / "manifest.json").read_text())["numbers"]
    assert numbers["games"] == 2 * len(shard_paths(folder))


def test_a_worker_that_dies_ends_the_run(tmp_path, start):
    folder = tmp_path / "data"
    process = start(folder, MANY, "--processes", "1")
    wait_for_shards(folder, 1, process)
    workers = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(workers[0]), signal.SIGKILL)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert errors.splitlines()[-1].startswith("A process has died: ")
