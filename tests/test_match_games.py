"""Whole matches between engines that play random moves."""

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import match
from experiments.adjudication import ADJUDICATED_DRAW, ADJUDICATED_WIN
from experiments.engine_spec import EngineSpec
from experiments.match import MatchSettings, hold_match
from experiments.match_log import LogError, MatchLog, read_log
from experiments.openings import OpeningSettings
from experiments.pgn import game_text
from experiments.play import ENGINE_FAILURE, ILLEGAL_MOVE, TIME_FORFEIT
from experiments.rulebook import RuledGame, Rules
from experiments.sprt import Hypothesis, Sprt
from experiments.standing import Standing
from games.xiangqi import Game
from tests.support.random_engine import DELAY_VARIABLE

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("strong", "weak")
TEST = Sprt(0, 200)
KILLED_AFTER_GAMES = 3
DEADLINE_S = 120


def engine_command(*arguments: str) -> str:
    return shlex.join([sys.executable, "-m", "tests.support.random_engine", *arguments])


def command(folder: Path) -> list[str]:
    """A match that its SPRT ends: the strong engine wins by adjudication where the opening is not drawn."""
    engines = [
        f"name={name},cmd={shlex.quote(engine_command('--claim', claim))},dir={shlex.quote(str(ROOT))}"
        for name, claim in zip(NAMES, ("600", "-600"), strict=True)
    ]
    return [
        *(sys.executable, "-m", "experiments.match", "--time", "10", "--margin", "20000"),
        *("--engine", engines[0], "--engine", engines[1], "--sprt", f"{TEST.elo0},{TEST.elo1}"),
        *("--resign", "500,2", "--draw", "10,3,12", "--seed", "1"),
        *("--output", str(folder / "match.jsonl"), "--pgn", str(folder / "match.pgn")),
    ]


