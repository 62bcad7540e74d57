"""Runs of `analyse` over files, and what the tests of them share."""

from pathlib import Path

import pytest

from search.engine import Engine
from search.limits import Limits
from uci.analysis_run import AnalysisSettings, analyse_file
from uci.file_run import Progress, Summary

IDENTITY = bytes(32)
BLOCK = {"block_bytes": 1024, "block_rows": 15}  # some 15 positions
LIMITS = Limits(nodes=150, depth=6)
COLUMNS = "fen best_move cp mate win draw loss depth selective_depth nodes pv bound".split()
NUMBERS = ("multipv", "cp", "mate", "win", "draw", "loss", "depth", "selective_depth", "nodes")
MATED = "3k5/9/9/9/9/9/9/9/4R4/3RK4 b"
STALEMATED = "3k5/4R4/9/9/9/9/9/9/9/5K3 b"
SOME_BYTES = 500  # of a journal, for a few positions


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


def plain(record: dict) -> dict:
    """A row of CSV with numbers and None."""
    return {name: None if text == "" else int(text) if name in NUMBERS else text for name, text in record.items()}


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
