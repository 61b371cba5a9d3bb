"""Slurm clusters for tests. `lab` is one cluster per test run, as new for each test; `make_lab` starts others.

Mark the test @pytest.mark.needs("slurm"), and "namespaces" if it cuts cables or uses addresses: the shared lab is
in namespaces mode where the kernel allows that, else in processes mode. All labs end with the test run, however it ends.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import needs
import pytest
import remains
from running import PATIENCE, wait_until

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("STOKER_BIN") or REPOSITORY / "build/release/bin")
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "DEADLINE"}


@dataclass(frozen=True)
class Completed:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class Lab:
    """A lab that is up. Commands run with its environment: `sbatch`, `srun`, `squeue`, `stoker` work."""

    def __init__(self, name: str, folder: Path):
        self.name = name
        self.folder = folder
        self.shared = folder / "shared"
        self.description = json.loads((folder / "lab.json").read_text())
        self.mode = self.description["mode"]
        self.nodes = [node["name"] for node in self.description["nodes"]]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("STOKER_", "SLURM_", "SBATCH_"))}
        self.env |= {
            "PATH": f"{BIN}:{self.env.get('PATH', '/usr/bin:/bin')}",
            "SLURM_CONF": str(folder / "etc/slurm.conf"),
            "MODULEPATH": str(folder / "modules"),
            "STOKER_LAB_DIR": str(folder.parent),
            "STOKER_SLURM_CALLS_PER_S": "0",  # tests ask in loops
        }

    def run(self, *command: str | Path, code: int | None = 0, timeout: float = PATIENCE, **options) -> Completed:
        """Runs a command to its end and fails unless it exits with `code` (None: with any). Options: cwd, env (added)."""
        environment = self.env | {k: str(v) for k, v in (options.pop("env", None) or {}).items()}
        settings = {"cwd": self.shared, "stdin": subprocess.DEVNULL} | options
        words = [str(word) for word in command]
        process = subprocess.Popen(
            words,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **settings,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"{words}: not done after {timeout} s\nstdout:\n{out}\nstderr:\n{err}")
        except BaseException:  # the test's own time is over: whoever waits on would keep the lab's folder busy
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if code is not None and process.returncode != code:
            pytest.fail(f"{words}: exit {process.returncode}, expected {code}\nstdout:\n{out}\nstderr:\n{err}")
        return Completed(process.returncode, out, err)

    def sh(self, script: str, **options) -> Completed:
        """Runs a line of shell as `run` does."""
        return self.run("bash", "-c", script, **options)

    def stoker(self, *arguments: str | Path, **options) -> Completed:
        return self.run(BIN / "stoker", *arguments, **options)

    def submit(self, script: str, *options: str, cwd: Path | None = None) -> str:
        """`sbatch` of a script given as text (the first line is added); the job's id."""
        cwd = cwd or self.shared
        file = cwd / "job.sh"
        file.write_text(f"#!/bin/bash\n{script}\n")
        return self.run("sbatch", "--parsable", *options, file, cwd=cwd).out.strip().split(";")[0]

    def state(self, job: str) -> str:
        """Slurm's word for a job now: "PENDING", "RUNNING", "COMPLETED", ...; "" for one that it no longer knows."""
        shown = self.run("scontrol", "--oneliner", "show", "job", job, code=None)
        found = re.search(r"\bJobState=(\w+)", shown.out)
        return found[1] if found else ""

    def wait_for(self, job: str, *states: str, timeout: float = PATIENCE) -> str:
        """Waits until the job is in one of the states (none given: until it has ended), and gives that."""
        wanted = set(states) or ENDED

        def look() -> str:
            state = self.state(job)
            if state in ENDED - wanted:
                pytest.fail(f"job {job} is {state}, and will not be {' or '.join(sorted(wanted))}")
            return state if state in wanted else ""

        return wait_until(look, f"job {job} {' or '.join(sorted(wanted))}", timeout)

    def node_states(self) -> dict[str, str]:
        shown = self.run("sinfo", "--noheader", "--Node", "--partition=cpu", "--format=%N %T").out
        return dict(line.split() for line in shown.splitlines())

    def story(self) -> str:
        """Slurm's state and the ends of the logs, for the message of a test that timed out."""
        texts = [self.run("squeue", "--long", code=None).out, self.run("sinfo", "--long", "--Node", code=None).out]
        for log in sorted((self.folder / "log").glob("slurm*.log")):
            lines = log.read_text(errors="replace").splitlines()
            wrong = [line for line in lines if re.search(r"error|fatal|requeue|fail", line, re.IGNORECASE)]
            texts.append(f"{log}:\n" + "\n".join(wrong[-15:]))
        for log in sorted(self.shared.rglob("*.log")):
            texts.append(f"{log}:\n{log.read_text(errors='replace')[-1500:]}")
        return "\n".join(texts)

    def reset(self) -> None:
        """As after `up`: faults healed, no job, all nodes idle, the shared folder empty. Less than a second when idle."""
        if any((self.folder / "faults").glob("*.json")):
            self.stoker("lab", "fault", "heal", "--name", self.name)
        if self.run("squeue", "--noheader", "--format=%i").out.strip():
            self.run("scancel", "--quiet", "--me", code=None)
            self._kill_steps()
        deadline = time.monotonic() + 120
        while True:
            jobs = self.run("squeue", "--noheader", "--format=%i %T").out.split("\n")[:-1]
            states = self.node_states()
            if not jobs and all(state == "idle" for state in states.values()):
                break
            if time.monotonic() > deadline:
                pytest.fail(f"the lab does not come to rest: jobs {jobs}, nodes {states}")
            bad = [node for node, state in states.items() if re.search(r"down|drain|fail", state)]
            if bad:
                self.run("scontrol", "update", f"nodename={','.join(bad)}", "state=resume", code=None)
            time.sleep(0.05)
        for entry in self.shared.iterdir():
            subprocess.run(["rm", "-rf", entry], check=True)

    def _kill_steps(self) -> None:
        """Kills all steps with their slurmstepd: those wait for tasks that ignore SIGTERM, and for a killed srun."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"STOKER_LAB_MEMBER={self.folder}\0".encode() not in (process / "environ").read_bytes():
                    continue
                if b"STOKER_LAB_NODE=" not in (process / "environ").read_bytes():
                    continue  # of the controller
                is_holder = (process / "cmdline").read_bytes().startswith(b"stoker lab")
                if not is_holder and (process / "comm").read_text().strip() != "slurmd":
                    os.kill(int(process.name), signal.SIGKILL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test reports the state of its cluster, before the cluster is reset for the next test."""
    report = yield
    used = getattr(item, "funcargs", {})
    lab = next((used[name] for name in ("lab", "accounting_lab") if name in used), None)
    if report.failed and lab is not None:
        with suppress(Exception, pytest.fail.Exception):
            report.sections.append((f"lab {lab.name}", lab.story()))
    return report


