"""What is told to people who ask: `eval`, `compiler`, `help` and `license`.

The numbers within are tested beside their modules.
"""

import pytest

from tests.support import scenes
from tests.support.uci_grammar import COMBO, PLAIN_OPTION, SPIN


def test_eval_shows_a_row_for_each_bucket_and_marks_one(engine):
    lines = engine.ask("position startpos moves h2e2", "eval")
    assert lines[0].startswith("info string NNUE evaluation using ")
    assert sum(line.endswith("<-- this bucket is used") for line in lines) == 1
    assert len([line for line in lines if line.split() and line.split()[0].isdigit()]) == 16
    totals = [line for line in lines if line.startswith(("NNUE evaluation  ", "Final evaluation  "))]
    assert [line.split("(")[1].split(")")[0] for line in totals] == [
        "side to move, internal units",
        "white side",
        "white side",
    ]


def test_eval_in_check_is_none(engine):
    lines = engine.ask(f"position fen {scenes.TWO_MOVES}", "eval")
    assert lines[-1] == "Final evaluation: none (in check)"


def test_compiler_tells_what_the_engine_is_made_of(engine):
    text = "\n".join(engine.ask("compiler"))
    for name in ("Python", "NumPy", "Numba", "LLVM", "JAX", "jaxlib"):
        assert name in text


@pytest.mark.parametrize("command", ["help", "--help", "-h"])
def test_help_names_every_command_and_option(engine, command):
    engine.send("uci")
    declared = engine.until("uciok")
    names = [
        line.removeprefix("option name ").split(" type ")[0]
        for line in declared
        if any(pattern.fullmatch(line) for pattern in (SPIN, COMBO, PLAIN_OPTION))
    ]
    text = "\n".join(engine.ask(command))
    assert [name for name in names if name not in text] == []
    for name in ("isready", "position", "go", "ponderhit", "flip", "bench", "speedtest", "export_net", "compiler"):
        assert name in text


def test_the_licence(engine):
    for command in ("license", "--license"):
        assert "MIT" in " ".join(engine.ask(command))
