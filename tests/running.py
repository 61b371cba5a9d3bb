"""What the tests of runs share: writing small jobs, finding the processes of a run, waiting for a moment."""

import os
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

# How long a test waits, in seconds, for what comes by itself where all is well: only what hangs takes so long, however
# busy the machine. What a run has to end lives longer (`sleep 600`), so that nothing ends by itself in the meantime.
# Below pytest's own limit, so that the test reports what it waited for.
PATIENCE = 240


class Process(subprocess.Popen):
    """A started program with a default timeout of PATIENCE."""

    def communicate(self, input: str | bytes | None = None, timeout: float | None = PATIENCE) -> tuple:
        return super().communicate(input, timeout)

    def wait(self, timeout: float | None = PATIENCE) -> int:
        return super().wait(timeout)


class Job:
    """A job file whose ranks carry a mark in their environment, by which every process of the run can be found."""

    def __init__(self, folder: Path, run: str, ranks: int = 2, more: str = ""):
        self.mark = uuid.uuid4().hex
        self.path = folder / "job.yaml"
        self.folder = folder
        self.path.write_text(
            f"name: test\nrun: {run}\nresources: {{ranks_per_node: {ranks}}}\n"
            f"environment: {{variables: {{TEST_MARK: '{self.mark}'}}}}\n{more}"
        )

    def processes(self) -> list[str]:
        """Processes that carry the mark: "<pid> <name> <state>". Zombies do not count."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() not in (entry / "environ").read_bytes():
                    continue
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if rest.split()[0] != "Z":
                found.append(f"{entry.name} {name} {rest.split()[0]}")
        return found

    def running(self, program: str) -> list[int]:
        """Those whose command line has `program` as a word. Others come and go: what a rank asks of git, dpkg, pip."""
        found = []
        for line in self.processes():
            pid = int(line.split()[0])
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if program.encode() in words and b"rank" not in words:
                found.append(pid)
        return found

    def pid(self, rank: int, name: str) -> int | None:
        """The process of that rank and name, once it is there."""
        for line in self.processes():
            pid, command, _ = line.rsplit(" ", 2)[0], *line.split(" ", 1)[1].rsplit(" ", 1)
            number = int(pid.split()[0])
            try:
                environment = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if command == name and f"RANK={rank}".encode() in environment:
                return number
        return None

    def run_folder(self) -> Path:
        (folder,) = (self.folder / "runs").iterdir()
        return folder

    def log(self, rank: int, attempt: int = 1) -> bytes:
        """What the rank printed so far in the only run with this attempt; nothing before there is a log."""
        logs = list(self.folder.glob(f"runs/*/attempts/{attempt}/rank-{rank:04}.log"))
        assert len(logs) <= 1, f"rank {rank} has logs in several runs: {logs}"
        return logs[0].read_bytes() if logs else b""


def processes_of(program: str, **variables: object) -> list[int]:
    """Processes of this name with these variables in their environment."""
    wanted = {f"{name}={value}" for name, value in variables.items()}
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text() == f"{program}\n":
                has = set((entry / "environ").read_bytes().decode(errors="replace").split("\0"))
                if wanted <= has:
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until(is_true: Callable[[], object], what: str, timeout: float = PATIENCE, every: float = 0.05) -> object:
    """Looks again and again until `is_true()` gives something true, which is returned; fails the test after `timeout`."""
    deadline = time.monotonic() + timeout
    while not (found := is_true()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout:g} s: {what}")
        time.sleep(every)
    return found


def wait_for(what: Callable[[], object]) -> object:
    """The first true value of `what`, which may be true for a moment only."""
    return wait_until(what, "what the test waits for", every=0.02)


def python(folder: Path, name: str, text: str) -> str:
    """Writes a Python program and gives the `run:` value that starts it."""
    (folder / name).write_text(text)
    return f"{os.environ.get('PYTHON', 'python3')} {name}"


def finish(process: Process) -> tuple[int, list[str]]:
    """The exit code of a started `stoker`, and the lines of its standard error."""
    _, err = process.communicate()
    return process.returncode, err.splitlines()


def parent(pid: int) -> int:
    """The process that started it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