def labs_folder() -> Path:
    return Path(os.environ.get("STOKER_LAB_DIR") or f"/tmp/stoker-lab-{os.getuid()}")


def start_lab(name: str, *options: str) -> Lab:
    """`stoker lab up`, in namespaces mode where that can be; the lab ends with this process, if not before."""
    if "--mode" not in options:
        options = (*options, "--mode", "namespaces" if needs.is_met("namespaces") else "processes")
    started = subprocess.run(
        [BIN / "stoker", "lab", "up", "--name", name, "--owner", str(os.getpid()), *options],
        capture_output=True,
        text=True,
        timeout=180,
    )
    if started.returncode != 0:
        pytest.fail(f"stoker lab up: exit {started.returncode}\n{started.stdout}{started.stderr}")
    return Lab(name, labs_folder() / name)


def stop_lab(name: str) -> None:
    """`stoker lab down`, after which nothing of it may be left, whatever the tests did to it."""
    subprocess.run([BIN / "stoker", "lab", "down", "--name", name], check=True, capture_output=True, timeout=120)
    if left := remains.look(labs_folder() / name):
        pytest.fail(f"{name}: left after lab down: {left}")


@pytest.fixture(scope="session")
def shared_lab() -> Iterator[Lab]:
    """The cluster of this test run: 4 nodes of 2 CPUs and 2 GPUs. Use `lab`, which is this one put in order."""
    name = f"t{os.getpid()}"
    yield start_lab(name)
    stop_lab(name)


@pytest.fixture
def lab(shared_lab: Lab) -> Iterator[Lab]:
    """A Slurm cluster of 4 nodes, as new: no job, all nodes idle, an empty shared folder."""
    shared_lab.reset()
    yield shared_lab
    shared_lab.reset()


@pytest.fixture(scope="session")
def shared_accounting_lab() -> Iterator[Lab]:
    name = f"a{os.getpid()}"
    yield start_lab(name, "--accounting", "--nodes", "2")
    stop_lab(name)


@pytest.fixture
def accounting_lab(shared_accounting_lab: Lab) -> Iterator[Lab]:
    """Another cluster, of 2 nodes, with slurmdbd: `sacct` works. Rows come some seconds after a job's end."""
    shared_accounting_lab.reset()
    yield shared_accounting_lab
    shared_accounting_lab.reset()


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Lab]]:
    """make_lab("x1", "--nodes", "2") starts a separate lab for this test, removed when the test ends."""
    names: list[str] = []

    def make(name: str, *options: str) -> Lab:
        names.append(name)
        return start_lab(name, *options)

    yield make
    for name in names:
        stop_lab(name)
