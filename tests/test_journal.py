"""The journal: what is found again, what is not believed, and runs that are killed and go on."""

import random
from pathlib import Path

import numpy as np
import pytest

from tests.support.games import random_walk
from tests.support.journal_runs import kill_on_its_way
from tests.support.piece_list_evaluator import PieceListEvaluator
from uci.evaluation_run import RunSettings, evaluate_file
from uci.journal import HEADER_BYTES, Journal, JournalError

NETWORK, OTHER_NETWORK = bytes(range(32)), bytes(32)
BLOCK_BYTES = 4096
# A run in a process of its own, slow enough to be killed on its way.
SLOW_RUN = f"""
import sys
from pathlib import Path
from tests.support.piece_list_evaluator import PieceListEvaluator
from uci.evaluation_run import RunSettings, evaluate_file
settings = RunSettings(sys.argv[1], Path(sys.argv[2]), threads=2, block_bytes={BLOCK_BYTES})
evaluate_file(settings, PieceListEvaluator(delay_s=0.04), {NETWORK!r})
"""


def data(seed: int, size: int) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def write_journal(path: Path, blocks: int = 5) -> list[int]:
    """A journal of blocks of 10 + n positions with input checksum 100 + n; returns the file's size after each."""
    journal = Journal(path, NETWORK)
    sizes = []
    for block in range(blocks):
        journal.add(block, 100 + block, 0, 10 + block, data(block, 50 * block))
        sizes.append(path.stat().st_size)
    journal.close()
    return sizes


def found_blocks(path: Path, identity: bytes = NETWORK) -> list[int]:
    """Numbers of the blocks of `write_journal` that are found, with the right data."""
    journal = Journal(path, identity)
    numbers = []
    for block in range(5):
        found = journal.find(block, 100 + block)
        if found:
            assert found == [(10 + block, data(block, 50 * block))]
            numbers.append(block)
    assert len(journal) == sum(10 + block for block in numbers)
    journal.close()
    return numbers


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "out.csv.journal"


def test_finds_what_was_added(path):
    write_journal(path)
    assert found_blocks(path) == [0, 1, 2, 3, 4]
    journal = Journal(path, NETWORK)
    assert journal.find(0, 101) == []  # other input
    assert journal.find(9, 100) == []
    journal.remove()
    assert not path.exists()


def test_a_later_record_of_a_whole_block_replaces_an_earlier_one(path):
    write_journal(path)
    journal = Journal(path, NETWORK)
    journal.add(1, 555, 0, 3, data(77, 30))
    for _ in range(2):
        assert journal.find(1, 101) == []
        assert journal.find(1, 555) == [(3, data(77, 30))]
        assert len(journal) == 10 + 3 + 12 + 13 + 14
        journal.close()
        journal = Journal(path, NETWORK)
    journal.close()


def test_a_block_in_several_records(path):
    journal = Journal(path, NETWORK)
    journal.add(7, 1, 0, 3, b"abc")
    journal.add(8, 2, 0, 1, b"x")
    journal.add(7, 1, 3, 1, b"d")
    journal.add(7, 1, 4, 2, b"")
    journal.add(7, 1, 5, 9, b"overlaps")
    journal.add(7, 1, 9, 9, b"leaves a gap")
    journal.add(7, 3, 6, 9, b"other input")
    journal.add(9, 1, 1, 1, b"has no beginning")
    for _ in range(2):
        assert journal.find(7, 1) == [(3, b"abc"), (1, b"d"), (2, b"")]
        assert journal.find(7, 3) == journal.find(9, 1) == []
        assert len(journal) == 7
        journal.close()
        journal = Journal(path, NETWORK)
    journal.add(7, 1, 0, 1, b"anew")
    assert journal.find(7, 1) == [(1, b"anew")]
    journal.close()


def test_a_block_of_nothing(path):
    journal = Journal(path, NETWORK)
    journal.add(0, 1, 0, 0, b"")
    journal.close()
    journal = Journal(path, NETWORK)
    assert journal.find(0, 1) == [(0, b"")]
    assert len(journal) == 0
    journal.close()


def test_a_torn_tail_is_cut_off(path):
    sizes = write_journal(path)
    whole = path.read_bytes()
    for size in range(sizes[2], sizes[3]):
        path.write_bytes(whole[:size])
        assert found_blocks(path) == [0, 1, 2]
        assert path.stat().st_size == sizes[2]


