"""`jaxfish analyse`, the command: arguments, backends, Ctrl-C, and sentences."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from games.xiangqi import START_FEN
from nets import BOOTSTRAP_NETWORK
from nnue_jax.simulated_device import SimulatedDevice
from tests.analyse.runs import COLUMNS, LIMITS, SOME_BYTES
from tests.support.journal_runs import wait_for_growth
from tests.support.position_files import read_records, write_lines
from uci import analyse, analysis_run, file_command

TIMEOUT_S = 120
BOOTSTRAP = ["--network", str(BOOTSTRAP_NETWORK)]
COMMAND = [sys.executable, "-m", "uci.main", "analyse"]


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


def test_ctrl_c_is_obeyed_and_the_run_goes_on(tmp_path, fens):
    source, target = write_lines(tmp_path / "in.txt", fens), tmp_path / "out.csv"
    journal = Path(f"{target}.journal")
    command = [*COMMAND, str(source), "--movetime", "20", "--backend", "numba", "--output", str(target)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for_growth(process, journal, SOME_BYTES)
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
