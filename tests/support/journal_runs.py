"""Runs with a journal, in processes of their own, that are ended on their way."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def wait_for_growth(process: subprocess.Popen, journal: Path, more_bytes: int) -> None:
    """Until the journal has at least so many bytes more than now, or the process has ended."""

    def size_bytes() -> int:
        return journal.stat().st_size if journal.exists() else 0

    enough = size_bytes() + more_bytes
    while process.poll() is None and size_bytes() < enough:
        time.sleep(0.005)


def kill_on_its_way(script: str, source: Path, target: Path, more_bytes: int, delay_s: float) -> None:
    """Run a script with two files as its arguments, and kill it so long after its journal has grown so much."""
    process = subprocess.Popen([sys.executable, "-c", script, str(source), str(target)], cwd=ROOT)
    try:
        wait_for_growth(process, Path(f"{target}.journal"), more_bytes)
        time.sleep(delay_s)
        assert process.poll() is None, "the run ended before it could be killed"
    finally:
        process.kill()
        process.wait()
    assert not target.exists()
