"""Checkpoints that the C++ library writes."""

import os
import subprocess
from pathlib import Path

from conftest import BIN


def export_checkpoints(folder: Path) -> Path:
    """Writes world-1, world-2 and world-3 into the folder, each with step-100 and step-200; expected/ has the contents of
    step-200. Returns the folder."""
    done = subprocess.run(
        [BIN / "checkpoint_test", "--gtest_filter=Export.*"],
        env=dict(os.environ, STOKER_EXPORT=str(folder)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
