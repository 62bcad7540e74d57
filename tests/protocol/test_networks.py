"""Networks through the protocol: the option EvalFile and the command export_net."""

import re
import time
from pathlib import Path

import zstandard

from nets import DEFAULT_NETWORK
from nnue_jax.network_file import read_network, serialize_network
from tests.support.engine_process import Engine, run_once
from tests.support.golden import DATA

OTHER_NETWORK = DATA / "piece_square128.nnue"


def decompressed(path: Path) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True) as reader:
        return reader.read()


def set_network(engine: Engine, value: str | Path) -> str:
    """What is said about a new value of EvalFile."""
    engine.send(f"setoption name EvalFile value {value}")
    while "Getting ready" in (line := engine.until("info string")[-1]):
        pass
    return line


def searched(engine: Engine) -> list[str]:
    """A search of a few thousand nodes by an engine that has learnt nothing; all but times."""
    engine.send("ucinewgame", "position startpos moves h2e2", "go nodes 3000")
    lines = engine.until("bestmove")
    return [re.sub(r" (nps|time) \d+", "", line) for line in lines if line.startswith(("info depth", "bestmove"))]


def broken_files(folder: Path) -> dict[Path, str]:
    """Path of what is no network to what is said about it."""
    plain = decompressed(OTHER_NETWORK)
    compressed = OTHER_NETWORK.read_bytes()
    wrong_hash = plain[:4] + b"\0\0\0\0" + plain[8:]
    contents = {
        b"": "the file is empty; expected a network.",
        plain[:-100]: "ends early: it needs 128 bytes and 28 are left.",
        compressed[:-100]: f"cut off: the file has {len(compressed) - 100} bytes; expected more to end the last frame.",
        plain + b"\n": "the number of bytes after the last layer is 1; expected 0.",
        compressed + b"\n": "the number of bytes after the last zstd frame is 1; expected 0.",
        b"\0" + plain[1:]: "the file version is 0x6a448a00; expected 0x6a448afa.",
        wrong_hash: "the network hash is 0x00000000; expected 0x",
        zstandard.compress(wrong_hash): "the network hash is 0x00000000; expected 0x",
        b"I am a poem.\n": "no network at all, as it begins with 49 20 61 6d; expected 28 b5 2f fd for zstd, or",
        zstandard.compress(b"I am a poem.\n"): "holds data that begin with 49 20 61 6d; expected fa 8a 44 6a.",
    }
    reasons = {
        folder: "it is a directory; expected a file.",
        folder / "missing.nnue": "cannot be read: No such file or directory.",
    }
    for number, (content, reason) in enumerate(contents.items()):
        path = folder / f"broken {number}.nnue"
        path.write_bytes(content)
        reasons[path] = reason
    return reasons


def test_a_broken_file_leaves_the_network_in_use(engine, tmp_path):
    by_default = searched(engine)
    message = set_network(engine, OTHER_NETWORK)
    assert str(read_network(OTHER_NETWORK).architecture) in message
    before = searched(engine)
    assert before != by_default
    for path, reason in broken_files(tmp_path).items():
        message = set_network(engine, path)
        assert str(path) in message
        assert reason in message
    assert searched(engine) == before
    set_network(engine, "<empty>")
    assert searched(engine) == by_default


def test_an_exported_network_is_the_one_in_use(engine, tmp_path):
    path = tmp_path / "my net.nnue"
    for network in (OTHER_NETWORK, DEFAULT_NETWORK):
        set_network(engine, network)
        engine.send(f"export_net {path}")
        assert engine.until("Network saved")[-1] == f"Network saved successfully to {path}"
        assert decompressed(path) == decompressed(network)
    set_network(engine, path)
    engine.send("export_net  /nowhere/net.nnue")
    assert engine.until("info string")[-1] == (
        "info string Failed to export a net. "
        "The network cannot be written to '/nowhere/net.nnue': No such file or directory."
    )
    assert searched(engine)[-1].startswith("bestmove")


def test_export_from_the_command_line(tmp_path):
    for arguments, name in ((["export_net", "out.nnue"], "out.nnue"), (["export_net"], "jaxfish.nnue")):
        done = run_once(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == f"Network saved successfully to {name}"
        assert decompressed(tmp_path / name) == decompressed(DEFAULT_NETWORK)
        assert serialize_network(read_network(tmp_path / name)) == decompressed(DEFAULT_NETWORK)
    failed = run_once("export_net", ".", cwd=tmp_path)
    assert failed.returncode == 1
    assert "The network cannot be written to '.': that is no regular file." in failed.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jaxfish.nnue", "out.nnue"]


def test_a_network_of_known_shape_compiles_nothing(start_engine, tmp_path, engine):
    """Another engine's `isready` timed out after `setoption name EvalFile`."""
    copy = tmp_path / "copy.nnue"
    copy.write_bytes(OTHER_NETWORK.read_bytes())
    set_network(engine, OTHER_NETWORK)
    engine.search("go depth 5")
    times_s = []
    for path in (copy, OTHER_NETWORK, copy):
        sent_s = time.monotonic()
        engine.send(f"setoption name EvalFile value {path}", "isready")
        times_s.append(engine.until("readyok")[-1].time_s - sent_s)
        assert engine.search("go movetime 50").infos
    assert min(times_s) < 2


def test_every_search_names_its_network(engine):
    for path in (OTHER_NETWORK, DATA / "random128.nnue"):
        set_network(engine, path)
        line = engine.search("go depth 1").strings[2]
        assert line.startswith(f"NNUE evaluation using {path} (")
        assert f", {read_network(path).architecture})" in line
    assert "threat" in line or ", 128, " in line


def test_a_network_is_searched_in_the_working_directory(start_engine, tmp_path):
    (tmp_path / "near by.nnue").write_bytes(OTHER_NETWORK.read_bytes())
    engine = start_engine(cwd=tmp_path)
    assert "near by.nnue" in set_network(engine, "near by.nnue")
    assert engine.search("go depth 3").best_move


def test_networks_change_what_is_learnt(engine):
    set_network(engine, OTHER_NETWORK)
    first = searched(engine)
    engine.search("go depth 8")
    set_network(engine, OTHER_NETWORK)
    engine.send("position startpos moves h2e2", "go nodes 3000")
    again = engine.until("bestmove")
    assert [
        re.sub(r" (nps|time) \d+", "", line) for line in again if line.startswith(("info depth", "bestmove"))
    ] == first
