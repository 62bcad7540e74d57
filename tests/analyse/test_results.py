"""What `analyse` writes, whatever searches, and what it makes of broken input."""

import io
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from games.xiangqi import START_FEN
from search.limits import Limits
from search.root_blocks import position_blocks
from tests.analyse.runs import BLOCK, COLUMNS, LIMITS, MATED, STALEMATED, Run, plain
from tests.support.position_files import read_records, write_lines, write_parquet
from uci import analysis_run, result_files
from uci.file_run import Progress, Summary
from uci.findings import Findings
from uci.position_files import InputError
from uci.read_ahead import ITEMS_AHEAD


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
