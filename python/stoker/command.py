"""The `stoker` command, for what goes through it: found where a shell or this module's own build has it, asked for JSON."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from stoker.errors import InternalError, StokerError, UnavailableError, make


def find() -> str:
    """The command's path: of PATH, beside the interpreter, or of the build tree that the module is in."""
    built = Path(__file__).absolute().parents[2] / "bin/stoker"
    for place in (shutil.which("stoker"), Path(sys.executable).parent / "stoker", built):
        if place is not None and os.access(place, os.X_OK) and not Path(place).is_dir():
            return str(place)
    raise UnavailableError("stoker: no such command in PATH\n  try: script/build, then put build/release/bin on PATH")


def ask(*words: str, cwd: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """What the command says with --json. Raises the exception of what it complains of."""
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


def _error(told: dict[str, str]) -> StokerError:
    cure = f"\n  try: {told['cure']}" if told.get("cure") else ""
    return make(told["code"].replace(" ", "_"), told["message"] + cure)
