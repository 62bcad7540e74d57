"""`jaxfish evaluate`: what it writes, from which input, and what it says when it cannot."""

import csv
import gzip
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from games.xiangqi import START_FEN
from games.xiangqi.fen import parse_fen
from games.xiangqi.packed import pack
from nets import DEFAULT_NETWORK
from nnue_jax import backends
from nnue_jax.evaluator import Evaluator, evaluations
from tests.support.games import random_walk
from tests.support.piece_list_evaluator import PieceListEvaluator
from tests.support.position_files import write_lines, write_parquet
from uci import evaluate, file_command, result_files
from uci.evaluation_run import RunSettings, evaluate_file
from uci.file_run import Summary
from uci.position_files import InputError, open_positions

IDENTITY = bytes(32)
COLUMNS = ["fen", "psqt", "positional", "value", "cp", "win", "draw", "loss"]
PLACEMENT = START_FEN.split()[0]
IN_CHECK = "3k5/3R5/9/9/9/9/9/9/9/4K4 b - - 0 1"
BLOCK = {"block_bytes": 4096, "block_rows": 100}


@pytest.fixture(scope="module")
def fens() -> list[str]:
    return [game.fen() for game in random_walk(seed=31, count=1000)]


def run(source, target: Path, **settings) -> Summary:
    return evaluate_file(RunSettings(str(source), target, **{**BLOCK, **settings}), PieceListEvaluator(), IDENTITY)


def expected_rows(fens: list[str]) -> list[tuple]:
    """(fen, numbers or None) by way of the functions for one position."""
    packed = pack(map(parse_fen, fens))
    found = evaluations(packed, *PieceListEvaluator().outputs(packed))
    rows = []
    for i, fen in enumerate(fens):
        numbers = [int(getattr(found, name)[i]) for name in COLUMNS[1:]]
        rows.append((fen, *numbers[:2], *([None] * 5 if found.in_check[i] else numbers[2:])))
    return rows


def read_rows(path: Path) -> list[tuple]:
    """All rows of a file, with a last column `error` if there is one."""
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    if path.suffix == ".jsonl":
        return [tuple(json.loads(line).values()) for line in path.read_text("utf-8").split("\n")[:-1]]
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))[1:]
    return [(row[0], *(int(n) if n else None for n in row[1:8]), *(text or None for text in row[8:])) for row in rows]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".CSV"])
