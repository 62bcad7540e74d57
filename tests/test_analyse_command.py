"""`jaxfish analyse`: what it writes, on which backend, how it goes on, and what it says when it cannot."""

import io
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from games.xiangqi import START_FEN
from nets import BOOTSTRAP_NETWORK
from nnue_jax.evaluator import Evaluator
from nnue_jax.simulated_device import SimulatedDevice
from search.engine import Engine
from search.limits import Limits
from search.root_blocks import position_blocks
from tests.support.games import random_walk
from tests.support.networks import bootstrap_network
from tests.support.position_files import read_records, write_lines, write_parquet
from uci import analyse, analysis_run, file_command, result_files
from uci.analysis_run import AnalysisSettings, analyse_file
from uci.file_run import Progress, Summary
from uci.findings import Findings
from uci.position_files import InputError
from uci.read_ahead import ITEMS_AHEAD

ROOT = Path(__file__).resolve().parent.parent
IDENTITY, OTHER_IDENTITY = bytes(32), bytes(range(32))
BLOCK = {"block_bytes": 1024, "block_rows": 15}  # some 15 positions
LIMITS = Limits(nodes=150, depth=6)
COLUMNS = "fen best_move cp mate win draw loss depth selective_depth nodes pv bound".split()
NUMBERS = ("multipv", "cp", "mate", "win", "draw", "loss", "depth", "selective_depth", "nodes")
MATED = "3k5/9/9/9/9/9/9/9/4R4/3RK4 b"
STALEMATED = "3k5/4R4/9/9/9/9/9/9/9/5K3 b"
TIMEOUT_S = 120
COMMAND = [sys.executable, "-m", "uci.main", "analyse"]


@pytest.fixture(scope="module")
def fens() -> list[str]:
    """Among them mates in one, and positions without a legal move."""
    return [*[game.fen() for game in random_walk(seed=41, count=270)], MATED, STALEMATED]


@pytest.fixture(scope="module")
def engines():
    """Engines by name."""
    network = bootstrap_network()
    found = {"numba": Engine(network), "two threads": Engine(network, threads=2)}
    for name, threads in (("jax:cpu", 2), ("simulated", 1)):
        found[name] = Engine(network, threads)
    found["jax:cpu"].set_backend(lambda network: Evaluator.load(network, "jax:cpu"))
    found["simulated"].set_backend(lambda network: SimulatedDevice(network, latency_us=20))
    yield found
    for engine in found.values():
        engine.close()


class Run:
    """One run over a file. seen: what was told of its progress; told: sentences for the user."""

    def __init__(self, engine: Engine, source, target, identity: bytes = IDENTITY, on_progress=None, **settings):
        self.seen: list[Progress] = []
        self.told: list[str] = []
        settings = {"limits": LIMITS, "isolated": True, **BLOCK, **settings}
        self.settings = AnalysisSettings(str(source), target, **settings)

        def note(progress: Progress) -> None:
            self.seen.append(progress)
            if on_progress is not None:
                on_progress(progress)

        self.summary: Summary = analyse_file(self.settings, engine, identity, note, self.told.append)

    @property
    def found(self) -> int:
        return self.seen[-1].found


@pytest.fixture(scope="module")
def expected(tmp_path_factory, engines, fens) -> Path:
    """CSV of `fens`, as one thread makes it."""
    folder = tmp_path_factory.mktemp("expected")
    Run(engines["numba"], write_lines(folder / "in.txt", fens), folder / "out.csv")
    return folder / "out.csv"


def plain(record: dict) -> dict:
    """A row of CSV with numbers and None."""
    return {name: None if text == "" else int(text) if name in NUMBERS else text for name, text in record.items()}


