"""Checkpoints: files from which training goes on as if it had never stopped.

A checkpoint is an uncompressed `.npz` file: the arrays of a trainer's `state`, and a JSON text with what else is to be
known. It appears under its name only when it is complete, and the one before it is there until then.
"""

import json
import os
import zipfile
from pathlib import Path

import numpy as np

_NOTE = "note"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message is a sentence."""


def save_checkpoint(path: Path, state: dict[str, np.ndarray], note: dict) -> None:
    """Write a checkpoint; `note` holds what JSON can."""
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as file:
        np.savez(file, **state, **{_NOTE: np.array(json.dumps(note))})
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def load_checkpoint(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """(state, note); CheckpointError if the file is no checkpoint."""
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            state = dict(arrays.items())
        note = json.loads(str(state.pop(_NOTE)))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"'{path}' is no usable checkpoint: {error}.") from error
    return state, note