def test_every_format_holds_the_evaluations(tmp_path, fens, ending):
    target = tmp_path / f"out{ending}"
    assert run(write_lines(tmp_path / "in.txt", fens), target) == Summary(len(fens), 0)
    rows = read_rows(target)
    assert rows == expected_rows(fens)
    assert any(row[3] is None for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", f"out{ending}"]


def test_column_names(tmp_path):
    source = write_lines(tmp_path / "in.txt", [START_FEN])
    for keep, columns in ((False, COLUMNS), (True, [*COLUMNS, "error"])):
        for ending in ("csv", "jsonl", "parquet"):
            run(source, tmp_path / f"out.{ending}", keep_refused=keep)
        assert (tmp_path / "out.csv").read_text().splitlines()[0] == ",".join(columns)
        assert list(json.loads((tmp_path / "out.jsonl").read_text())) == columns
        schema = pa.parquet.read_schema(tmp_path / "out.parquet")
        assert schema.names == columns
        assert schema.types[1:8] == [pa.int32()] * 7


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_the_file_does_not_depend_on_how_it_is_made(tmp_path, fens, ending, monkeypatch):
    monkeypatch.setattr(result_files, "ROW_GROUP_ROWS", 300)
    source = write_lines(tmp_path / "in.txt", [*fens, "broken"])
    made = set()
    ways = [{}, {"batch": 1}, {"batch": 7, "threads": 1}, {"threads": 5}, {"batch": 100_000}, {"block_bytes": 9999}]
    for number, how in enumerate(ways):
        target = tmp_path / f"out{number}{ending}"
        run(source, target, keep_refused=True, **how)
        made.add(target.read_bytes())
    assert len(made) == 1


def test_batches(tmp_path, fens):
    source = write_lines(tmp_path / "in.txt", fens)
    evaluator = PieceListEvaluator()
    evaluate_file(RunSettings(str(source), tmp_path / "out.csv", batch=64), evaluator, IDENTITY)
    assert evaluator.largest_batch == 64
    assert evaluator.calls == -(-len(fens) // 64)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    ids=["string", "large", "dictionary"],
)
def test_parquet_input(tmp_path, fens, kind):
    source = write_parquet(tmp_path / "in.parquet", fens, kind)
    run(source, tmp_path / "out.csv")
    assert read_rows(tmp_path / "out.csv") == expected_rows(fens)


def test_text_and_parquet_input_give_the_same_csv(tmp_path, fens):
    run(write_lines(tmp_path / "in.txt", fens), tmp_path / "text.csv")
    run(write_parquet(tmp_path / "in.parquet", fens), tmp_path / "parquet.csv")
    assert (tmp_path / "text.csv").read_bytes() == (tmp_path / "parquet.csv").read_bytes()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment"])
def test_nothing_to_evaluate(tmp_path, ending, content):
    (tmp_path / "in.txt").write_text(content)
    assert run(tmp_path / "in.txt", tmp_path / f"out{ending}") == Summary(0, 0)
    assert read_rows(tmp_path / f"out{ending}") == []


def test_no_rows_in_parquet(tmp_path):
    assert run(write_parquet(tmp_path / "in.parquet", []), tmp_path / "out.parquet") == Summary(0, 0)


def test_comments_epd_and_line_ends(tmp_path):
    text = (
        "\N{ZERO WIDTH NO-BREAK SPACE}# made by hand\r\n"
        f'{PLACEMENT} w - - bm h2e2; id "象";\r\n\n'
        f"  {PLACEMENT} w - - 60 9\n#\n"
        f"{PLACEMENT} b"
    )
    (tmp_path / "in.epd").write_text(text, "utf-8", newline="")
    run(tmp_path / "in.epd", tmp_path / "out.csv")
    fens = [f"{PLACEMENT} w - -", f"{PLACEMENT} w - - 60 9", f"{PLACEMENT} b"]
    rows = read_rows(tmp_path / "out.csv")
    assert rows == expected_rows(fens)
    assert abs(rows[0][3]) > abs(rows[1][3])  # damped by the counter


BROKEN = [
    (f"{PLACEMENT} x - - 0 1", f"{PLACEMENT} x - - 0 1", "'x'; expected w or b."),
    ('a,"b" c', 'a,"b" c', "has 1 ranks"),
    (f'{PLACEMENT}\tw , "\\" 200 1', f'{PLACEMENT}\tw , "\\" 200 1', "is 200"),
    ("\\ 象", "\\ 象", "has 1 ranks"),
    (f"{PLACEMENT}\N{NO-BREAK SPACE}w x", f"{PLACEMENT}\N{NO-BREAK SPACE}w x", None),
    (f'{PLACEMENT} w , " 3 4', f'{PLACEMENT} w , " 3 4', None),
]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("write", [write_lines, write_parquet], ids=["text", "parquet"])
def test_broken_lines_become_rows(tmp_path, fens, write, ending):
    lines = [*fens[:120], *(line for line, _, _ in BROKEN), IN_CHECK, *fens[120:200]]
    source = write(tmp_path / ("in.parquet" if write is write_parquet else "in.txt"), lines)
    refused = sum(sentence is not None for _, _, sentence in BROKEN)
    assert run(source, tmp_path / f"out{ending}", keep_refused=True) == Summary(len(lines), refused)
    rows = read_rows(tmp_path / f"out{ending}")
    for row, (_, fen, sentence) in zip(rows[120:], BROKEN, strict=False):
        assert row[0] == fen
        if sentence is None:
            assert row == (*expected_rows([fen])[0], None)
        else:
            assert row[1:8] == (None,) * 7
            assert sentence in row[8]
    good = rows[:120] + rows[120 + len(BROKEN) :]
    assert good == [(*row, None) for row in expected_rows([*fens[:120], IN_CHECK, *fens[120:200]])]


def test_a_null_in_parquet_is_a_broken_row(tmp_path):
    run(write_parquet(tmp_path / "in.parquet", [START_FEN, None]), tmp_path / "out.parquet", keep_refused=True)
    last = read_rows(tmp_path / "out.parquet")[1]
    assert last[0] == "" and "empty" in last[8]


def test_bytes_that_are_not_text(tmp_path):
    (tmp_path / "in.txt").write_bytes(START_FEN.encode() + b"\n\xc3\x28\n")
    for ending in (".csv", ".jsonl", ".parquet"):
        run(tmp_path / "in.txt", tmp_path / f"out{ending}", keep_refused=True)
        last = read_rows(tmp_path / f"out{ending}")[1]
        assert last[0] == "\ufffd(" and "UTF-8" in last[8]


@pytest.mark.parametrize("line", [1, 2, 500, 1003])
def test_a_broken_line_ends_the_run_and_is_named(tmp_path, fens, line):
    lines = ["# comment", "", *fens, ""]
    lines[line - 1] = "broken w"
    write_lines(tmp_path / "in.txt", lines)
    with pytest.raises(InputError, match=f"^Line {line}: The placement 'broken' has 1 ranks; expected 10.$"):
        run(tmp_path / "in.txt", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_broken_row_is_named(tmp_path, fens):
    write_parquet(tmp_path / "in.parquet", [*fens[:333], "broken w"])
    with pytest.raises(InputError, match=r"^Row 334: "):
        run(tmp_path / "in.parquet", tmp_path / "out.csv")


def test_an_old_output_stays_until_there_is_a_new_one(tmp_path):
    (tmp_path / "out.csv").write_text("old")
    write_lines(tmp_path / "in.txt", ["broken"])
    with pytest.raises(InputError):
        run(tmp_path / "in.txt", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.csv"]


class Dripping:
    """Standard input that comes in pieces of any size."""

    def __init__(self, data: bytes):
        self._stream = io.BytesIO(data)
        self._rng = random.Random(32)
        self.buffer = self

    def readinto(self, buffer: memoryview) -> int:
        return self._stream.readinto(buffer[: self._rng.randint(1, 700)])


def test_a_pipe_is_cut_like_a_file(tmp_path, fens, monkeypatch):
    write_lines(tmp_path / "in.txt", fens)
    monkeypatch.setattr(sys, "stdin", Dripping((tmp_path / "in.txt").read_bytes()))
    with open_positions(str(tmp_path / "in.txt"), 4096) as file, open_positions("-", 4096) as pipe:
        texts = [[block.text.tobytes() for block in positions.blocks] for positions in (file, pipe)]
    assert texts[0] == texts[1]
    assert len(texts[0]) > 10
    assert all(len(text) <= 4096 and text.endswith(b"\n") for text in texts[0])


@pytest.mark.parametrize("last", ["", "\n"])
def test_a_block_may_end_with_the_file(tmp_path, last):
    """The input is exactly as long as one block, or two."""
    for blocks in (1, 2):
        (tmp_path / "in.txt").write_text((START_FEN + "\n") * blocks * 8 + "#" * 7 + "\n" * (last == ""))
        size = (tmp_path / "in.txt").stat().st_size
        with open_positions(str(tmp_path / "in.txt"), size // blocks + size % blocks) as positions:
            assert sum(len(block.parse(True)) for block in positions.blocks) == blocks * 8


def test_a_line_without_end_is_refused(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"a\n" + b"x" * 10_000)
    with pytest.raises(InputError, match="Line 2 is longer than 4096 bytes"):
        run(tmp_path / "in.txt", tmp_path / "out.csv", keep_refused=True)


def test_few_blocks_are_held(tmp_path, fens):
    """Reading does not run ahead of what is written."""
    source = write_lines(tmp_path / "in.txt", fens)
    seen = []
    evaluate_file(
        RunSettings(str(source), tmp_path / "out.csv", threads=2, block_bytes=1024),
        PieceListEvaluator(),
        IDENTITY,
        lambda progress: seen.append((progress.positions, progress.fraction)),
    )
    assert len(seen) > 40
    for positions, fraction in seen:
        assert fraction <= positions / len(fens) + 6 * 1024 / source.stat().st_size
    assert seen[-1] == (len(fens), 1.0)


@pytest.fixture
def stub(monkeypatch) -> PieceListEvaluator:
    """The evaluator that the command gets, whatever it asks for."""
    evaluator = PieceListEvaluator()
    monkeypatch.setattr(Evaluator, "load", staticmethod(lambda network, backend: evaluator))
    return evaluator


def test_command_writes_csv_to_standard_output(tmp_path, stub, capfdbinary):
    source = write_lines(tmp_path / "in.txt", [START_FEN, "broken"])
    assert evaluate.main([str(source), "--errors", "row"]) == 0
    out, err = capfdbinary.readouterr()
    lines = out.decode().splitlines()
    assert lines[0] == ",".join([*COLUMNS, "error"])
    assert lines[1].startswith(START_FEN) and lines[2].startswith("broken,,,,,,,,")
    assert err == b"1 of 2 positions were refused; see the column error.\n"


def test_command_writes_files_quietly(tmp_path, stub, capfdbinary):
    source = write_lines(tmp_path / "in.txt", [START_FEN])
    assert evaluate.main([str(source), "--output", str(tmp_path / "out.parquet"), "--batch", "8"]) == 0
    assert capfdbinary.readouterr() == (b"", b"")
    assert read_rows(tmp_path / "out.parquet") == expected_rows([START_FEN])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["in.txt", "--output", "out.xlsx"], "The output 'out.xlsx' ends with none of .csv, .jsonl, .parquet."),
        (["in.txt", "--output", "no/out.csv"], "The folder of the output, 'no', does not exist."),
        (["in.txt", "--output", "folder.csv"], "The output 'folder.csv' is a folder."),
        (["in.csv", "--output", "in.csv"], "The output 'in.csv' is the input; expected another file."),
        (["in.txt", "--batch", "0"], "--batch is '0'; expected a number of positions, at least 1."),
        (["in.txt", "--batch", "many"], "--batch is 'many'; expected"),
        (["in.txt", "--errors", "skip"], "--errors is 'skip'; expected stop or row."),
        (["in.txt", "--bach", "1"], "Unrecognized arguments: --bach 1. usage: jaxfish evaluate"),
        ([], "The following arguments are required: input."),
        (["none.txt"], "The input 'none.txt' cannot be read: No such file or directory."),
        (["folder.csv"], "The input 'folder.csv' cannot be read: Is a directory."),
        (["none.parquet"], "The input 'none.parquet' cannot be read: No such file or directory."),
        (["text.parquet"], "The input 'text.parquet' is not a Parquet file: "),
        (["other.parquet"], "'other.parquet' has no column 'fen'; its columns are number, position."),
        (["numbers.parquet"], "The column 'fen' of 'numbers.parquet' holds int64; expected string."),
        (["in.txt", "--output", "notes.csv"], "'notes.csv.journal' is in the way"),
        (["zipped.txt"], "Line 1: The FEN '"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_sentences(tmp_path, stub, capfd, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in.txt", [START_FEN])
    write_lines(tmp_path / "in.csv", [START_FEN])
    write_lines(tmp_path / "text.parquet", [START_FEN])
    write_parquet(tmp_path / "other.parquet", [START_FEN], name="position")
    write_parquet(tmp_path / "numbers.parquet", [1], kind=pa.int64())
    (tmp_path / "notes.csv.journal").write_text("my notes")
    (tmp_path / "zipped.txt").write_bytes(gzip.compress(START_FEN.encode(), mtime=0))
    (tmp_path / "folder.csv").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    assert evaluate.main(arguments) == 1
    out, err = capfd.readouterr()
    assert err.startswith(sentence) and err.endswith("\n")
    assert out in ("", ",".join(COLUMNS) + "\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_missing_pyarrow_is_a_sentence(tmp_path, stub, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    source = write_lines(tmp_path / "in.txt", [START_FEN])
    assert evaluate.main([str(source), "--output", str(tmp_path / "out.parquet")]) == 1
    assert capfd.readouterr().err == "Parquet files need the package pyarrow: pip install pyarrow.\n"
    assert evaluate.main([str(source), "--output", str(tmp_path / "out.csv")]) == 0


COMMAND = [sys.executable, "-m", "uci.main", "evaluate"]


def test_installed_command(tmp_path, network):
    """The real thing, from a pipe, with the network of the engine."""
    text = f"{START_FEN}\n{IN_CHECK}\n"
    done = subprocess.run(
        [*COMMAND, "-", "--backend", "numba"], input=text, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    evaluator = Evaluator.load(network, "numba")
    packed = pack(map(parse_fen, text.splitlines()))
    psqt, positional = evaluator.outputs(packed)
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0] == COLUMNS
    assert [row[0] for row in rows[1:]] == text.splitlines()
    assert np.array_equal(np.array([row[1:3] for row in rows[1:]], int), np.stack([psqt, positional], axis=1))
    assert rows[2][3:] == [""] * 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["--backend", "abacus"], "abacus"), (["--network", "missing.nnue"], "'missing.nnue' cannot be read")],
)
def test_backend_and_network_errors(tmp_path, capfd, arguments, sentence):
    source = write_lines(tmp_path / "in.txt", [START_FEN])
    assert evaluate.main([str(source), *arguments]) == 1
    assert sentence in capfd.readouterr().err


def test_nobody_reads(tmp_path, fens):
    """As with `| head -1`: no traceback."""
    source = write_lines(tmp_path / "in.txt", fens * 20)
    process = subprocess.Popen(
        [*COMMAND, str(source), "--backend", "numba"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 1


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo terminal")
def test_progress_is_shown_on_a_terminal(tmp_path, fens, stub, monkeypatch):
    source = write_lines(tmp_path / "in.txt", fens)
    monkeypatch.setattr(file_command, "REFRESH_PERIOD_S", 0.0)
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as terminal, os.fdopen(master, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert evaluate.main([str(source), "--output", str(tmp_path / "out.csv")]) == 0
        shown = screen.read(4096).decode()
    assert "100.0 %" in shown and "1,000 positions" in shown and "/s" in shown


def test_backends_are_named_in_the_help(capsys):
    with pytest.raises(SystemExit) as end:
        evaluate.main(["--help"])
    assert end.value.code == 0
    help_text = capsys.readouterr().out
    assert all(name in help_text for name in backends.BACKENDS)


def test_identity_is_that_of_the_file_and_the_facts(tmp_path):
    copy = tmp_path / "copy.nnue"
    copy.write_bytes(DEFAULT_NETWORK.read_bytes())
    identity = file_command.run_identity(DEFAULT_NETWORK, "evaluate")
    assert file_command.run_identity(copy, "evaluate") == identity
    assert file_command.run_identity(copy, "analyse") != identity
    copy.write_bytes(copy.read_bytes()[:-1])
    assert file_command.run_identity(copy, "evaluate") != identity
