"""A run of `analyse` that was interrupted or killed goes on, and writes what one in one go has written."""

import random
import time
from pathlib import Path

import pytest

from games.xiangqi import START_FEN
from search.engine import Engine
from search.limits import Limits
from tests.analyse.runs import IDENTITY, LIMITS, SOME_BYTES, Run, interrupt
from tests.support.journal_runs import kill_on_its_way
from tests.support.position_files import read_records, write_lines
from uci import analysis_run
from uci.analysis_run import AnalysisSettings, analyse_file
from uci.file_run import Summary
from uci.position_files import InputError

OTHER_IDENTITY = bytes(range(32))


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


SLOW_NODES = 20_000
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
limits = Limits(nodes={SLOW_NODES})
settings = analysis_run.AnalysisSettings(sys.argv[1], Path(sys.argv[2]), limits=limits, isolated=True)
analysis_run.analyse_file(settings, engine, {IDENTITY!r})
"""


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_survives_being_killed(tmp_path, engines, fens, ending):
    source = write_lines(tmp_path / "in.txt", fens)
    target, undisturbed = tmp_path / f"out{ending}", tmp_path / f"undisturbed{ending}"
    settings = {"limits": Limits(nodes=SLOW_NODES), "block_bytes": analysis_run.BLOCK_BYTES}
    Run(engines["two threads"], source, undisturbed, **settings)
    rng = random.Random(42)
    for _ in range(3):
        kill_on_its_way(SLOW_RUN, source, target, SOME_BYTES, delay_s=rng.uniform(0, 0.05))
    run = Run(engines["two threads"], source, target, **settings)
    assert 0 < run.found < len(fens) - 3
    assert target.read_bytes() == undisturbed.read_bytes()
    assert not Path(f"{target}.journal").exists()
