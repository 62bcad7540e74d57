"""The installed command as one executable file: the clients cannot be told more than a path."""

import subprocess
import sys
from pathlib import Path

import pytest

WARM_UP_TIMEOUT_S = 280


@pytest.fixture(scope="session")
def jaxfish(tmp_path_factory) -> str:
    """Path of the command, which has been started once: a first start may take longer than the clients wait."""
    path = Path(sys.executable).with_name("jaxfish")
    if not path.exists():
        path = tmp_path_factory.mktemp("bin") / "jaxfish"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m uci.main "$@"\n')
        path.chmod(0o755)
    subprocess.run([path, "go", "depth", "1"], check=True, capture_output=True, timeout=WARM_UP_TIMEOUT_S)
    return str(path)
