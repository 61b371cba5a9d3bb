"""How ranks are started on one machine: by torchrun, several on one GPU, with a port in use."""

import os
import re
import socket
import sys
from pathlib import Path

import pytest
from running import Job, finish, wait_for

HOST = socket.gethostname().split(".")[0]
PYTHON = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # whose torchrun has torch

PRINT_RANK = """\
import os, sys
names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK OMP_NUM_THREADS TORCHELASTIC_USE_AGENT_STORE".split()
print(*(f"{name}={os.environ[name]}" for name in names), "elastic" if "TORCHELASTIC_RUN_ID" in os.environ else "")
print("text on standard error", file=sys.stderr)
"""


def test_torchrun_starts_ordinary_ranks(stoker, tmp_path):
    (tmp_path / "p.py").write_text(PRINT_RANK)
    job = Job(tmp_path, f"{sys.executable} p.py", 2, "launcher: torchrun\n")
    # Without the variable, the number of threads is the number of the rank's cores.
    words = ("run", "job.yaml", "--set", "resources.cpus_per_rank=5")
    result = stoker(*words, code=0, env=PYTHON | {"OMP_NUM_THREADS": None})
    place = "WORLD_SIZE=2 LOCAL_RANK={0} LOCAL_WORLD_SIZE=2 NODE_RANK=0 OMP_NUM_THREADS=5"
    elastic = "TORCHELASTIC_USE_AGENT_STORE=False elastic"
    lines = [f"RANK={rank} {place.format(rank)} {elastic}" for rank in (0, 1)]
    assert sorted(result.out.splitlines()) == sorted([lines[0], f"[1] {lines[1]}"])
    assert sorted(result.err.splitlines()[1:-2]) == ["[1] text on standard error", "text on standard error"]
    assert [job.log(rank).decode().splitlines()[0] for rank in (0, 1)] == lines
    assert not job.processes()


@pytest.mark.soak
def test_torchrun_keeps_the_number_of_threads_from_the_environment(stoker, tmp_path):
    (tmp_path / "p.py").write_text(PRINT_RANK)
    job = Job(tmp_path, f"{sys.executable} p.py", 2, "launcher: torchrun\n")
    stoker("run", "job.yaml", code=0, env=PYTHON | {"OMP_NUM_THREADS": "3"})
    assert b"OMP_NUM_THREADS=3" in job.log(1)


def test_with_torchrun_the_first_failing_ranks_exit_code_is_returned(stoker, tmp_path):
    run = "{shell: 'test $RANK = 0 && sleep 600; echo no such class >&2; exit 7'}"
    job = Job(tmp_path, run, 2, "launcher: torchrun\n")
    result = stoker("run", "job.yaml", code=7, env=PYTHON)
    log = f"runs/{job.run_folder().name}/attempts/1/rank-0001.log"
    lines = result.err.splitlines()
    assert lines[1] == "[1] no such class"
    assert re.fullmatch(rf"rank 1 \({HOST}\) exited after [\d.]+ m?s: exit code 7", lines[2])
    assert lines[3:] == [f"  last output: no such class   ({log})", "  rank 0 stopped; no checkpoint yet"]
    assert not job.processes()


def test_with_torchrun_a_rank_has_time_to_save_and_stop(stoker, tmp_path):
    # Rank 0 is gone with 75 long before rank 1 has saved: torchrun alone would end rank 1 at once.
    saves = "kill $!; test $RANK = 0 || sleep 2; mkdir -p $STOKER_CHECKPOINT_DIR/saved; echo saved; exit 75"
    job = Job(
        tmp_path, f"""{{shell: "trap '{saves}' USR1; sleep 600 & echo ready; wait"}}""", 2, "launcher: torchrun\n"
    )
    process = stoker.start("run", "job.yaml", env=PYTHON)
    wait_for(lambda: job.log(0) and job.log(1))
    os.kill(process.pid, 10)
    code, err = finish(process)
    assert code == 75
    assert "stopped after a checkpoint" in err
    assert b"saved" in job.log(1)


def test_a_failed_torchrun_is_reported_with_its_last_output(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'exit 0'}", 2, "launcher: torchrun\n")
    (tmp_path / "bin").mkdir()
    torchrun = tmp_path / "bin/torchrun"
    torchrun.write_text("#!/bin/sh\necho No module named torch >&2\nexit 1\n")
    torchrun.chmod(0o755)
    lines = stoker("run", "job.yaml", code=1, env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}).err.splitlines()
    assert re.fullmatch(
        rf"rank 0 \({HOST}\) never started: its node's torchrun exited: exit code 1: No module named torch", lines[1]
    )
    torchrun.unlink()
    lines = stoker("run", "job.yaml", code=127, env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}).err.splitlines()
    assert lines[1] == (
        f"rank 0 ({HOST}) never started: its node's torchrun exited: torchrun: command not found in PATH"
    )
    assert not job.processes()


def test_an_interrupted_run_leaves_no_torchrun_processes(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'sleep 600 & setsid sleep 600 & echo ready; wait'}", 2, "launcher: torchrun\n")
    process = stoker.start("run", "job.yaml", env=PYTHON)
    wait_for(lambda: job.log(0) and job.log(1))
    os.kill(process.pid, 2)
    code, _ = finish(process)
    assert code == 130
    assert not job.processes()


def test_several_ranks_share_a_gpu_and_see_only_that_one(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'echo $CUDA_VISIBLE_DEVICES'}", 4)
    share = ("--set", "resources.ranks_per_gpu=2")
    stoker("run", "job.yaml", *share, code=0, env={"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"})
    assert [job.log(rank) for rank in range(4)] == [b"GPU-a\n", b"GPU-b\n", b"GPU-a\n", b"GPU-b\n"]
    refused = stoker("run", "job.yaml", *share, code=2, env={"CUDA_VISIBLE_DEVICES": "GPU-a"}).err
    assert refused == (
        "resources.ranks_per_gpu: 4 ranks need 2 GPUs, this machine has 1 (CUDA_VISIBLE_DEVICES=GPU-a)\n"
        "  try: stoker run --set resources.ranks_per_gpu=4\n"
    )


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("GPU-a,GPU-b,GPU-c,GPU-d,GPU-e", [b"GPU-a,GPU-b,GPU-c,GPU-d\n"] * 2),
        ("MIG-a,MIG-b,MIG-c,MIG-d", [b"MIG-a,MIG-b\n", b"MIG-c,MIG-d\n"]),
    ],
)
def test_ranks_see_the_gpus_of_their_node_or_their_own_mig_devices(stoker, tmp_path, visible, expected):
    job = Job(tmp_path, "{shell: 'echo $CUDA_VISIBLE_DEVICES'}", 2)
    stoker("run", "job.yaml", "--set", "resources.gpus_per_rank=2", code=0, env={"CUDA_VISIBLE_DEVICES": visible})
    assert [job.log(rank) for rank in range(2)] == expected


def test_too_few_gpus_are_refused_before_the_start(stoker, tmp_path):
    Job(tmp_path, "{shell: 'echo $CUDA_VISIBLE_DEVICES'}", 2)
    own = ("--set", "resources.gpus_per_rank=2")
    refused = stoker("run", "job.yaml", *own, code=2, env={"CUDA_VISIBLE_DEVICES": ""}).err
    assert refused == (
        "resources.gpus_per_rank: 2 ranks need 4 GPUs, this machine has none (CUDA_VISIBLE_DEVICES is empty)\n"
        "  try: stoker run --set resources.gpus_per_rank=0      (without GPUs), or stoker submit\n"
    )
    assert not (tmp_path / "runs").exists()
