"""What the tests of submitted runs share: a folder that all nodes see, its runs, their processes, programs in place of
Slurm's own."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from labs import Completed, Lab
from running import processes_of, wait_until


class Runs:
    """Jobs of one folder on the lab."""

    def __init__(self, lab: Lab, folder: Path):
        self.lab = lab
        self.folder = folder

    def job(self, run: str, resources: str = "nodes: 2", more: str = "", name: str = "digits") -> Path:
        file = self.folder / "job.yaml"
        file.write_text(f"name: {name}\nrun: {{shell: {json.dumps(run)}}}\nresources: {{{resources}}}\n{more}")
        return file

    def stoker(self, *words: str | Path, code: int | None = 0, **options) -> Completed:
        return self.lab.stoker(*words, code=code, **({"cwd": self.folder} | options))

    def submit(self, *words: str, **options) -> str:
        """Submits job.yaml; the job's id."""
        return json.loads(self.stoker("submit", "job.yaml", "--json", *words, **options).out)["job"]

    def status(self, run: str = "last") -> dict:
        (run,) = json.loads(self.stoker("status", run, "--json").out)["runs"]
        return run

    def wait_for(self, *states: str, run: str = "last") -> dict:
        def look() -> dict | None:
            now = self.status(run)
            return now if now["state"] in states else None

        return wait_until(look, f"run is {' or '.join(states)}")

    def wait(self, run: str | Path = "last", code: int | None = 0) -> str:
        """The final output of `stoker wait`."""
        done = self.stoker("wait", run, "--timeout", "240s", code=None, timeout=280)
        if ": still " in done.err:
            pytest.fail(f"{done.err}\n{self.lab.story()}")
        if code is not None and done.code != code:
            pytest.fail(f"wait {run}: exit {done.code}, expected {code}\n{done.out}{done.err}\n{self.lab.story()}")
        return done.out

    @property
    def run(self) -> Path:
        """The newest run's folder."""
        return max((self.folder / "runs").iterdir(), key=lambda run: run.stat().st_ctime_ns)

    def log(self, rank: int, attempt: int = 1) -> str:
        return (self.run / f"attempts/{attempt}/rank-{rank:04}.log").read_text()

    def batch_log(self, attempt: int = 1) -> str:
        return (self.run / f"attempts/{attempt}/slurm.log").read_text()

    def processes(self, program: str, node: str | None = None) -> list[int]:
        """Processes of the newest run with this name, on this node or all."""
        place = {"SLURMD_NODENAME": node} if node else {}
        return processes_of(program, STOKER_RUN_DIR=self.run, **place)


@pytest.fixture
def runs(lab: Lab) -> Runs:
    folder = lab.shared / "project"
    folder.mkdir()
    return Runs(lab, folder)


@pytest.fixture
def wrapper(tmp_path: Path) -> Callable[[str, str], str]:
    """wrapper("sbatch", text) puts a program of that name before Slurm's own; gives the PATH."""

    def make(name: str, text: str) -> str:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
        return f"{program.parent}:{os.environ['PATH']}"

    return make