def test_goes_on_behind_a_torn_tail(path):
    sizes = write_journal(path)
    path.write_bytes(path.read_bytes()[: sizes[2] + 7])
    journal = Journal(path, NETWORK)
    for block in (3, 4):
        journal.add(block, 100 + block, 0, 10 + block, data(block, 50 * block))
    journal.close()
    assert found_blocks(path) == [0, 1, 2, 3, 4]


def test_damage_is_noticed(path):
    sizes = write_journal(path)
    whole = path.read_bytes()
    for at in range(sizes[1], sizes[2]):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        path.write_bytes(damaged)
        assert found_blocks(path) == [0, 1]


@pytest.mark.parametrize("size", [0, 1, 20, HEADER_BYTES - 1])
def test_a_torn_header_is_no_journal_yet(path, size):
    write_journal(path)
    path.write_bytes(path.read_bytes()[:size])
    journal = Journal(path, NETWORK)
    assert len(journal) == 0
    assert not journal.is_foreign
    journal.close()
    assert path.stat().st_size == HEADER_BYTES


def test_another_network_discards_it(path):
    write_journal(path)
    journal = Journal(path, OTHER_NETWORK)
    assert journal.is_foreign
    journal.close()
    assert found_blocks(path, OTHER_NETWORK) == []


def test_a_file_that_is_no_journal_is_left_alone(path):
    path.write_bytes(b"my notes")
    with pytest.raises(JournalError, match="in the way"):
        Journal(path, NETWORK)
    assert path.read_bytes() == b"my notes"


@pytest.fixture(scope="module")
def fens() -> list[str]:
    return [game.fen() for game in random_walk(seed=21, count=3000)]


def run(source: Path, target: Path, identity: bytes = NETWORK) -> tuple[PieceListEvaluator, list[str]]:
    """Evaluate; returns the evaluator and what the user was told."""
    evaluator = PieceListEvaluator()
    told: list[str] = []
    evaluate_file(RunSettings(str(source), target, block_bytes=BLOCK_BYTES), evaluator, identity, on_info=told.append)
    return evaluator, told


def interrupt(source: Path, target: Path, fens: list[str], good: int) -> None:
    """Leave behind what a run does that ends after `good` positions."""
    source.write_text("".join(f"{fen}\n" for fen in [*fens[:good], "broken"]))
    with pytest.raises(ValueError, match=f"Line {good + 1}: "):
        run(source, target)


def test_goes_on_after_an_interruption(tmp_path, fens):
    source, target, undisturbed = tmp_path / "in.txt", tmp_path / "out.csv", tmp_path / "undisturbed.csv"
    interrupt(source, target, fens, 2000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.csv.journal"]
    source.write_text("".join(f"{fen}\n" for fen in fens))
    evaluator, told = run(source, target)
    assert 1000 <= evaluator.positions < 1300
    assert "Going on" in told[0]
    assert run(source, undisturbed)[0].positions == len(fens)
    assert target.read_bytes() == undisturbed.read_bytes()
    assert not list(tmp_path.glob("*.journal")) and not list(tmp_path.glob("*.part"))


def test_changed_input_is_evaluated_anew(tmp_path, fens):
    source, target, undisturbed = tmp_path / "in.txt", tmp_path / "out.csv", tmp_path / "undisturbed.csv"
    interrupt(source, target, fens, 2000)
    changed = [*fens[:500], fens[2500], *fens[501:]]  # blocks may keep their length, or all be cut elsewhere
    source.write_text("".join(f"{fen}\n" for fen in changed))
    evaluator, _ = run(source, target)
    assert 1000 < evaluator.positions < len(fens)
    run(source, undisturbed)
    assert target.read_bytes() == undisturbed.read_bytes()


def test_another_network_starts_anew(tmp_path, fens):
    source, target = tmp_path / "in.txt", tmp_path / "out.csv"
    interrupt(source, target, fens, 2000)
    source.write_text("".join(f"{fen}\n" for fen in fens))
    evaluator, told = run(source, target, OTHER_NETWORK)
    assert evaluator.positions == len(fens)
    assert "another network" in told[0]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_survives_being_killed(tmp_path, fens, ending):
    source, target, undisturbed = tmp_path / "in.txt", tmp_path / f"out{ending}", tmp_path / f"undisturbed{ending}"
    source.write_text("".join(f"{fen}\n" for fen in fens))
    run(source, undisturbed)
    rng = random.Random(22)
    for _ in range(5):
        kill_on_its_way(SLOW_RUN, source, target, more_bytes=1, delay_s=rng.uniform(0, 0.1))
    evaluator, _ = run(source, target)
    assert 0 < evaluator.positions < len(fens) - 400
    assert target.read_bytes() == undisturbed.read_bytes()
    assert not Path(f"{target}.journal").exists()