@pytest.mark.parametrize("multi_pv", [1, 3])
def test_rows_are_what_the_engine_finds(tmp_path, engines, fens, multi_pv):
    source = write_lines(tmp_path / "in.txt", fens)
    Run(engines["numba"], source, tmp_path / "out.jsonl", multi_pv=multi_pv)
    rows = []
    for fen, found in zip(fens, engines["numba"].analyse(fens, LIMITS, multi_pv, isolated=True), strict=True):
        for number, line in enumerate(found.lines, 1):
            score = line.score
            win, draw, loss = score.win_draw_loss
            rows.append(
                {"fen": fen}
                | ({"multipv": number} if multi_pv > 1 else {})
                | {"best_move": line.pv[0] if line.pv else None}
                | {"cp": None if score.is_mate else score.score_cp, "mate": score.mate_moves if score.is_mate else None}
                | {"win": win, "draw": draw, "loss": loss}
                | {"depth": line.depth, "selective_depth": line.selective_depth, "nodes": found.nodes}
                | {"pv": " ".join(line.pv) or None, "bound": line.bound or None}
            )
    written = read_records(tmp_path / "out.jsonl")
    assert written == rows
    assert list(written[0]) == [COLUMNS[0], *(["multipv"] if multi_pv > 1 else []), *COLUMNS[1:]]
    assert len(rows) == len(fens) if multi_pv == 1 else 2 * len(fens) < len(rows) < 3 * len(fens)
    assert any(row["mate"] for row in rows)
    assert multi_pv == 1 or any(row["bound"] for row in rows)


def test_positions_without_a_legal_move(tmp_path, engines):
    source = write_lines(tmp_path / "in.txt", [MATED, STALEMATED])
    for multi_pv in (1, 2):
        assert Run(engines["numba"], source, tmp_path / "out.csv", multi_pv=multi_pv).summary == Summary(2, 0)
        for fen, record in zip((MATED, STALEMATED), read_records(tmp_path / "out.csv"), strict=True):
            assert plain(record) == {
                **({"multipv": 1} if multi_pv > 1 else {}),
                **{"fen": fen, "best_move": None, "cp": None, "mate": 0, "win": 0, "draw": 0, "loss": 1000},
                **{"depth": 0, "selective_depth": 0, "nodes": 0, "pv": None, "bound": None},
            }


WAYS = [
    ("two threads", {}),
    ("two threads", {"block_bytes": 4096}),
    ("jax:cpu", {"searchers": 5}),
    ("simulated", {"searchers": 7}),
    ("simulated", {"searchers": 1}),
]


