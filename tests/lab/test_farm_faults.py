"""A farm under faults: its job is preempted and requeued, a node dies, the controller restarts, the disk of its ledger is full.
Each task is recorded as done exactly once, and every allocation ends."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from lab_jobs import fault
from labs import BIN, start_lab
from running import wait_until

pytestmark = [pytest.mark.needs("slurm", "namespaces", "mount"), pytest.mark.soak, pytest.mark.timeout(1500)]


@pytest.fixture
def small_disk():
    folder = Path(tempfile.mkdtemp(prefix="stoker-farm-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=755", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


class FarmJobs:
    """A farm of short tasks in a folder that all nodes see. The tasks write to `log`, which is on another disk."""

    def __init__(self, lab, folder: Path, log: Path, tasks: int):
        self.lab, self.folder, self.log, self.tasks = lab, folder, log, tasks
        lines = (f"sleep 0.3; echo {n} >> {log}\n" for n in range(tasks))
        (folder / "tasks.txt").write_text("".join(lines))

    def stoker(self, *words: str):
        return self.lab.run(BIN / "stoker", "farm", "tasks.txt", *words, code=None, cwd=self.folder)

    def submit(self, nodes: int = 2) -> bool:
        size = ("--nodes", str(nodes), "--cpus-per-node", "1", "--allocations", "1")
        return self.stoker("--time", "20m", "--partition", "low", *size).code == 0

    def preempt(self) -> str:
        """Preempts the running job, and waits until it runs again."""
        job = self.job()
        fault(self.lab, "preempt", job)
        show = f"scontrol show job {job} | grep -o 'Restarts=[0-9]*'"
        wait_until(lambda: self.lab.sh(show).out == "Restarts=1\n", "the job is requeued", timeout=120)
        fault(self.lab, "heal")
        wait_until(lambda: self.job() == job, "the job runs again", timeout=120)
        return job

    def done(self) -> int:
        return json.loads(self.stoker("--status", "--json").out)["done"]

    def job(self) -> str:
        """The running job, or ""."""
        return self.lab.run("squeue", "--noheader", "--states=R", "--format=%i").out.strip()

    def is_idle(self) -> bool:
        return self.lab.run("squeue", "--noheader", code=None).out == ""

    def wait_for_more(self, more: int = 10) -> None:
        wanted = self.done() + more
        wait_until(lambda: self.done() >= wanted, f"{wanted} tasks are done", timeout=240)

    def finish(self) -> None:
        """Submits again until nothing is left, as a user does."""
        for _ in range(5):
            wait_until(self.is_idle, "the queue is empty", timeout=400, every=1)
            if self.done() == self.tasks:
                return
            wait_until(self.submit, "the farm is submitted", every=1)
        pytest.fail(f"{self.done()} of {self.tasks} done\n{self.lab.story()}")

    def check(self, interrupted: int) -> None:
        """Each task is done once in the ledgers; only tasks that ran at a fault may have run again."""
        ledgers = (self.folder / "tasks.farm/ledger").glob("*.log")
        ends = [line.split() for ledger in ledgers for line in ledger.read_text().splitlines()]
        done = Counter(int(words[1]) for words in ends if words[0] == "end" and words[4] == "done")
        assert done == Counter(range(self.tasks))
        assert not [words for words in ends if words[0] == "end" and words[4] not in ("done", "stopped")]
        ran = Counter(int(line) for line in self.log.read_text().split())
        assert sorted(ran) == list(range(self.tasks))
        assert ran.total() <= self.tasks + interrupted


@pytest.fixture
def jobs(small_disk, tmp_path):
    lab = start_lab(f"f{os.getpid()}", "--nodes", "4")
    yield lambda tasks: FarmJobs(lab, small_disk, tmp_path / "log", tasks)
    lab.stoker("lab", "down", "--name", lab.name)


def test_a_preempted_job_of_one_node_continues_without_failed_tasks(jobs):
    farm = jobs(120)
    assert farm.submit(nodes=1)
    farm.wait_for_more()
    farm.preempt()
    farm.finish()
    farm.check(interrupted=1)


def test_tasks_of_a_farm_under_faults_are_recorded_once(jobs):
    farm = jobs(700)
    assert farm.submit()
    farm.wait_for_more()

    job = farm.preempt()
    farm.wait_for_more()

    nodes = farm.lab.run("scontrol", "show", "hostnames", farm.lab.sh(f"squeue -hj {job} -o %N").out.strip())
    victim = nodes.out.split()[-1]
    fault(farm.lab, "kill", victim)
    wait_until(lambda: farm.lab.node_states()[victim].startswith("down"), "Slurm notices the death", timeout=120)
    fault(farm.lab, "heal", victim)
    wait_until(lambda: farm.job() or farm.is_idle(), "the job runs again, or has ended", timeout=240)
    if farm.is_idle():
        assert farm.submit()
    farm.wait_for_more()

    fault(farm.lab, "kill", "controller")
    time.sleep(6)
    farm.wait_for_more(5)  # the workers need no controller
    fault(farm.lab, "heal", "controller")
    farm.wait_for_more(5)

    filler = farm.folder / "filler"
    with suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    assert shutil.disk_usage(farm.folder).free == 0
    wait_until(farm.is_idle, "the farm stops at a full disk", timeout=300)
    assert farm.done() < farm.tasks
    filler.unlink()
    farm.finish()
    farm.check(interrupted=4 * 2)
