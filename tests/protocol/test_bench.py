"""`bench` and `speedtest` through pipes: what comes on standard output, and what on standard error.

What they do within is tested beside their modules, in tests/test_bench.py and tests/test_speedtest.py.
"""

import re

import pytest

from games.xiangqi import START_FEN, Game
from tests.support import scenes
from tests.support.engine_process import Engine, run_once
from tests.support.uci_grammar import CRITICAL_ERROR

SOON_S = 30
TOTALS = r"===========================\nTotal time \(ms\) : (\d+)\nNodes searched  : (\d+)\nNodes/second    : (\d+)"


@pytest.fixture
def position_file(tmp_path):
    path = tmp_path / "positions.txt"
    path.write_text(f"# two positions\n{START_FEN}\n\n{scenes.MIDDLEGAME}\n")
    return path


def bench(engine: Engine, words: str) -> tuple[list[str], str]:
    """What comes on standard output, and on standard error."""
    engine.errors.clear()
    lines = engine.ask(f"bench {words}")
    if not any("CRITICAL ERROR" in line for line in lines):
        engine.until_error("Nodes/second")
    return lines, "\n".join(engine.errors)


def totals(errors: str) -> tuple[int, int, int]:
    """Time in ms, nodes, nodes per second."""
    match = re.search(TOTALS, errors)
    assert match, errors
    return int(match[1]), int(match[2]), int(match[3])


def test_headings_lines_and_totals(engine, position_file):
    lines, errors = bench(engine, f"16 1 5 {position_file}")
    headings = [line for line in errors.splitlines() if line.startswith("Position")]
    assert headings == [f"Position: 1/2 ({START_FEN})", f"Position: 2/2 ({scenes.MIDDLEGAME})"]
    assert sum(line.startswith("bestmove") for line in lines) == 2
    assert sum(line.startswith("info depth 5 ") for line in lines) == 2
    time_ms, nodes, nps = totals(errors)
    assert nps == 1000 * nodes // time_ms
    assert nodes > 0


def test_the_node_total_repeats(engine, position_file):
    """E42 of the field reports: whatever was searched before, and in another process."""
    first = totals(bench(engine, f"4 1 7 {position_file}")[1])[1]
    engine.send(f"position fen {scenes.ENDGAME}")
    engine.search("go depth 8")
    assert totals(bench(engine, f"4 1 7 {position_file}")[1])[1] == first
    assert totals(run_once("bench", "4", "1", "7", str(position_file)).stderr)[1] == first


def test_the_built_in_positions(engine):
    lines, errors = bench(engine, "16 1 1")
    games = [Game(fen) for fen in re.findall(r"Position: \d+/\d+ \((.*)\)", errors)]
    assert len(games) >= 30
    assert games[0].fen() == START_FEN
    assert sum(line.startswith("bestmove") for line in lines) == len(games)


def test_the_present_position(engine):
    engine.send("position startpos moves h2e2")
    lines, errors = bench(engine, "16 1 3 current")
    assert f"Position: 1/1 ({Game(moves=['h2e2']).fen()})" in errors
    assert (
        next(line for line in lines if line.startswith("bestmove")).split()[1]
        in Game(moves=["h2e2"]).legal_move_texts()
    )


def test_perft_and_evaluations(engine, position_file):
    lines, _ = bench(engine, f"16 1 2 {position_file} perft")
    assert "Nodes searched: 1920" in lines
    engine.send("eval")  # tells the grammar that tables are expected
    lines, _ = bench(engine, f"16 1 1 {position_file} eval")
    assert sum(line.startswith("Final evaluation") for line in lines) >= 2
    assert not [line for line in lines if line.startswith("bestmove")]


def test_threads_and_hash_stay(engine, position_file):
    bench(engine, f"8 2 2 {position_file}")
    assert engine.search("go depth 2").strings[1].startswith("Using 2 threads")
    engine.send("setoption name Threads value 1", "setoption name Hash value 16")


def test_a_bad_file_is_a_critical_error(engine, tmp_path):
    path = tmp_path / "positions.txt"
    path.write_text(f"{START_FEN}\nnonsense\n")
    engine.send("setoption name Survive Errors value true")
    lines, errors = bench(engine, f"16 1 1 {path}")
    assert len(lines) == 2
    assert CRITICAL_ERROR.fullmatch(lines[0])[1] == f"bench 16 1 1 {path}"
    assert "nonsense" in lines[0].partition("Reason: ")[2]
    assert errors == ""


@pytest.mark.parametrize("end", ["stop", "quit"])
def test_a_bench_can_be_left(own_engine, end):
    own_engine.send("bench 16 1 60")
    own_engine.until("info depth 8")
    own_engine.send(end, "isready")
    if end == "stop":
        own_engine.until("bestmove", SOON_S)
        own_engine.ask(timeout_s=SOON_S)
        own_engine.send("quit")
    assert own_engine.wait_for_end(SOON_S)[1] == 0


REPORT = (
    *("Version", "Large pages", "User invocation", "Filled invocation", "Available processors", "Thread count"),
    *("Thread binding", "TT size [MiB]", "Hash max, avg [per mille]", "Total nodes searched"),
    *("Total search time [s]", "Nodes/second"),
)


def test_speedtest_reports(own_engine):
    own_engine.ask()
    own_engine.send("speedtest 1 4 1")
    lines = own_engine.ask(timeout_s=60)
    own_engine.until_error("Nodes/second")
    errors = "\n".join(own_engine.errors)
    assert not [line for line in lines if line.startswith(("info depth", "bestmove"))]
    assert [name for name in REPORT if name not in errors] == []
    assert re.search(r"User invocation\s*: speedtest 1 4 1\b", errors)
    assert re.search(r"Filled invocation\s*: speedtest 1 4 1\b", errors)
    assert int(re.search(r"Total nodes searched\s*: (\d+)", errors)[1]) > 0
    assert 0.5 < float(re.search(r"Total search time \[s\]\s*: ([0-9.]+)", errors)[1]) < 10


@pytest.mark.parametrize("end", ["stop", "quit"])
def test_a_speedtest_can_be_left(own_engine, end):
    own_engine.ask()
    own_engine.send("speedtest 1 4 60")
    own_engine.listen(0.5)
    own_engine.send(end, "isready")
    if end == "stop":
        own_engine.until("readyok", SOON_S)
        own_engine.send("quit")
    assert own_engine.wait_for_end(SOON_S)[1] == 0
