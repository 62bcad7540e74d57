"""The networks we ship; README.md beside this file says how each was made."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
BOOTSTRAP_NETWORK = _FOLDER / "bootstrap.nnue"  # knows material and piece squares; its positional part is silent
DEFAULT_NETWORK = _FOLDER / "gen7.nnue"