def run_match(folder: Path) -> str:
    """Standard output of the match."""
    result = subprocess.run(command(folder), cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def kill_match(folder: Path) -> None:
    """Run the match, two games at a time and not too fast, until its log has KILLED_AFTER_GAMES games."""
    log = folder / "match.jsonl"
    environment = {**os.environ, DELAY_VARIABLE: "30"}
    arguments = [*command(folder), "--concurrency", "2"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, env=environment) as process:
        deadline_s = time.monotonic() + DEADLINE_S
        while not log.exists() or log.read_bytes().count(b"\n") < 1 + KILLED_AFTER_GAMES:
            assert process.poll() is None and time.monotonic() < deadline_s
            time.sleep(0.01)
        process.kill()


@pytest.fixture(scope="module")
def whole_match(tmp_path_factory) -> tuple[Path, str]:
    """Folder and output of a match that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, run_match(folder)


def without_times(folder: Path) -> list[dict]:
    """The games by number, without what depends on the clock."""
    _, records = read_log(folder / "match.jsonl")
    records.sort(key=lambda record: record.game)
    return [vars(replace(record, slowest_ms={}, started="")) for record in records]


def standing_of(folder: Path) -> Standing:
    settings, records = read_log(folder / "match.jsonl")
    return Standing.of(records, NAMES, Sprt(**settings["sprt"]))


def test_a_match_ends_itself_when_its_test_does(whole_match):
    folder, output = whole_match
    standing = standing_of(folder)
    assert standing.accepted == Hypothesis.H1
    assert standing.games == 2 * standing.statistics.pairs
    assert "SPRT accepted H1: Elo +200 rather than +0" in output.splitlines()
    assert output.count("\nSPRT") == 1
    assert set(standing.reasons) == {ADJUDICATED_WIN, ADJUDICATED_DRAW}


def test_openings_are_played_twice_with_colours_swapped(whole_match):
    _, records = read_log(whole_match[0] / "match.jsonl")
    for first, second in zip(records[::2], records[1::2], strict=True):
        openings = [record.moves.split()[: record.opening_plies] for record in (first, second)]
        assert openings[0] == openings[1]
        assert (
            (first.pair, first.white, first.black) == (second.pair, *NAMES) == (second.pair, second.black, second.white)
        )
    assert len({record.moves for record in records[::2]}) == len(records) // 2


def test_games_are_legal_by_both_rule_books(whole_match):
    _, records = read_log(whole_match[0] / "match.jsonl")
    for record in records:
        moves = record.moves.split()
        assert len(moves) == record.plies
        assert Game(moves=moves).fen().split()[:2] == RuledGame(moves=moves).fen.split()[:2]


def test_a_killed_match_goes_on_as_if_nothing_had_happened(whole_match, tmp_path):
    whole, _ = whole_match
    kill_match(tmp_path)
    log, pgn = tmp_path / "match.jsonl", tmp_path / "match.pgn"
    assert KILLED_AFTER_GAMES <= len(without_times(tmp_path)) < len(without_times(whole))
    with log.open("a") as file:
        file.write('{"game": 5, "pair"')  # as if it had been killed while it wrote
    pgn.write_bytes(pgn.read_bytes()[:-30])
    run_match(tmp_path)
    settings, records = read_log(log)
    assert without_times(tmp_path) == without_times(whole)
    assert (standing_of(tmp_path).llr, standing_of(tmp_path).accepted) == (standing_of(whole).llr, Hypothesis.H1)
    assert pgn.read_text() == "".join(game_text(record, settings) for record in records)


def test_a_finished_match_says_its_result_again_and_plays_no_game(whole_match):
    folder, output = whole_match
    before = without_times(folder)
    again = run_match(folder)
    assert without_times(folder) == before
    assert output.endswith(again)
    assert "SPRT accepted H1" in again


def test_another_test_of_the_same_games_is_refused(whole_match):
    folder, _ = whole_match
    settings, _ = read_log(folder / "match.jsonl")
    with pytest.raises(LogError, match="other settings \\(sprt\\)"):
        MatchLog(folder / "match.jsonl", {**settings, "sprt": None})


def test_a_log_from_before_there_were_tests_and_adjudication_is_taken_up(tmp_path):
    path = tmp_path / "match.jsonl"
    path.write_text(f"{json.dumps({'match': {'time': '10'}})}\n")
    MatchLog(path, {"time": "10", "sprt": None, "resign": None, "draw": None})


@pytest.mark.parametrize("text", ['{"mat', ""])
def test_a_log_without_a_whole_line_is_begun_anew(tmp_path, text):
    path = tmp_path / "match.jsonl"
    path.write_text(text)
    MatchLog(path, {"time": "10"})
    assert read_log(path) == ({"time": "10"}, [])


@pytest.mark.parametrize("text", ["precious", "precious\n", '{"match": {}'])
def test_a_file_that_is_no_log_is_left_alone(tmp_path, text):
    path = tmp_path / "match.jsonl"
    path.write_text(text)
    with pytest.raises(LogError, match="is no log of"):
        MatchLog(path, {"time": "10"})
    assert path.read_text() == text


def test_an_engine_that_misbehaves_loses_and_the_match_goes_on(tmp_path, capfd):
    engines = (
        EngineSpec("good", engine_command(), directory=str(ROOT)),
        EngineSpec("bad", engine_command("--faults", "illegal,late,crash"), directory=str(ROOT)),
    )
    settings = MatchSettings(engines, "10", 1000, Rules(max_plies=30), OpeningSettings(seed=1))
    log = MatchLog(tmp_path / "match.jsonl", settings.settings())
    standing = hold_match(settings, log, None, games=4, concurrency=1)
    assert [record.reason for record in log.records] == [ILLEGAL_MOVE, TIME_FORFEIT, ENGINE_FAILURE, ILLEGAL_MOVE]
    assert [record.loser for record in log.records] == ["bad"] * 4
    assert "bad played a0a0 in" in log.records[0].detail
    assert "bad took 15" in log.records[1].detail
    assert "ended with status 3" in log.records[2].detail and "about to crash" in log.records[2].detail
    assert (standing.tallies["bad"].forfeits, standing.tallies["bad"].failures) == (3, 1)
    assert capfd.readouterr().out.count("\n") == 4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--sprt", "5"], "'5' describes no SPRT"),
        (["--resign", "5"], "'5' is no rule to resign"),
        (["--draw", "5"], "'5' is no rule for draws"),
    ],
)
def test_arguments_that_cannot_be_read_are_named(arguments, complaint, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [*command(tmp_path)[2:], *arguments])
    assert match.main() == 1
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_pgn_file_needs_a_log(tmp_path, monkeypatch, capsys):
    arguments = command(tmp_path)
    at = arguments.index("--output")
    monkeypatch.setattr(sys, "argv", [*arguments[2:at], *arguments[at + 2 :]])
    with pytest.raises(SystemExit):
        match.main()
    assert "--pgn needs --output" in capsys.readouterr().err
