"""The pipeline: its stages, with commands that only pretend."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from experiments import generation, pipeline
from experiments.elo import PairStatistics
from experiments.generation import elo_facts, last_losses, suitable_batch, suitable_warmup
from experiments.match_log import MatchLog
from experiments.training_log import LossLog
from nets import DEFAULT_NETWORK
from nnue_jax.network_file import QUICK_LEVEL, read_network, write_network
from tests.support.match_records import game_record
from tests.support.networks import random_network
from tests.support.pipeline_records import record_of

COMMANDS = ("selfplay", "train", "fit_win_rate", "match")
TITLES = ("self-play", "training", "win-rate model", "match")
SETTINGS = ("--games", "8", "--match-games", "4", "--seed", "5")
MODEL = {"a": [0.0, 0.0, 0.0, 400.0], "b": [0.0, 0.0, 0.0, 100.0]}
POSITIONS_PER_GAME = 90


class Killed(BaseException):
    """Stands for the end of the process."""


def options_of(words: list[str]) -> dict[str, str]:
    return {name: value for name, value in pairwise(words) if name.startswith("--")}


def pretend_selfplay(words: list[str]) -> None:
    folder, games = Path(words[0]), int(options_of(words)["--games"])
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {"games": games, "positions": POSITIONS_PER_GAME * games}
    (folder / "manifest.json").write_text(json.dumps({"engines": ["some"], "numbers": numbers}))


def pretend_train(words: list[str]) -> None:
    output = Path(options_of(words)["--output"])
    description = {"training": {"settings": {"scale": 700.0}}, "steps": 11, "made of": words[0]}
    write_network(replace(random_network(32), description=json.dumps(description).encode()), output, QUICK_LEVEL)
    log = LossLog(output.with_name(output.name + ".csv"), 0)
    log.add({"step": 10, "train_loss": 0.5})
    log.add({"step": 11, "validation_mixed": 0.25, "validation_score": 0.125, "validation_result": 0.75})
    log.close()


def pretend_fit(words: list[str]) -> None:
    options = options_of(words)
    network = read_network(options["--network"])
    facts = {**json.loads(network.description), "win_rate": MODEL}
    write_network(replace(network, description=json.dumps(facts).encode()), options["--output"], QUICK_LEVEL)


def pretend_match(words: list[str]) -> None:
    """The newer engine, as is said of it, wins half of its games and draws the others."""
    options = options_of(words)
    engines = [{"name": "new"}, {"name": "old"}]
    log = MatchLog(Path(options["--output"]), {"engines": engines, "time": options["--time"], "sprt": None})
    for game in range(len(log.records), int(options["--games"])):
        log.add(game_record(game, ("1-0", "1/2-1/2")[game % 2]))


PRETENCES = dict(zip(COMMANDS, (pretend_selfplay, pretend_train, pretend_fit, pretend_match), strict=True))


class Commands:
    """Stands for all commands of the pipeline.

    calls: names and words of those that were called. fates: what happens to the next call of a command instead.
    """

    def __init__(self):
        self.calls: list[tuple[str, list[str]]] = []
        self.fates: dict[str, Callable[[list[str]], int]] = {}

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def words(self, name: str) -> list[list[str]]:
        """Of all calls of a command."""
        return [words for called, words in self.calls if called == name]

    def __call__(self, name: str, words: list[str]) -> int:
        self.calls.append((name, words))
        if name in self.fates:
            return self.fates.pop(name)(words)
        PRETENCES[name](words)
        return 0


@pytest.fixture
def commands(monkeypatch) -> Commands:
    commands = Commands()
    monkeypatch.setattr(generation, "run_command", commands)
    return commands


def run(work: Path, *more: str) -> int:
    return pipeline.main([str(work), *SETTINGS, *more])


def contents(work: Path, generations: int = 1) -> list[bytes]:
    """What a run is for."""
    folders = [work / f"gen{number}" for number in range(1, generations + 1)]
    return [(folder / name).read_bytes() for folder in folders for name in ("net.nnue", "record.json")]


def test_stages_come_in_order(commands, tmp_path, capsys):
    assert run(tmp_path) == 0
    assert commands.names == list(COMMANDS)
    output = capsys.readouterr()
    titles = [line for line in output.err.splitlines() if line]
    assert titles == [
        f"generation 1, stage {number} of 5: {title}" for number, title in enumerate((*TITLES, "record"), 1)
    ]
    assert output.out == (
        f"{tmp_path}/gen1/net.nnue: 8 games, 720 positions, held-out loss 0.25000; "
        "+2 =2 -0 against old, Elo +191 (95 %: -83 to +∞)\n"
    )


def test_every_generation_builds_on_the_one_before(commands, tmp_path):
    assert run(tmp_path, "--generations", "3", "--keep", "2") == 0
    assert commands.names == list(COMMANDS) * 3
    networks = [str(tmp_path / f"gen{number}" / "net.nnue") for number in range(4)]
    games = [str(tmp_path / f"gen{number}" / "games") for number in range(4)]
    plays = commands.words("selfplay")
    assert [words[0] for words in plays] == games[1:]
    assert [options_of(words)["--network"] for words in plays] == networks[:3]
    assert [options_of(words)["--seed"] for words in plays] == ["5", "6", "7"]
    data = [words[: words.index("--output")] for words in commands.words("train")]
    assert data == [games[1:2], games[1:3], games[2:4]]
    for number, words in enumerate(commands.words("match"), 1):
        engines = [engine for option, engine in pairwise(words) if option == "--engine"]
        for name, engine in zip((number, number - 1), engines, strict=True):
            assert engine.startswith(f"name=gen{name},cmd=")
            assert engine.endswith(f",option.EvalFile={networks[name]}")
    fits = commands.words("fit_win_rate")
    assert [words[0] for words in fits] == games[1:]


def test_the_first_network_is_kept(commands, tmp_path):
    network = tmp_path / "first.nnue"
    write_network(random_network(32), network, QUICK_LEVEL)
    assert run(tmp_path / "work", "--network", str(network)) == 0
    assert (tmp_path / "work" / "gen0" / "net.nnue").read_bytes() == network.read_bytes()


def test_what_is_done_is_not_done_again(commands, tmp_path, capsys):
    assert run(tmp_path) == 0
    before = contents(tmp_path)
    said = capsys.readouterr().out
    commands.calls.clear()
    assert run(tmp_path) == 0
    assert commands.calls == []
    assert contents(tmp_path) == before
    assert capsys.readouterr().out == said


def test_more_generations_prolong_a_run(commands, tmp_path):
    assert run(tmp_path) == 0
    before = contents(tmp_path)
    commands.calls.clear()
    assert run(tmp_path, "--generations", "2") == 0
    assert commands.names == list(COMMANDS)
    assert contents(tmp_path) == before


def killed_before(name: str) -> Callable[[list[str]], int]:
    def fate(words):
        raise Killed

    return fate


def killed_after(name: str) -> Callable[[list[str]], int]:
    def fate(words):
        PRETENCES[name](words)
        raise Killed

    return fate


@pytest.mark.parametrize("fate", [killed_before, killed_after])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_run_goes_on(name, fate, commands, tmp_path):
    """With the command in which it was killed, unless that had made its output under its final name."""
    assert run(tmp_path / "whole") == 0
    commands.calls.clear()
    commands.fates[name] = fate(name)
    work = tmp_path / "killed"
    with pytest.raises(Killed):
        run(work)
    place = COMMANDS.index(name)
    assert commands.names == list(COMMANDS[: place + 1])
    commands.calls.clear()
    assert run(work) == 0
    # A network is written after every epoch and before its plots, so it is done only when the command has ended.
    is_done = fate is killed_after and name in ("selfplay", "match")
    assert commands.names == list(COMMANDS[place + is_done :])
    assert (work / "gen1" / "record.json").exists()


def test_a_killed_run_makes_the_same(commands, tmp_path, monkeypatch):
    for folder in ("whole", "killed"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    assert run(Path("work")) == 0
    monkeypatch.chdir(tmp_path / "killed")
    for name in COMMANDS:
        commands.fates[name] = killed_before(name)
        with pytest.raises(Killed):
            run(Path("work"))
    assert run(Path("work")) == 0
    assert contents(tmp_path / "whole" / "work") == contents(tmp_path / "killed" / "work")


def test_killed_while_the_record_was_written(commands, tmp_path, monkeypatch):
    def kill(path, data):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(generation, "write_whole", kill)
        with pytest.raises(Killed):
            run(tmp_path)
    commands.calls.clear()
    assert run(tmp_path) == 0
    assert commands.calls == []
    assert (tmp_path / "gen1" / "record.json").exists()


def test_killed_while_the_settings_were_written(commands, tmp_path):
    (tmp_path / "pipeline.json.123.part").write_text("{")
    assert run(tmp_path) == 0


@pytest.mark.parametrize("numbers", [{"games": 7, "positions": 630}, None])
def test_self_play_that_was_interrupted_goes_on(numbers, commands, tmp_path):
    """Its manifest has the numbers of what there is, or none."""

    def interrupted(words):
        pretend_selfplay(words)
        manifest = Path(words[0]) / "manifest.json"
        facts = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**facts, "numbers": numbers} if numbers else {"engines": []}))
        return 130

    commands.fates["selfplay"] = interrupted
    assert run(tmp_path) == 130
    assert run(tmp_path) == 0
    assert commands.names == ["selfplay", *COMMANDS]


def test_a_match_that_was_interrupted_goes_on(commands, tmp_path):
    def interrupted(words):
        pretend_match([*words, "--games", "3"])
        return 130

    commands.fates["match"] = interrupted
    assert run(tmp_path) == 130
    assert run(tmp_path) == 0
    assert commands.names == [*COMMANDS, "match"]


@pytest.mark.parametrize("name", COMMANDS)
def test_interrupted_by_the_user(name, commands, tmp_path, capsys):
    """A command that can end in good order returns a status, others raise."""

    def raises(words):
        raise KeyboardInterrupt

    for fate in (lambda words: 130, raises):
        commands.fates[name] = fate
        assert run(tmp_path) == 130
        assert capsys.readouterr().err.endswith("\nThe pipeline was interrupted; the same command goes on.\n")
    assert run(tmp_path) == 0


@pytest.mark.parametrize(("name", "title"), [*zip(COMMANDS, TITLES, strict=True)])
def test_a_stage_that_fails_ends_the_run(name, title, commands, tmp_path, capsys):
    commands.fates[name] = lambda words: 1
    assert run(tmp_path) == 1
    assert commands.names[-1] == name
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("The pipeline ends in generation 1, stage ") and last.endswith(
        f" of 5: {title}, which failed with status 1."
    )
    assert not (tmp_path / "gen1" / "record.json").exists()
    assert run(tmp_path) == 0


@pytest.mark.parametrize("name", ["selfplay", "match"])
def test_a_stage_without_output_has_failed(name, commands, tmp_path, capsys):
    commands.fates[name] = lambda words: 0
    assert run(tmp_path) == 1
    assert "left no output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--games", "9"), "settings.games was 8 and is 9"),
        (("--nodes", "100"), "settings.nodes was 2000 and is 100"),
        (("--seed", "6"), "settings.seed was 5 and is 6"),
        (("--epochs", "1"), "settings.epochs was 3 and is 1"),
        (("--width", "128"), "settings.width was 256 and is 128"),
        (("--keep", "2", "--batch", "64"), "settings.batch was None and is 64, settings.keep was 1 and is 2"),
        (("--lambda", "1", "--lr", "2"), "settings.learning_rate was 0.001 and is 2.0, settings.score_share was 0.7"),
        (("--match-games", "0"), "settings.match_games was 4 and is 0"),
        (("--match-time", "50"), "settings.match_time was 100 and is 50"),
    ],
)
def test_other_settings_are_refused(more, words, commands, tmp_path, capsys):
    assert run(tmp_path) == 0
    commands.calls.clear()
    before = (tmp_path / "pipeline.json").read_bytes()
    assert run(tmp_path, *more) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"'{tmp_path}' holds a pipeline with other settings: {words}")
    assert error.endswith("Choose another folder.")
    assert commands.calls == []
    assert (tmp_path / "pipeline.json").read_bytes() == before


def test_another_network_is_refused_and_another_name_is_not(commands, tmp_path, capsys):
    work, network = tmp_path / "work", tmp_path / "other.nnue"
    assert run(work) == 0
    network.write_bytes(DEFAULT_NETWORK.read_bytes())
    assert run(work, "--network", str(network), "--processes", "7") == 0
    write_network(random_network(32), network, QUICK_LEVEL)
    assert run(work, "--network", str(network)) == 1
    assert "network.sha256 was " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--match-games", "3"), "A match has 3 games; expected an even number"),
        (("--match-games", "-2"), "A match has -2 games"),
        (("--match-time", "soon"), "'soon' is no time control"),
        (("--width", "100"), "The width is 100; expected 32, 64, ..., 4096."),
        (("--seed", "-1"), "The seed is -1"),
        (("--network", "none.nnue"), "'none.nnue' cannot be read"),
    ],
)
def test_wrong_arguments(more, words, commands, tmp_path, capsys):
    """They are refused before anything is made."""
    assert run(tmp_path / "work", *more) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "work").exists()
    assert commands.calls == []


def test_folders_that_are_something_else(commands, tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("Dear ...")
    assert run(tmp_path) == 1
    assert "is not empty, but has no pipeline.json" in capsys.readouterr().err
    (tmp_path / "pipeline.json").write_text('{"settings": 3}')
    assert run(tmp_path) == 1
    assert "does not hold the settings of a pipeline" in capsys.readouterr().err


def test_the_record(commands, tmp_path):
    assert run(tmp_path) == 0
    record = record_of(tmp_path)
    assert record["generation"] == 1
    assert record["settings"]["games"] == 8
    assert record["seeds"] == {"games": 5, "training": 5, "openings": 5}
    assert record["games"] == {"games": 8, "positions": 720}
    assert record["training"] == {
        "data": ["gen1"],
        "positions": 720,
        "settings": {"scale": 700.0},
        "steps": 11,
        "losses": {
            "train_loss": 0.5,
            "validation_mixed": 0.25,
            "validation_score": 0.125,
            "validation_result": 0.75,
        },
    }
    assert record["win_rate"] == MODEL
    match = record["match"]
    assert (match["games"], match["wins"], match["draws"], match["losses"]) == (4, 2, 2, 0)
    assert match["pairs"] == [0, 0, 0, 2, 0]
    assert match["elo"] == 190.8
    assert match["elo_interval"][0] < 190.8


def test_without_a_match(commands, tmp_path):
    assert run(tmp_path, "--match-games", "0") == 0
    assert commands.names == list(COMMANDS[:3])
    assert record_of(tmp_path)["match"] is None


def test_infinite_elo_is_none():
    facts = elo_facts(PairStatistics((0, 0, 0, 0, 3)))
    assert facts["elo"] is None and facts["elo_interval"][1] is None
    json.dumps(facts, allow_nan=False)


@pytest.mark.parametrize(
    ("positions", "batch"), [(1, 64), (16_383, 64), (16_384, 128), (90_000, 512), (2_097_152, 16384), (10**9, 16384)]
)
def test_batches_suit_the_data(positions, batch):
    assert suitable_batch(positions) == batch


def test_warming_up_takes_a_tenth():
    assert [suitable_warmup(steps) for steps in (0, 9, 100, 2000, 10_000)] == [0, 0, 10, 200, 200]


def test_losses_without_validation(tmp_path):
    log = LossLog(tmp_path / "log.csv", 0)
    log.add({"step": 10, "train_loss": 0.5})
    log.add({"step": 20, "train_loss": 0.4})
    log.close()
    assert last_losses(tmp_path / "log.csv") == {"train_loss": 0.4}
