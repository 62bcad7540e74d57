"""`speedtest`: its arguments, its positions and their times, and the report."""

import re
from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.make_speedtest_games import PlayedGame, Settings, module_text, play_games
from games.memory import address_of, aligned_zeros, huge_page_bytes
from games.processors import available_processors
from games.xiangqi.game import Game
from games.xiangqi.repetition import judge_game
from search.processors import NumaPolicy, format_processors
from uci import speedtest
from uci.bench import BenchError
from uci.speedtest import SpeedtestSettings, movetimes_ms, parse_speedtest, run_speedtest, speedtest_tasks
from uci.speedtest_games import GAMES

REPORT = [
    ("Version", r"jaxfish \d+\.\d+.*"),
    ("Python", r"3\.\d+\.\d+ \(.*\)"),
    ("NumPy", r"\d+\.\d+.*"),
    ("Numba", r"\d+\.\d+.*"),
    ("llvmlite", r"\d+\.\d+.*"),
    ("LLVM", r"\d+\.\d+\.\d+"),
    ("JAX", r"\d+\.\d+.*"),
    ("jaxlib", r"\d+\.\d+.*"),
    ("Backend", "numba"),
    ("Network", r"\(\d+, \d+, 32, 32, 1\)"),
    ("Large pages", r"yes \(\d+ of 1 MiB\)|no|unknown"),
    ("User invocation", "speedtest 1 1 1"),
    ("Filled invocation", "speedtest 1 1 1"),
    ("Available processors", re.escape(format_processors(available_processors()))),
    ("Thread count", "1"),
    ("Thread binding", f"1/{len(available_processors())}"),
    ("TT size [MiB]", "1"),
    ("Hash max, avg [per mille]", ""),
    ("    single search", r"\d+, \d+"),
    ("    single game", r"\d+, \d+"),
    ("Total nodes searched", r"\d+"),
    ("Total search time [s]", r"\d+\.\d\d\d"),
    ("Nodes/second", r"\d+"),
]


@pytest.fixture
def bound_engine(engine, monkeypatch):
    monkeypatch.setattr(engine, "numa_policy", NumaPolicy("0", (available_processors(),), bound_from=1))
    return engine


def never() -> bool:
    return False


def test_what_is_missing_follows_from_the_processors_and_threads():
    assert parse_speedtest([], 6) == SpeedtestSettings(6, 768, 150)
    assert parse_speedtest(["3"], 6) == SpeedtestSettings(3, 384, 150)
    assert parse_speedtest(["3", "16"], 6) == SpeedtestSettings(3, 16, 150)
    assert parse_speedtest(["3", "16", "5"], 6) == SpeedtestSettings(3, 16, 5)
    assert parse_speedtest([], 5000).threads == 1024


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("0", ["'0'", "number of threads"]),
        ("1 lots", ["'lots'", "hash size"]),
        ("1 16 1.5", ["'1.5'", "number of seconds"]),
        ("1 16 10 depth", ["'depth'", "too many"]),
    ],
)
def test_bad_arguments_are_named(engine, arguments, words):
    with pytest.raises(BenchError) as failure:
        run_speedtest(engine, arguments.split(), never)
    assert all(word in str(failure.value) for word in words)
    assert (engine.threads, engine.table.hash_mib) == (1, 16)


@pytest.mark.parametrize("seconds", [1, 7, 150, 100_000])
def test_the_times_add_up_and_fall_within_a_game(seconds):
    tasks = list(speedtest_tasks(seconds))
    times = [task.movetime_ms for task in tasks]
    assert sum(times) == 1000 * seconds
    assert min(times) > 0
    rises = [number for number in range(1, len(times)) if times[number] > times[number - 1] + 1]
    assert rises == [number for number, task in enumerate(tasks) if task.is_first][1:]


def test_the_time_of_a_position_is_50000_over_its_number_and_15():
    first, second, third = movetimes_ms([2, 1], seconds=1000)
    assert first == third == pytest.approx(second * 17 / 16, abs=1)


def test_the_positions_are_those_of_one_side_in_five_legal_games():
    tasks = list(speedtest_tasks(150))
    assert len({fen for fen, _ in GAMES}) == 5
    assert sum(task.is_first for task in tasks) == 5
    assert 230 <= len(tasks) <= 275
    assert len({task.game.fen() for task in tasks}) == len(tasks)
    for task in tasks:
        if task.is_first:
            side = task.game.side
        assert task.game.side == side
        assert task.game.legal_moves()
        assert judge_game(task.game).result == "none"
    for fen, moves in GAMES:
        assert 40 <= (len(Game(fen, moves.split()).moves) + 1) // 2 <= 60


