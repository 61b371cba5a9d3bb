"""Runs the `stoker` command with --json."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from stoker.errors import InternalError, StokerError, UnavailableError, make


def find() -> str:
    """Path of the command: in PATH, next to the interpreter, or in the build tree of this module."""
    built = Path(__file__).absolute().parents[2] / "bin/stoker"
    for place in (shutil.which("stoker"), Path(sys.executable).parent / "stoker", built):
        if place is not None and os.access(place, os.X_OK) and not Path(place).is_dir():
            return str(place)
    raise UnavailableError("stoker: command not found in PATH\n  try: script/build, then put build/release/bin on PATH")


def run_json(*words: str, cwd: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The command's JSON output. Raises its error as an exception."""
    done = subprocess.run([find(), *words, "--json"], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise InternalError(f"stoker {words[0]}: exit code {done.returncode}: {done.stderr.strip()}") from None
    if not isinstance(answer, dict):
        raise InternalError(f"stoker {words[0]}: {done.stdout.strip()[:200]}")
    if "error" in answer:
        raise _error(answer["error"])
    return answer


def _error(error: dict[str, str]) -> StokerError:
    cure = f"\n  try: {error['cure']}" if error.get("cure") else ""
    return make(error["code"].replace(" ", "_"), error["message"] + cure)