@pytest.mark.parametrize(("engine", "how"), WAYS, ids=str)
def test_isolated_results_do_not_depend_on_the_means(tmp_path, engines, fens, expected, engine, how):
    Run(engines[engine], write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv", **how)
    assert (tmp_path / "out.csv").read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_the_file_does_not_depend_on_its_parts(tmp_path, engines, fens, ending, monkeypatch):
    monkeypatch.setattr(result_files, "ROW_GROUP_ROWS", 100)
    source = write_lines(tmp_path / "in.txt", [*fens[:100], "broken", *fens[100:120], "broken", "broken"])
    made = set()
    for period_s, how in ((0.0, {}), (0.0, {"block_bytes": 2048}), (1.0, {})):
        monkeypatch.setattr(analysis_run, "PART_PERIOD_S", period_s)
        target = tmp_path / f"out{ending}"
        Run(engines["numba"], source, target, keep_refused=True, multi_pv=2, **how)
        made.add(target.read_bytes())
    assert len(made) == 1


def test_every_format_holds_the_same(tmp_path, engines, fens, expected):
    source = write_lines(tmp_path / "in.txt", fens)
    rows = [plain(record) for record in read_records(expected)]
    for ending in (".jsonl", ".parquet", ".CSV"):
        Run(engines["two threads"], source, tmp_path / f"out{ending}")
        records = read_records(tmp_path / f"out{ending}")
        assert (list(map(plain, records)) if ending == ".CSV" else records) == rows
    schema = pa.parquet.read_schema(tmp_path / "out.parquet")
    text, number = pa.string(), pa.int32()
    assert schema.names == COLUMNS
    assert schema.types == [text, text, *[number] * 7, pa.int64(), text, text]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.CSV", "out.jsonl", "out.parquet"]


def test_shared_tables(tmp_path, engines, fens):
    """Results differ from run to run, but none is missing."""
    for engine in ("two threads", "simulated"):
        Run(engines[engine], write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv", isolated=False)
        rows = [plain(record) for record in read_records(tmp_path / "out.csv")]
        assert [row["fen"] for row in rows] == fens
        assert [row["best_move"] for row in rows][-2:] == [None, None]
        assert all(0 < row["nodes"] <= LIMITS.nodes for row in rows if row["best_move"])


def test_movetime(tmp_path, engines, fens):
    source = write_lines(tmp_path / "in.txt", fens[:6])
    Run(engines["two threads"], source, tmp_path / "out.csv", limits=Limits(movetime_ms=5))
    assert all(int(record["nodes"]) > 0 for record in read_records(tmp_path / "out.csv"))


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment"])
def test_nothing_to_analyse(tmp_path, engines, ending, content):
    (tmp_path / "in.txt").write_text(content)
    run = Run(engines["numba"], tmp_path / "in.txt", tmp_path / f"out{ending}")
    assert run.summary == Summary(0, 0)
    assert read_records(tmp_path / f"out{ending}") == []


@pytest.mark.parametrize("write", [write_lines, write_parquet], ids=["text", "parquet"])
@pytest.mark.parametrize("multi_pv", [1, 2])
def test_broken_lines_become_rows(tmp_path, engines, fens, write, multi_pv):
    lines = [*fens[:40], 'a,"b" w', "broken", *fens[40:50], "象"]
    source = write(tmp_path / ("in.parquet" if write is write_parquet else "in.txt"), ["broken", *lines, "broken"])
    run = Run(engines["numba"], source, tmp_path / "out.jsonl", keep_refused=True, multi_pv=multi_pv)
    assert run.summary == Summary(len(lines) + 2, 5)
    records = read_records(tmp_path / "out.jsonl")
    first_lines = [record for record in records if record.get("multipv", 1) in (1, None)]
    assert [record["fen"] for record in first_lines] == ["broken", *lines, "broken"]
    assert list(records[0])[-1] == "error"
    for record in records:
        if record["fen"] in fens:
            assert record["error"] is None and record["depth"] is not None
        else:
            assert "has 1 ranks" in record["error"]
            assert all(value is None for name, value in record.items() if name not in ("fen", "error"))


@pytest.mark.parametrize("line", [1, 2, 17, 150, 274])
def test_a_broken_line_ends_the_run_and_is_named(tmp_path, engines, fens, line):
    lines = ["# comment", "", *fens]
    lines[line - 1] = "broken w"
    write_lines(tmp_path / "in.txt", lines)
    with pytest.raises(InputError, match=f"^Line {line}: The placement 'broken' has 1 ranks; expected 10.$"):
        Run(engines["numba"], tmp_path / "in.txt", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    assert (tmp_path / "out.csv.journal").exists() == (line > 20)


def test_a_broken_row_is_named(tmp_path, engines, fens):
    write_parquet(tmp_path / "in.parquet", [*fens[:33], None])
    with pytest.raises(InputError, match=r"^Row 34: "):
        Run(engines["numba"], tmp_path / "in.parquet", tmp_path / "out.csv")


def test_a_line_without_end_is_refused(tmp_path, engines):
    (tmp_path / "in.txt").write_bytes(f"{START_FEN}\n".encode() + b"x" * 3000)
    with pytest.raises(InputError, match="Line 2 is longer than 1024 bytes"):
        Run(engines["two threads"], tmp_path / "in.txt", tmp_path / "out.csv", keep_refused=True)


def interrupt(engine: Engine, source: Path, target: Path, after: int, **settings) -> int:
    """Leave behind what a run does that ends after this many positions, or a few more; returns their number."""
    reached = 0

    def stop(progress: Progress) -> None:
        nonlocal reached
        reached = progress.positions
        if reached >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(engine, source, target, on_progress=stop, **settings)
    assert not target.exists() and not list(target.parent.glob("*.part"))
    return reached


@pytest.mark.parametrize(("period_s", "after"), [(0.0, 1), (0.0, 100), (1.0, 100), (0.0, 272)])
def test_goes_on_after_an_interruption(tmp_path, engines, fens, expected, monkeypatch, period_s, after):
    monkeypatch.setattr(analysis_run, "PART_PERIOD_S", period_s)
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    reached = interrupt(engines["numba"], source, target, after)
    assert reached == after or (period_s > 0 and reached < after + 30)
    run = Run(engines["simulated"], source, target, searchers=3)
    assert f"which holds {reached} positions" in run.told[0]
    assert run.found == len(fens) - reached
    assert run.seen[-1].positions == len(fens)
    assert target.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.csv"]


def test_interrupted_over_and_over(tmp_path, engines, fens, expected, monkeypatch):
    """Parts of one block are found by several runs."""
    monkeypatch.setattr(analysis_run, "PART_PERIOD_S", 0.0)
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    for after in range(4, 44, 4):
        interrupt(engines["numba"], source, target, after)
    assert Run(engines["numba"], source, target).found == len(fens) - 40
    assert target.read_bytes() == expected.read_bytes()


def test_outcomes_that_were_not_written_yet_are_kept(tmp_path, engines, fens, expected, monkeypatch):
    """The run ends in the middle of a part."""
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    looks = iter(range(101))  # one in the beginning, then one for each outcome

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            if next(looks) == 100:
                raise KeyboardInterrupt
            return 0.0

    monkeypatch.setattr(analysis_run, "time", Clock)
    with pytest.raises(KeyboardInterrupt):
        Run(engines["numba"], source, target)
    monkeypatch.setattr(analysis_run, "time", time)
    assert Run(engines["numba"], source, target).found == len(fens) - 100
    assert target.read_bytes() == expected.read_bytes()


def test_changed_input_is_analysed_anew(tmp_path, engines, fens, expected, monkeypatch):
    """What is known lies on both sides of what is not."""
    monkeypatch.setattr(analysis_run, "PART_PERIOD_S", 1e9)
    source, target = tmp_path / "in.txt", tmp_path / "out.csv"
    text = "".join(f"{fen}\n" for fen in fens)
    at, length = text.index(fens[100]), len(fens[100])
    changed = START_FEN[: START_FEN.index(" ")] + " b"
    source.write_text(text[:at] + changed.ljust(length) + text[at + length :])
    reached = interrupt(engines["numba"], source, target, 200)
    source.write_text(text)
    run = Run(engines["two threads"], source, target)
    block_ends = [progress.positions for progress in run.seen]
    end = next(end for end in block_ends if end > 100)
    begin = max(end for end in block_ends if end <= 100)
    assert run.found == len(fens) - reached + end - begin
    assert target.read_bytes() == expected.read_bytes()


def test_interrupted_before_anything_was_found(tmp_path, engines, fens, monkeypatch):
    monkeypatch.setattr(Engine, "analyse_blocks", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    told = []
    settings = AnalysisSettings(str(write_lines(tmp_path / "in.txt", fens)), tmp_path / "out.csv", limits=LIMITS)
    with pytest.raises(KeyboardInterrupt):
        analyse_file(settings, engines["numba"], IDENTITY, on_info=told.append)
    assert told == ["Nothing had been found yet."]
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_other_settings_start_anew(tmp_path, engines, fens, expected):
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    interrupt(engines["numba"], source, target, 100, identity=OTHER_IDENTITY)
    run = Run(engines["numba"], source, target)
    assert "other settings" in run.told[0]
    assert run.found == len(fens)
    assert target.read_bytes() == expected.read_bytes()


def test_errors_may_become_rows_when_a_run_goes_on(tmp_path, engines, fens):
    source, target = write_lines(tmp_path / "in.txt", [*fens[:60], "broken", *fens[60:]]), tmp_path / "out.csv"
    with pytest.raises(InputError, match="Line 61"):
        Run(engines["numba"], source, target)
    run = Run(engines["numba"], source, target, keep_refused=True)
    assert run.summary == Summary(len(fens) + 1, 1)
    assert len(fens) - 60 <= run.found < len(fens) - 60 + 20
    assert [record["fen"] for record in read_records(target)] == [*fens[:60], "broken", *fens[60:]]


SOME_BYTES = 500  # of a journal, for a few positions
# A run in a process of its own, slow enough to be killed on its way.
SLOW_RUN = f"""
import sys
from pathlib import Path
from search.engine import Engine
from search.limits import Limits
from tests.support.networks import bootstrap_network
from uci import analysis_run
analysis_run.PART_PERIOD_S = 0.05
engine = Engine(bootstrap_network())
settings = analysis_run.AnalysisSettings(sys.argv[1], Path(sys.argv[2]), limits=Limits(nodes=10_000), isolated=True)
analysis_run.analyse_file(settings, engine, {IDENTITY!r})
"""


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_survives_being_killed(tmp_path, engines, fens, ending):
    source = write_lines(tmp_path / "in.txt", fens)
    target, undisturbed = tmp_path / f"out{ending}", tmp_path / f"undisturbed{ending}"
    settings = {"limits": Limits(nodes=10_000), "block_bytes": analysis_run.BLOCK_BYTES}
    Run(engines["two threads"], source, undisturbed, **settings)
    rng = random.Random(42)
    journal = Path(f"{target}.journal")
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", SLOW_RUN, str(source), str(target)], cwd=ROOT)
        size = journal.stat().st_size if journal.exists() else 0
        while process.poll() is None and (not journal.exists() or journal.stat().st_size < size + SOME_BYTES):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.05))
        assert process.poll() is None, "the run ended before it could be killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not target.exists()
    run = Run(engines["two threads"], source, target, **settings)
    assert 0 < run.found < len(fens) - 3
    assert target.read_bytes() == undisturbed.read_bytes()
    assert not journal.exists()


def test_ctrl_c_is_obeyed_and_the_run_goes_on(tmp_path, fens):
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    journal = Path(f"{target}.journal")
    command = [*COMMAND, str(source), "--movetime", "20", "--backend", "numba", "--output", str(target)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and (not journal.exists() or journal.stat().st_size < SOME_BYTES):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert errors == f"What has been found is kept in '{journal}'; the same command goes on from there.\n"
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stderr.startswith(f"Going on from '{journal}', which holds ")
    assert [record["fen"] for record in read_records(target)] == fens


def test_ctrl_c_is_obeyed_while_waiting_for_input(fens):
    """What has come is searched; then nothing comes, but nor does the input end."""
    process = subprocess.Popen(
        [*COMMAND, "-", "--nodes", "100", "--backend", "numba"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("".join(f"{fen}\n" for fen in [*fens, *fens]))
    process.stdin.flush()
    for _ in range(100):
        process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(TIMEOUT_S) == 130
    finally:
        process.kill()
    _, errors = process.communicate()
    assert errors == ""


class CountingInput(io.BytesIO):
    """Standard input that says how much of it has been read."""

    @property
    def buffer(self) -> "CountingInput":
        return self


def test_few_positions_are_held(engines, fens, tmp_path, monkeypatch):
    """Reading does not run ahead of what is written."""
    lines = fens * 4
    text = "".join(f"{fen}\n" for fen in lines).encode()
    source = CountingInput(text)
    monkeypatch.setattr(sys, "stdin", source)
    longest = max(map(len, fens)) + 1
    window = 64  # of an analysis with one searcher
    room = window * longest + (ITEMS_AHEAD + 4) * BLOCK["block_bytes"]
    assert room < len(text) / 2
    ends = np.cumsum([len(fen) + 1 for fen in lines])

    def check(progress: Progress) -> None:
        assert source.tell() <= ends[progress.positions - 1] + room

    Run(engines["numba"], "-", tmp_path / "out.csv", on_progress=check)
    assert len(read_records(tmp_path / "out.csv")) == len(lines)


def test_progress_tells_how_much_is_done(tmp_path, engines, fens, monkeypatch):
    monkeypatch.setattr(analysis_run, "PART_PERIOD_S", 0.0)
    run = Run(engines["numba"], write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv", block_bytes=1 << 14)
    assert [progress.positions for progress in run.seen] == list(range(1, len(fens) + 1))
    for progress in run.seen:
        assert abs(progress.fraction - progress.positions / len(fens)) < 0.1
    assert run.seen[-1].fraction == 1.0
    nodes = sum(int(record["nodes"]) for record in read_records(tmp_path / "out.csv"))
    assert run.seen[-1].nodes == nodes


@pytest.mark.parametrize("multi_pv", [1, 3])
def test_findings_survive_the_journal(engines, fens, multi_pv):
    blocks = engines["numba"].analyse_blocks
    outcomes = list(blocks(position_blocks(fens[-40:]), LIMITS, multi_pv, isolated=True))
    model = engines["numba"].network.win_rate_model
    whole = Findings.of(outcomes)
    parts = [Findings.of(outcomes[:7]), Findings.of(outcomes[7:])]
    joined = Findings.from_records([(len(part), part.to_bytes()) for part in parts])
    assert len(joined) == len(outcomes)
    assert joined.nodes == whole.nodes == sum(outcome.nodes for outcome in outcomes)
    assert list(joined.rows(model)) == list(whole.rows(model))
    assert [len(lines) for lines in whole.rows(model)] == [len(outcome.lines) for outcome in outcomes]


BOOTSTRAP = ["--network", str(BOOTSTRAP_NETWORK)]


def run_command(arguments: list[str], capfd) -> tuple[int, str, str]:
    """(status, standard output, standard error) of a command in this process."""
    status = analyse.main(arguments)
    return status, *capfd.readouterr()


def test_command_writes_csv_to_standard_output(tmp_path, capfd):
    source = write_lines(tmp_path / "in.txt", [START_FEN, "broken"])
    arguments = [str(source), "--depth", "3", "--errors", "row", "--multipv", "2", "--backend", "numba", "--hash", "1"]
    status, out, err = run_command(arguments, capfd)
    assert status == 0
    assert err == "1 of 2 positions were refused; see the column error.\n"
    lines = out.splitlines()
    assert lines[0] == ",".join([COLUMNS[0], "multipv", *COLUMNS[1:], "error"])
    assert [line.split(",")[:2] for line in lines[1:3]] == [[START_FEN, "1"], [START_FEN, "2"]]
    assert lines[3].startswith("broken" + "," * 13 + "The placement")


def test_backends_of_the_command_agree(tmp_path, capfd, fens, expected):
    source = write_lines(tmp_path / "in.txt", fens)
    arguments = [str(source), "--nodes", str(LIMITS.nodes), "--depth", str(LIMITS.depth), "--isolated", *BOOTSTRAP]
    for more, telling in (
        (["--backend", "numba", "--threads", "1"], ""),
        (["--backend", "jax:cpu", "--searchers", "9", "--batch", "8"], "jax:cpu: batches "),
        (["--backend", "simulated:10:50", "--threads", "2"], "simulated: batches "),
    ):
        status, out, err = run_command([*arguments, *more], capfd)
        assert status == 0
        assert out == expected.read_text()
        assert err.startswith(telling) and err.count("\n") == (telling != "")


def test_auto_says_what_it_chose(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    source = write_lines(tmp_path / "in.txt", [START_FEN])
    status, _, err = run_command([str(source), "--nodes", "10"], capfd)
    assert (status, err) == (0, "Backend auto: numba, since JAX has no accelerator here.\n")


def test_installed_command(fens, expected):
    """The real thing, from a pipe."""
    limits = ["--nodes", str(LIMITS.nodes), "--depth", str(LIMITS.depth), "--isolated", *BOOTSTRAP]
    done = subprocess.run(
        [*COMMAND, "-", *limits, "--backend", "numba"],
        input="".join(f"{fen}\n" for fen in fens),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected.read_text()


def test_a_device_that_fails_is_a_sentence(tmp_path, capfd, fens, monkeypatch):
    class FailingDevice(SimulatedDevice):
        calls = 0

        def begin(self, packed):
            type(self).calls += 1
            if self.calls == 500:
                raise RuntimeError("it is on fire")
            return super().begin(packed)

    maker = lambda network: FailingDevice(network, latency_us=0)  # noqa: E731
    monkeypatch.setattr(analyse, "make_evaluator", lambda name: (maker, "on fire"))
    monkeypatch.setattr(analysis_run, "PART_PERIOD_S", 0.0)
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    arguments = [str(source), "--nodes", "150", "--output", str(target), "--threads", "1", "--searchers", "8"]
    arguments += BOOTSTRAP
    status, out, err = run_command(arguments, capfd)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1] == "The evaluator simulated failed: it is on fire"
    assert "the same command goes on from there" in err
    status, _, err = run_command(arguments, capfd)
    assert status == 0 and "Going on from" in err
    assert [record["fen"] for record in read_records(target)] == fens


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["in.txt"], "There is no limit to the search; expected --nodes, --depth or --movetime."),
        (["in.txt", "--nodes", "0"], "--nodes is '0'; expected a number of nodes, at least 1."),
        (["in.txt", "--nodes", "-1"], "--nodes is '-1'; expected a number of nodes, at least 1."),
        (["in.txt", "--nodes", "9" * 20], "--nodes is '9"),
        (["in.txt", "--depth", "x"], "--depth is 'x'; expected a depth in plies, at least 1."),
        (["in.txt", "--movetime", "1.5"], "--movetime is '1.5'; expected a time in milliseconds, at least 1."),
        (["in.txt", "--nodes", "1", "--multipv", "0"], "--multipv is '0'; expected a number of lines, 1 to 128."),
        (["in.txt", "--nodes", "1", "--threads", "0"], "--threads is '0'; expected a number of threads, 1 to "),
        (["in.txt", "--nodes", "1", "--hash", "0"], "--hash is '0'; expected a size in MiB, 1 to "),
        (["in.txt", "--nodes", "1", "--hash", "33554432"], "The hash size is 33554432 MiB, but the memory"),
        (["in.txt", "--nodes", "1", "--hash", "8", "--isolated"], "--hash is about the table that positions share; "),
        (["in.txt", "--nodes", "1", "--searchers", "²"], "--searchers is '²'; expected a number of positions, 1 to "),
        (
            ["in.txt", "--nodes", "1", "--searchers", "5", "--backend", "numba"],
            "--searchers is for backends that evaluate in batches. Backend numba: every search thread evaluates by",
        ),
        (
            ["in.txt", "--nodes", "1", "--batch", "5"],
            "--batch is for backends that evaluate in batches. Backend auto: ",
        ),
        (["in.txt", "--nodes", "1", "--backend", "abacus"], "The backend 'abacus' is unknown; expected one of auto"),
        (["in.txt", "--nodes", "1", "--backend", "simulated:1"], "The backend 'simulated:1' is unknown; expected "),
        (["in.txt", "--nodes", "1", "--network", "no.nnue"], "The network file 'no.nnue' cannot be read: No such file"),
        (["in.txt", "--nodes", "1", "--output", "out.xlsx"], "The output 'out.xlsx' ends with none of .csv, .jsonl, "),
        (["in.txt", "--nodes", "1", "--output", "notes.csv"], "'notes.csv.journal' is in the way"),
        (["in.txt", "--nodes", "1", "--errors", "skip"], "--errors is 'skip'; expected stop or row."),
        (["in.txt", "--nods", "1"], "Unrecognized arguments: --nods 1. usage: jaxfish analyse"),
        (["none.txt", "--nodes", "1"], "The input 'none.txt' cannot be read: No such file or directory."),
        (["broken.txt", "--nodes", "1"], "Line 2: The placement 'broken' has 1 ranks; expected 10."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_sentences(tmp_path, capfd, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    write_lines(tmp_path / "in.txt", [START_FEN])
    write_lines(tmp_path / "broken.txt", [START_FEN, "broken"])
    (tmp_path / "notes.csv.journal").write_text("my notes")
    before = sorted(path.name for path in tmp_path.iterdir())
    status, out, err = run_command(arguments, capfd)
    assert status == 1
    assert err.removeprefix("Backend auto: numba, since JAX has no accelerator here.\n").startswith(sentence)
    assert err.endswith("\n") and err.count("\n") <= 2
    assert out in ("", ",".join(COLUMNS) + "\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_identity_is_that_of_what_is_asked_for(monkeypatch):
    def identity(*arguments: str) -> bytes:
        options = file_command.parse("analyse", "", analyse.FLAGS, ["in.txt", *arguments])
        return analyse._identity(options, analyse._settings(options))

    plain = identity("--nodes", "100")
    means = ["--threads", "3", "--hash", "5", "--backend", "jax", "--searchers", "7", "--batch", "8"]
    assert identity("--nodes", "100", *means, "--errors", "row", "--output", "x.csv") == plain
    others = [
        ["--nodes", "101"],
        ["--depth", "100"],
        ["--nodes", "100", "--movetime", "9"],
        ["--nodes", "100", "--multipv", "2"],
        ["--nodes", "100", "--isolated"],
        ["--nodes", "100", "--network", __file__],
    ]
    assert len({plain, *(identity(*other) for other in others)}) == 1 + len(others)
    monkeypatch.setattr(analyse, "source_hash", lambda: "of another version")
    assert identity("--nodes", "100") != plain


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo terminal")
def test_progress_is_shown_on_a_terminal(tmp_path, fens, monkeypatch):
    source = write_lines(tmp_path / "in.txt", fens)
    monkeypatch.setattr(file_command, "REFRESH_PERIOD_S", 0.0)
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as terminal, os.fdopen(master, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", terminal)
        arguments = [str(source), "--output", str(tmp_path / "out.csv"), "--nodes", "50", "--backend", "numba"]
        assert analyse.main(arguments) == 0
        shown = screen.read(4096).decode()
    assert "100.0 %" in shown and f"{len(fens)} positions" in shown and "/s" in shown and "nodes/s" in shown
