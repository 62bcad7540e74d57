"""What a pipeline leaves behind."""

import json
from pathlib import Path


def record_of(work: Path) -> dict:
    """The record of the first generation in a pipeline's folder."""
    return json.loads((work / "gen1" / "record.json").read_text())
