"""Every way to start ranks on the nodes of a cluster: environment, rendezvous, and the rank that is blamed for a failure."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY
from running import wait_until
from submitted import Runs
from test_training import copy_small_dataset

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.timeout(300)]

PLACE = (
    "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE node $NODE_RANK $SLURMD_NODENAME threads $OMP_NUM_THREADS "
    "slurm $SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID $SLURM_NODEID"
)


def environment(runs: Runs) -> dict[str, str]:
    return {"PATH": f"{Path(sys.executable).parent}:{runs.lab.env['PATH']}"}


def run(runs: Runs, code: int = 0) -> str:
    runs.submit(env=environment(runs))
    return runs.wait(code=code)


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_every_rank_has_its_place_where_nodes_have_unequally_many(runs: Runs, launcher: str):
    runs.job(PLACE, "nodes: 2, ranks: 3, cpus_per_rank: 1", f"launcher: {launcher}\n")
    assert run(runs) == f"run {runs.run.name}: done\n"
    logs = [runs.log(rank).split() for rank in range(3)]
    counts = [int(log[1].partition("/")[2]) for log in logs]
    # Slurm decides which of the two nodes takes two.
    assert counts in ([2, 2, 1], [1, 2, 2])
    for rank, log in enumerate(logs):
        node = 0 if rank < counts[0] else 1
        local = rank - node * counts[0]
        expected = f"{rank}/3 {local}/{counts[rank]} node {node} n{node + 1} threads 1 slurm {rank}/3 {local} {node}"
        assert " ".join(log) == expected


@pytest.mark.parametrize(("launcher", "nodes"), [("srun", 2), ("single", 1)])
def test_a_compiled_program_joins_the_rendezvous(runs: Runs, launcher: str, nodes: int):
    program = runs.folder / "rendezvous"
    source = REPOSITORY / "tests/programs/rendezvous.cc"
    subprocess.run([os.environ.get("CXX", "c++"), "-O1", "-o", program, source], check=True)
    runs.job("./rendezvous", f"nodes: {nodes}, ranks_per_node: 2, cpus_per_rank: 1", f"launcher: {launcher}\n")
    assert run(runs) == f"run {runs.run.name}: done\n"
    size = 2 * nodes
    assert runs.log(0) == f"met {size - 1} of {size - 1}\nrank 0 of {size}, 0 of 2 on node 0, 1 threads\n"
    assert runs.log(size - 1) == f"rank {size - 1} of {size}, 1 of 2 on node {nodes - 1}, 1 threads\n"


@pytest.mark.parametrize("launcher", ["srun", pytest.param("torchrun", marks=pytest.mark.soak), "single"])
def test_threads_are_the_cores_of_the_job_where_nothing_is_asked(runs: Runs, launcher: str):
    runs.job(PLACE, "nodes: 1, ranks_per_node: 2", f"launcher: {launcher}\n")
    assert run(runs) == f"run {runs.run.name}: done\n"
    for rank in (0, 1):
        assert runs.log(rank) == f"{rank}/2 {rank}/2 node 0 n1 threads 1 slurm {rank}/2 {rank} 0\n"


def test_one_process_has_all_the_cores_it_asked_for(runs: Runs):
    runs.job(PLACE, "nodes: 1, cpus_per_rank: 2", "launcher: single\n")
    assert run(runs) == f"run {runs.run.name}: done\n"
    assert runs.log(0) == "0/1 0/1 node 0 n1 threads 2 slurm 0/1 0 0\n"


def test_several_ranks_share_the_gpus_that_slurm_gives(runs: Runs):
    runs.job("echo $CUDA_VISIBLE_DEVICES", "ranks_per_node: 2, ranks_per_gpu: 2", "slurm: {partition: gpu}\n")
    output = runs.stoker("submit", "job.yaml").out
    assert "(1 node x 2 ranks, 1 GPU a node, partition gpu)" in output
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert runs.log(0) == runs.log(1)
    assert re.fullmatch(r"\d\n", runs.log(0))


def test_below_torchrun_the_rank_that_fails_is_named_with_its_node_and_code(runs: Runs):
    runs.job(
        "[ $RANK = 3 ] || sleep 300; exit 7", "nodes: 2, ranks_per_node: 2, cpus_per_rank: 1", "launcher: torchrun\n"
    )
    output = run(runs, code=7)
    assert re.fullmatch(rf"run {runs.run.name}: failed \(rank 3 \(n2\) exited after .*: exit code 7\)\n", output)
    assert len(runs.batch_log().splitlines()) <= 10
    assert runs.processes("sleep") == []


def test_two_jobs_on_one_node_use_separate_ports_or_name_the_deciding_variable(runs: Runs):
    go, wish = "until test -e go; do sleep 0.1; done", "environment: {variables: {MASTER_PORT: '29411'}}\n"
    place = "slurm: {extra: [--nodelist=n1]}\n"
    runs.job(f"echo $MASTER_PORT; {go}", "nodes: 1", place)
    first, second = (Path(json.loads(runs.stoker("submit", "job.yaml", "--json").out)["folder"]) for _ in range(2))
    both = [wait_until(lambda run=run: log_of(run), "it runs") for run in (first, second)]
    assert len(set(both)) == 2
    (runs.folder / "go").touch()
    assert [runs.wait(run).endswith(": done\n") for run in (first, second)] == [True, True]

    (runs.folder / "go").unlink()
    runs.job(f"echo $MASTER_PORT; {go}", "nodes: 1", place + wish)
    holder = Path(json.loads(runs.stoker("submit", "job.yaml", "--json").out)["folder"])
    assert wait_until(lambda: log_of(holder), "it runs") == "29411\n"
    began = time.monotonic()
    refused = Path(json.loads(runs.stoker("submit", "job.yaml", "--json").out)["folder"])
    assert "port 29411: in use by another program on this host (MASTER_PORT; unset it to use a free port)" in runs.wait(
        refused, code=3
    )
    assert time.monotonic() - began < 100
    (runs.folder / "go").touch()
    runs.wait(holder)


def test_an_interface_that_is_not_there_is_named_with_its_variable(runs: Runs):
    runs.job("sleep 300", "nodes: 2", "environment: {variables: {GLOO_SOCKET_IFNAME: nosuch}}\n")
    began = time.monotonic()
    runs.submit()
    output = runs.wait(code=3)
    assert time.monotonic() - began < 100
    assert re.search(
        r"rank [01] \(n[12]\)?.*: GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up \(there are [^;]*\blo\b[^;]*; "
        r"unset it to choose automatically\)",
        output,
    ), output
    assert runs.processes("sleep") == []


def test_ranks_use_a_port_of_the_site_s_range(runs: Runs):
    sites = runs.folder / "config/stoker/sites"
    sites.mkdir(parents=True)
    (sites / "tunnel.yaml").write_text(
        "name: tunnel\nwhat: a cluster behind a firewall\n"
        'sources: {page: {url: "https://example.org", date: 2026-01-01}}\n'
        "network: {first_port: 21450, last_port: 21459, from: page}\n"
    )
    for launcher in ("srun", "single"):
        runs.job("echo $MASTER_PORT", "nodes: 1", f"site: tunnel\nlauncher: {launcher}\n")
        runs.submit(env={"XDG_CONFIG_HOME": runs.folder / "config"})
        assert runs.wait() == f"run {runs.run.name}: done\n"
        assert 21450 <= int(runs.log(0)) <= 21459


def log_of(run: Path) -> str:
    log = run / "attempts/1/rank-0000.log"
    return log.read_text() if log.exists() else ""


@pytest.fixture
def project(runs: Runs, example_images: Path) -> Runs:
    """A folder that all nodes see, with a small dataset."""
    return copy_small_dataset(runs, example_images)


def test_the_main_job_trains_below_torchrun_on_two_nodes(project: Runs):
    (project.folder / "job.yaml").write_text(
        "name: main\ntrain: {model: cifar-resnet20, epochs: 1, batch: 80, seed: 3}\n"
        "data: {train: {source: small, split: train}}\n"
        "resources: {nodes: 2, cpus_per_rank: 1}\nlauncher: torchrun\n"
    )
    assert run(project) == f"run {project.run.name}: done\n"
    assert sorted(file.name for file in project.run.glob("attempts/1/metrics-*")) == [
        "metrics-0000.csv",
        "metrics-0001.csv",
    ]
    assert len(list(project.run.glob("checkpoints/step-*"))) == 1


def test_a_plain_script_trains_below_torchrun_on_two_nodes(project: Runs):
    shutil.copytree(project.folder / "images/train", project.folder / "images/test")
    shutil.copy(REPOSITORY / "examples/pytorch/train.py", project.folder)
    (project.folder / "job.yaml").write_text(
        f"name: own\nrun: {sys.executable} train.py --data images --epochs 1 --batch 10 --steps 2\n"
        "resources: {nodes: 2, cpus_per_rank: 1}\nlauncher: torchrun\n"
    )
    assert run(project) == f"run {project.run.name}: done\n"
    assert "epoch 1: loss" in project.log(0)
