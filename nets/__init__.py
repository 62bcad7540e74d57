"""The networks we ship; README.md beside this file says how each was made."""

from pathlib import Path

DEFAULT_NETWORK = Path(__file__).resolve().parent / "bootstrap.nnue"
