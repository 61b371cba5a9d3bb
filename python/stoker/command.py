"""Runs the `stoker` command with --json."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.errors import InternalError, StokerError, UnavailableError, make


def find() -> str:
    """Path of the command that belongs to this module: of its build tree, or installed with it by pip (in an environment, for a
    user, or with --target). Else the first one in PATH."""
    modules = Path(__file__).absolute().parents[1]
    folders = [modules.parent / "bin", modules / "bin", Path(sys.executable).parent]
    if "posix_user" in sysconfig.get_scheme_names():
        folders.append(Path(sysconfig.get_path("scripts", "posix_user")))
    for place in (*(folder / "stoker" for folder in folders), shutil.which("stoker")):
        if place is not None and os.access(place, os.X_OK) and not Path(place).is_dir():
            return str(place)
    raise UnavailableError("stoker: command not found in PATH\n  try: script/build, then put build/release/bin on PATH")


def run_json(
    *words: str, cwd: str | os.PathLike[str] | None = None, notes: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """The command's JSON output. Raises its error as an exception. `notes` receives the warnings that it printed."""
    done = subprocess.run([find(), *words, "--json"], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise InternalError(f"stoker {words[0]}: exit code {done.returncode}: {done.stderr.strip()}") from None
    if not isinstance(answer, dict):
        raise InternalError(f"stoker {words[0]}: {done.stdout.strip()[:200]}")
    if "error" in answer:
        raise _error(answer["error"])
    if notes is not None and done.stderr.strip():
        notes(done.stderr.strip())
    return answer


def _error(error: dict[str, str]) -> StokerError:
    cure = f"\n  try: {error['cure']}" if error.get("cure") else ""
    return make(error["code"].replace(" ", "_"), error["message"] + cure)
