"""The main job on two nodes compared with one node, each with a single core, in a lab on this machine.

Both use `stoker submit` and train cifar-resnet20 on the shipped images with the same batch size per rank, alternating. The result
is the rate of trained samples from the run's steps, without the first ones; the start of a job is the same for both. Two nodes
must be faster; the efficiency is half of the speed-up. The same with torchrun on each node is shown for information."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, Interval, in_turns, ratio_interval
from on_a_lab import lab_environment

PAIRS = {"srun": 5, "torchrun": 2}
BATCH = 64
STEPS = 35
FIRST = 5  # warm-up steps


class Cluster:
    """A folder visible to both nodes of the lab, and the environment for commands."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder
        # Its torchrun has torch.
        self.environment = environment | {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}"}

    def stoker(self, *words: str | Path) -> str:
        command = [str(word) for word in (BIN / "stoker", *words)]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def pack_images(self) -> None:
        with tarfile.open(REPOSITORY / "examples/cifar10/cifar10-6000.tar") as archive:
            archive.extractall(self.folder / "images")
        self.stoker("data", "pack", "images", "cifar")

    def rate(self, nodes: int, launcher: str) -> float:
        """Samples per second of all ranks together, after warm-up."""
        (self.folder / "job.yaml").write_text(
            f"name: nodes\ntrain: {{model: cifar-resnet20, steps: {STEPS}, validate_every: 0, batch: {BATCH}, seed: 1}}\n"
            "data: {train: {source: cifar, split: train}}\n"
            f"resources: {{nodes: {nodes}, cpus_per_rank: 1}}\nlauncher: {launcher}\ncheckpoint: {{every: never}}\n"
        )
        run = Path(json.loads(self.stoker("submit", "job.yaml", "--json"))["folder"])
        self.stoker("wait", run)
        with (run / "attempts/1/metrics-0000.csv").open() as file:
            steps = [float(row["step_s"]) for row in csv.DictReader(file)][FIRST:]
        shutil.rmtree(run)
        return nodes * BATCH * len(steps) / sum(steps)


def compare(cluster: Cluster, launcher: str) -> Interval:
    """Prints the speed-up of two nodes."""
    pairs = in_turns(lambda: cluster.rate(1, launcher), lambda: cluster.rate(2, launcher), PAIRS[launcher])
    one, two = pairs[-1]
    faster = ratio_interval([(many, single) for single, many in pairs])
    print(
        f"       {launcher}: {one:.0f} samples/s on one node, {two:.0f} on two in the last turn: {faster} times, "
        f"efficiency {faster.value / 2:.0%}",
        flush=True,
    )
    return faster


def main() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        print("skipped: needs two cores, one for each node")
        return
    nodes = ("--nodes", "2", "--cpus", "1", "--pin")
    with lab_environment(*nodes) as environment, tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder), environment)
        cluster.pack_images()
        faster = compare(cluster, "srun")
        compare(cluster, "torchrun")
    is_met = faster.low > 1
    print(f"{'ok' if is_met else 'MISSED':7}two nodes over one: {faster} times, limit more than 1")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