def test_a_second_prints_every_line_of_the_report(bound_engine, capsys):
    run_speedtest(bound_engine, ["1", "1", "1"], never)
    out, err = capsys.readouterr()
    assert out == ""
    progress, _, report = err.partition("\n===========================\n")
    count = len(list(speedtest_tasks(1)))
    expected = [f"Warmup position {number}/3" for number in (1, 2, 3)]
    expected += [f"Position {number}/{count}" for number in range(1, count + 1)]
    assert [text.strip() for text in progress.split("\r")[1:]] == expected
    lines = [(label.rstrip(), value.strip()) for label, value in (line.split(":", 1) for line in report.splitlines())]
    assert [label for label, _ in lines] == [label for label, _ in REPORT]
    for (label, value), (_, pattern) in zip(lines, REPORT, strict=True):
        assert re.fullmatch(pattern, value), label
    values = dict(lines)
    assert int(values["Total nodes searched"]) > 10_000
    assert 1 <= float(values["Total search time [s]"])
    search, game = (list(map(int, values[f"    single {name}"].split(", "))) for name in ("search", "game"))
    assert search[1] <= search[0] <= game[0]
    assert search[1] < game[1] <= game[0], "what earlier searches of a game wrote is still there"
    assert (bound_engine.threads, bound_engine.table.hash_mib) == (1, 1)


def test_each_game_begins_with_an_empty_table(bound_engine, monkeypatch, capsys):
    events: list = []

    def note_search(engine, limits, _is_stopped):
        events.append((engine.game.fen(), limits.movetime_ms))
        return SimpleNamespace(report=SimpleNamespace(nodes=7))

    monkeypatch.setattr(bound_engine, "new_game", lambda: events.append("new game"))
    monkeypatch.setattr(speedtest, "search_position", note_search)
    run_speedtest(bound_engine, ["1", "1", "20"], never)
    expected: list = []
    tasks = list(speedtest_tasks(20))
    for task in [*tasks[:3], *tasks]:
        if task.is_first:
            expected.append("new game")
        expected.append((task.game.fen(), task.movetime_ms))
    assert [event for event, _ in groupby(events)] == expected
    assert re.search(rf"^Total nodes searched +: {7 * len(tasks)}$", capsys.readouterr().err, re.MULTILINE)


def test_a_stop_ends_it_with_a_report_of_what_was_done(bound_engine, capsys):
    questions = iter(range(1000))
    run_speedtest(bound_engine, ["1", "8", "1000000"], lambda: next(questions) >= 1)
    err = capsys.readouterr().err
    assert "Warmup position 1/3" in err
    assert "Warmup position 2/3" not in err
    assert re.search(r"^Nodes/second +: 0$", err, re.MULTILINE)
    assert re.search(r"^Stopped after +: 0/\d+ positions$", err, re.MULTILINE)


def test_the_search_that_runs_is_stopped(bound_engine, capsys):
    questions = iter(range(1000))
    run_speedtest(bound_engine, ["1", "8", "1"], lambda: next(questions) >= 9)
    assert re.search(r"^Stopped after +: 2/\d+ positions$", capsys.readouterr().err, re.MULTILINE)


def test_games_are_written_as_a_module_that_holds_them(engine, tmp_path):
    settings = Settings(games=1, seed=3, nodes=500, min_plies=21, max_plies=25)
    played = play_games(engine, settings)
    source = module_text(played, settings)
    names: dict = {}
    exec(source, names)
    assert [PlayedGame(fen, tuple(moves.split())) for fen, moves in names["GAMES"]] == played
    assert "--seed 3" in names["__doc__"]
    assert max(map(len, source.splitlines())) <= 120
    assert Game(played[0].fen, played[0].moves).fen()


def test_huge_pages_are_counted_in_the_mappings_of_an_array(tmp_path):
    array = aligned_zeros(4 << 20, np.uint8)
    start = address_of(array)
    mappings = tmp_path / "smaps"
    mappings.write_text(
        f"{start - 4096:x}-{start:x} rw-p 00000000 00:00 0 \nAnonHugePages:      6144 kB\n"
        f"{start:x}-{start + 4096:x} rw-p 00000000 00:00 0 \nRss: 4 kB\nAnonHugePages:      2048 kB\n"
        f"{start + 4096:x}-{start + (8 << 20):x} rw-p 00000000 00:00 0 [heap]\nAnonHugePages:      1024 kB\n"
        f"{start + (8 << 20):x}-{start + (9 << 20):x} rw-p 00000000 00:00 0 \nAnonHugePages:      6144 kB\n"
    )
    assert huge_page_bytes(array, mappings) == 3 << 20
    assert huge_page_bytes(array[: 1 << 20], mappings) == 1 << 20
    assert huge_page_bytes(array, tmp_path / "missing") is None
    size = huge_page_bytes(array)
    assert size is None or 0 <= size <= array.nbytes
