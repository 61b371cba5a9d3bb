"""The main job, a script with PyTorch's DDP, a Python function and a C++ program on one, two and four nodes, however their
ranks are started: the long lane. tests/lab/test_lab_modes.py shows each way once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MODULE, REPOSITORY
from submitted import Runs
from test_lab_modes import environment
from test_training import copy_small_dataset, submit, weights

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.soak, pytest.mark.timeout(900)]

WAYS = [("srun", 1), ("srun", 2), ("srun", 4), ("torchrun", 1), ("torchrun", 2), ("torchrun", 4), ("single", 1)]
every_way = pytest.mark.parametrize(("launcher", "nodes"), WAYS)


@pytest.fixture
def project(runs: Runs, example_images: Path) -> Runs:
    """A folder that all nodes see, with a small dataset."""
    return copy_small_dataset(runs, example_images)


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_the_main_job_trains_to_the_same_weights_in_every_mode(project: Runs, nodes: int):
    ends = {}
    for launcher in [launcher for launcher, count in WAYS if count == nodes]:
        run = submit(project, nodes, epochs=2, more=f"launcher: {launcher}\n", env=environment(project))
        assert project.wait(run) == f"run {run.name}: done\n"
        assert len(list(run.glob("attempts/1/metrics-*.csv"))) == nodes
        ends[launcher] = weights(run)
    assert len(ends) >= 2
    assert all(end == ends["srun"] for end in ends.values())


def ranks_of(nodes: int) -> int:
    """Two ranks at least, for with one there is nothing to exchange."""
    return 2 if nodes == 1 else nodes


def logs_of(runs: Runs, nodes: int) -> list[str]:
    return [runs.log(rank) for rank in range(ranks_of(nodes))]


@every_way
def test_a_script_with_ddp_trains(project: Runs, launcher: str, nodes: int):
    shutil.copy(REPOSITORY / "examples/pytorch/train.py", project.folder)
    shutil.copytree(project.folder / "images/train", project.folder / "images/test")
    (project.folder / "job.yaml").write_text(
        f"name: own\nrun: {sys.executable} train.py --data images --epochs 1 --batch 16 --steps 2\n"
        f"resources: {{nodes: {nodes}, ranks_per_node: {ranks_of(nodes) // nodes}, cpus_per_rank: 1}}\n"
        f"launcher: {launcher}\n"
    )
    project.submit(env=environment(project))
    assert project.wait() == f"run {project.run.name}: done\n"
    report = [log.count("epoch 1: loss") for log in logs_of(project, nodes)]
    assert report == [1] + [0] * (ranks_of(nodes) - 1)  # only rank 0 prints, after the rendezvous


@every_way
def test_a_compiled_program_joins_the_rendezvous(runs: Runs, launcher: str, nodes: int):
    source = REPOSITORY / "tests/programs/rendezvous.cc"
    subprocess.run([os.environ.get("CXX", "c++"), "-O1", "-o", runs.folder / "rendezvous", source], check=True)
    each = ranks_of(nodes) // nodes
    runs.job("./rendezvous", f"nodes: {nodes}, ranks_per_node: {each}, cpus_per_rank: 1", f"launcher: {launcher}\n")
    runs.submit(env=environment(runs))
    assert runs.wait() == f"run {runs.run.name}: done\n"
    size = ranks_of(nodes)
    assert logs_of(runs, nodes)[0].startswith(f"met {size - 1} of {size - 1}\n")
    for rank, log in enumerate(logs_of(runs, nodes)):
        place = f"rank {rank} of {size}, {rank % each} of {each} on node {rank // each}, 1 threads\n"
        assert log.endswith(place)


FUNCTION = """
import os, runpy, sys
import stoker

def train():
    sys.argv = "train.py --data images --epochs 1 --batch 16 --steps 2".split()
    runpy.run_path("train.py", run_name="__main__")
    return os.environ["RANK"], os.environ["SLURMD_NODENAME"]

if __name__ == "__main__":
    future = stoker.submit(train, nodes=int(sys.argv[1]), cpus_per_rank=1)
    print(future.results(timeout=300))
    print(future.log().count("epoch 1: loss"))
"""


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_a_python_function_trains(project: Runs, nodes: int):
    shutil.copy(REPOSITORY / "examples/pytorch/train.py", project.folder)
    shutil.copytree(project.folder / "images/train", project.folder / "images/test")
    (project.folder / "script.py").write_text(FUNCTION)
    words = (sys.executable, "script.py", nodes)
    done = project.lab.run(*words, cwd=project.folder, env={"PYTHONPATH": MODULE}, timeout=400)
    places = [(str(rank), f"n{rank + 1}") for rank in range(nodes)]
    assert done.out == f"{places}\n1\n"
