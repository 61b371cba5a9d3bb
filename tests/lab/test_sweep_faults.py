"""A sweep of 200 trainings under faults: two nodes die, a job is preempted, the controller restarts, the disk of the study is
full for a while, and the driver is killed thirty times. Each trial counts once, and the best one can be repeated."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from lab_jobs import fault
from labs import BIN, start_lab

pytestmark = [pytest.mark.needs("slurm", "namespaces", "mount"), pytest.mark.soak, pytest.mark.timeout(3000)]

TRIALS = 200
KILLS = 30
SWEEP = f"""
job: job.yaml
at_once: 8
retries: 5
resumes: 20
space: {{lr: {{min: 0.001, max: 10, log: true}}, params.decay: {{min: 1.0e-6, max: 0.1, log: true}}}}
objectives: {{loss: minimize}}
sampler: tpe
trials: {TRIALS}
"""
JOB = f"""
name: softmax
run: {sys.executable} train.py ${{params.lr}} ${{params.decay}}
params: {{lr: 0.1, decay: 0.1}}
resources: {{nodes: 1, ranks_per_node: 1, cpus_per_rank: 1, time: 10m}}
slurm: {{partition: low}}
"""
# Softmax regression on three clusters; saves after each epoch and resumes there.
TRAIN = """
import os, pathlib, sys
import numpy as np
rate, decay = float(sys.argv[1]), float(sys.argv[2])
random = np.random.default_rng(0)
labels = random.integers(0, 3, 600)
data = random.normal(size=(600, 8)) + 1.5 * np.eye(3, 8)[labels]
run = pathlib.Path(os.environ["STOKER_RUN_DIR"])
saved = run / "weights.npz"
weights, first = np.zeros((8, 3)), 0
if saved.exists():
    loaded = np.load(saved)
    weights, first = loaded["weights"], int(loaded["epoch"])
for epoch in range(first, 20):
    scores = data @ weights
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(chances[np.arange(600), labels] + 1e-12).mean()
    chances[np.arange(600), labels] -= 1
    weights -= rate * (data.T @ chances / 600 + decay * weights)
    partial = run / f"weights-{os.getpid()}.npz"
    np.savez(partial, weights=weights, epoch=epoch + 1)
    partial.rename(saved)
with open(run / "ends", "a") as ends:
    ends.write("end\\n")
print(f"loss: {loss}")
"""


class Faults(threading.Thread):
    """Injects and heals, one after the other, from the start of the sweep on."""

    def __init__(self, lab, disk: Path):
        super().__init__(daemon=True)
        self.lab, self.disk, self.done, self.problem = lab, disk, [], None

    def run(self) -> None:
        try:
            time.sleep(5)
            self.kill_node("n2")
            self.restart_controller()
            self.fill_disk()
            self.preempt()
            self.kill_node("n3")
        except BaseException as problem:
            self.problem = problem

    def kill_node(self, node: str) -> None:
        fault(self.lab, "kill", node)
        time.sleep(40)  # until Slurm notices
        fault(self.lab, "heal", node)
        self.done.append(f"kill {node}")

    def restart_controller(self) -> None:
        fault(self.lab, "kill", "controller")
        time.sleep(6)
        fault(self.lab, "heal", "controller")
        self.done.append("controller")

    def fill_disk(self) -> None:
        filler = self.disk / "filler"
        try:
            with open(filler, "wb") as file:
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
        except OSError:
            time.sleep(5)
        filler.unlink()
        self.done.append("full disk")

    def preempt(self) -> None:
        for _ in range(50):
            running = self.lab.run("squeue", "--noheader", "--states=R", "--format=%i").out.split()
            if running:
                try:
                    fault(self.lab, "preempt", running[0])
                except pytest.fail.Exception:  # it has just ended
                    continue
                time.sleep(20)
                fault(self.lab, "heal")
                self.done.append("preempt")
                return
            time.sleep(0.2)


@pytest.fixture
def small_disk():
    folder = Path(tempfile.mkdtemp(prefix="stoker-sweep-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=755", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_lab(small_disk):
    lab = start_lab(f"s{os.getpid()}", "--nodes", "4")
    yield lab
    lab.stoker("lab", "down", "--name", lab.name)


def drive(folder: Path, lab, log: Path, kills: int) -> int:
    """Starts the driver again and again; returns how often it was killed."""
    chance, killed = random.Random(1), 0
    while True:
        with open(log, "a") as output:
            driver = subprocess.Popen(
                [BIN / "stoker", "sweep", "lr.yaml", "--max-failed", "0"],
                cwd=folder,
                env=lab.env,
                stdout=output,
                stderr=output,
            )
        try:
            code = driver.wait(timeout=chance.uniform(0.5, 6) if killed < kills else None)
        except subprocess.TimeoutExpired:
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            killed += 1
            continue
        if code == 0:
            return killed
        time.sleep(1)  # the disk is full


def test_two_hundred_trials_under_faults_count_once_each(own_lab, small_disk, tmp_path):
    (small_disk / "lr.yaml").write_text(SWEEP)
    (small_disk / "job.yaml").write_text(JOB)
    (small_disk / "train.py").write_text(TRAIN)
    faults = Faults(own_lab, small_disk)
    faults.start()
    log = tmp_path / "driver.log"
    assert drive(small_disk, own_lab, log, KILLS) == KILLS, log.read_text()
    faults.join(timeout=300)
    assert faults.problem is None
    assert Counter(faults.done) == Counter(["kill n2", "controller", "full disk", "preempt", "kill n3"])
    shown = own_lab.run(BIN / "stoker", "sweep", "show", "lr.study", "--top", "0", "--json", cwd=small_disk).out
    trials = json.loads(shown)
    complete = [trial for trial in trials if trial["state"] == "complete"]
    assert len(complete) == TRIALS, Counter(trial["state"] for trial in trials)
    assert len({trial["number"] for trial in trials}) == len(trials)
    runs = [path for path in (small_disk / "lr.study/runs").iterdir() if path.is_dir()]
    names = Counter(json.loads((run / "run.json").read_text())["name"] for run in runs)
    for trial in complete:
        suffix = f".{trial['attempt']}" if trial["attempt"] else ""
        assert names[f"lr-{trial['number']}{suffix}"] == 1
    for run in runs:
        ends = run / "ends"
        assert not ends.exists() or ends.read_text() == "end\n", f"{run}: trained to its end more than once"
    words = [BIN / "stoker", "sweep", "best", "lr.study", "--rerun", "--json"]
    (rerun,) = json.loads(own_lab.run(*words, cwd=small_disk, timeout=300).out)
    assert rerun["verdict"] == "equal" and rerun["difference"] <= 0.01
