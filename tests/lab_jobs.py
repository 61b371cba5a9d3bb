"""Jobs that record their signals and network, and faults: for tests that break a lab."""

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labs import Lab
from running import wait_until

PROBE = Path(__file__).with_name("lab") / "probe.py"

# A program that counts to its first argument, every 0.1 s by 1. On SIGUSR1 it saves and stops, with a checkpoint in the
# format of any program.
COUNTER = r"""
import json, os, pathlib, signal, struct, sys, time
folder = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"])
resume = os.environ["STOKER_RESUME"]
count = struct.unpack("<q", open(resume, "rb").read()[-8:])[0] if resume else 0
print("from", count, flush=True)
def save(*_):
    header = json.dumps({"count": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}).encode()
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"partial-{os.getpid()}"
    partial.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<q", count))
    partial.rename(folder / f"count-{count}.safetensors")
    sys.exit(75)
signal.signal(signal.SIGUSR1, save)
while count < int(sys.argv[1]):
    time.sleep(0.1)
    count += 1
print("counted to", count, flush=True)
"""


def fault(lab: Lab, *words: str, **options) -> str:
    """The output of `stoker lab fault ...` without the lab's name."""
    printed = lab.stoker("lab", "fault", *words, "--name", lab.name, **options).out.strip()
    return printed.replace(f" --name {lab.name}", "").replace(lab.name, "LAB")


def refusal(lab: Lab, *words: str, code: int = 2) -> str:
    printed = lab.stoker("lab", "fault", *words, "--name", lab.name, code=code).err
    return printed.replace(f" --name {lab.name}", "").replace(lab.name, "LAB")


def in_force(lab: Lab) -> list[dict]:
    return json.loads(fault(lab, "--json"))["active"]


@dataclass
class Job:
    """A job, and the files of its tasks in a folder that all nodes see."""

    lab: Lab
    id: str
    folder: Path

    def state(self) -> str:
        return self.lab.state(self.id)

    def wait(self, state: str) -> None:
        self.lab.wait_for(self.id, state, timeout=90)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def read(self, name: str) -> str:
        return (self.folder / name).read_text() if self.has(name) else ""

    def beats(self, task: int, within: float = 10) -> bool:
        """Whether the task is alive: its file changes."""
        deadline = time.monotonic() + within
        before = self.read(f"beat-{task}")
        while time.monotonic() < deadline:
            if self.read(f"beat-{task}") not in ("", before):
                return True
            time.sleep(0.05)
        return False

    def next_network(self, matches: Callable[[dict], bool], what: str) -> None:
        """Waits until the probe reports a matching network, from now on."""
        begin = len(self.read("network"))

        def found() -> bool:
            reported = self.read("network")[begin:].split("\n")[1:-1]  # the first may have begun before
            return any(matches(json.loads(line)) for line in reported)

        wait_until(found, what)


def submit(lab: Lab, script: str, *options: str) -> Job:
    folder = Path(tempfile.mkdtemp(prefix="job-", dir=lab.shared))
    folder.chmod(0o755)
    return Job(lab, lab.submit(script, "--output", "log", *options, cwd=folder), folder)


def start_probe(lab: Lab, nodes: str) -> Job:
    script = f"srun --kill-on-bad-exit=0 {shlex.quote(sys.executable)} {PROBE} ."
    job = submit(lab, script, "--nodes=2", "--ntasks-per-node=1", f"--nodelist={nodes}")
    wait_until(lambda: job.beats(0, 0.3) and job.beats(1, 0.3), "both tasks run")
    return job


def wait_for_written_state(lab: Lab) -> None:
    """Waits until the controller has written its state, every 5 s. A controller that is killed before loses the job's number
    and reuses it; Slurm then drains a node that knows the first job ("Duplicate jobid")."""
    begin, state = time.time(), lab.folder / "state/job_state"
    wait_until(
        lambda: (state.exists() and state.stat().st_mtime > begin) or time.time() > begin + 7,
        "the controller has written its state",
    )


def start_trapping(lab: Lab, *options: str) -> Job:
    """A job that writes "ran" all the time and "signalled" on SIGTERM, and continues."""
    step = 'trap "date > signalled" TERM; while :; do date > ran; sleep 0.1; done'
    job = submit(lab, f"trap : TERM\nsrun bash -c '{step}'", "--ntasks=1", *options)
    wait_until(lambda: job.has("ran"), "the job runs")
    return job
