"""Runs that live in Slurm's queue, on a real cluster: submitted, followed, cancelled, killed, resumed."""

import json
import os
import re
import signal
import subprocess
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest
from labs import Lab
from running import Process, wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

PLACE = "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE node $NODE_RANK $SLURMD_NODENAME threads $OMP_NUM_THREADS"


def test_every_rank_has_its_place_on_two_nodes(runs: Runs):
    runs.job(PLACE, "nodes: 2, ranks_per_node: 2, cpus_per_rank: 1, time: 5m")
    output = runs.stoker("submit", "job.yaml").out
    assert re.fullmatch(
        textwrap.dedent("""\
        submitted (\\d+) \\(2 nodes x 2 ranks, 5m\\)
          run   (runs/\\S+_digits_\\w{4})
          logs  \\2/attempts/1/rank-0000.log         stoker logs -f last
          next  stoker status last, stoker wait last, stoker cancel last
        """),
        output,
    )
    assert runs.stoker("wait", "last").out == f"run {runs.run.name}: done\n"
    assert [runs.log(rank) for rank in range(4)] == [
        "0/4 0/2 node 0 n1 threads 1\n",
        "1/4 1/2 node 0 n1 threads 1\n",
        "2/4 0/2 node 1 n2 threads 1\n",
        "3/4 1/2 node 1 n2 threads 1\n",
    ]


@pytest.mark.parametrize("nodes", [1, 4])
def test_ranks_connect_to_the_address_of_rank_0(runs: Runs, nodes: int):
    rendezvous = """
import os, socket
rank, world, address = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["MASTER_ADDR"]
port = int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", port)); server.listen()
    print("met", sorted(int(server.accept()[0].recv(9)) for _ in range(world - 1)))
else:
    import time
    for _ in range(200):
        try: socket.create_connection((address, port)).sendall(str(rank).encode()); break
        except OSError: time.sleep(0.05)
"""
    (runs.folder / "rendezvous.py").write_text(rendezvous)
    runs.job("python3 rendezvous.py", f"nodes: {nodes}, ranks_per_node: 2, cpus_per_rank: 1")
    runs.submit()
    runs.stoker("wait", "last")
    assert runs.log(0) == f"met {list(range(1, 2 * nodes))}\n"


def test_every_rank_sees_the_gpus_of_its_node(runs: Runs):
    runs.job("echo $CUDA_VISIBLE_DEVICES $LOCAL_RANK", "ranks_per_node: 2, gpus_per_rank: 1", "slurm: {partition: gpu}")
    assert "(1 node x 2 ranks, 2 GPUs a node, partition gpu)" in runs.stoker("submit", "job.yaml").out
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert [runs.log(0), runs.log(1)] == ["0,1 0\n", "0,1 1\n"]


def test_a_run_is_named_by_its_job_too(runs: Runs):
    runs.job("echo here", "nodes: 1")
    job = runs.submit()
    assert runs.stoker("wait", job).out == f"run {runs.run.name}: done\n"
    assert runs.stoker("logs", job).out == "[0] here\n"
    assert runs.status(job)["job"] == job


def test_a_queued_run_shows_its_pending_reason_and_can_be_cancelled(runs: Runs):
    runs.job("true", "nodes: 1", "slurm: {extra: [--hold]}")
    job = runs.submit()
    now = runs.status()
    assert (now["state"], now["job"]) == ("queued", job)
    assert now["reason"] == "JobHeldUser: it is held; use scontrol release to release it"
    refused = runs.stoker("resume", "last", code=2).err
    assert refused == f"run {runs.run.name}: is queued as job {job}\n  try: stoker status {runs.run.name}\n"
    assert runs.stoker("cancel", "--last", "--dry-run").out == f"would cancel job {job} (queued), run {runs.run.name}\n"
    assert runs.status()["state"] == "queued"
    assert runs.stoker("cancel", "--last").out == f"cancelling job {job} (queued), run {runs.run.name}\n"
    assert runs.stoker("wait", code=130).out == f"run {runs.run.name}: cancelled\n"
    assert runs.stoker("cancel", "--last").out == f"run {runs.run.name}: has already ended (cancelled)\n"


def test_cancelling_a_running_job_leaves_no_process(runs: Runs):
    runs.job("sleep 300 & setsid sleep 300 & wait")
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 4, "all ranks sleep")
    now = runs.status()
    assert (now["state"], now["nodes"]) == ("running", "n[1-2]")
    runs.stoker("cancel", job)
    assert runs.stoker("wait", code=None).out == f"run {runs.run.name}: cancelled\n"
    wait_until(lambda: runs.processes("sleep") == [], "no process is left")
    runs.lab.wait_for(job, "CANCELLED")
    assert runs.status()["state"] == "cancelled"


def test_manual_scancel_is_distinguished_from_a_normal_end(runs: Runs):
    runs.job("sleep 300")
    job = runs.submit()
    runs.wait_for("running")
    wait_until(lambda: len(runs.processes("sleep")) == 2, "all ranks sleep")
    runs.lab.run("scancel", job)
    assert "cancelled" in runs.stoker("wait", code=None).out
    assert runs.status()["state"] == "cancelled"


def test_logs_follow_a_run_from_the_queue_to_its_end(runs: Runs):
    runs.job("echo first; sleep 1; echo last", "nodes: 1", "slurm: {extra: [--hold]}")
    job = runs.submit()
    following = Process(
        ["stoker", "logs", "-f", "last"],
        cwd=runs.folder,
        env=runs.lab.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    runs.lab.run("scontrol", "release", job)
    out, err = following.communicate()
    assert out == "[0] first\n[0] last\n"
    assert f"job {job} is queued" in err


def test_the_rank_that_fails_is_named_with_its_node_and_the_run_resumed(runs: Runs):
    runs.job(
        "[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || { [ $RANK = 1 ] && exit 7; sleep 300; }; echo attempt $(basename $STOKER_ATTEMPT_DIR)"
    )
    first = runs.submit()
    failed = runs.stoker("wait", code=7).out
    assert re.fullmatch(rf"run {runs.run.name}: failed \(rank 1 \(n2\) exited after .*: exit code 7\)\n", failed)
    output = json.loads(runs.stoker("resume", "last", "--from-start", "--json").out)
    assert output["attempt"] == 2
    assert output["job"] != first
    runs.stoker("wait")
    assert runs.log(1, attempt=2) == "attempt 2\n"
    now = runs.status(output["job"])
    assert (now["state"], now["attempts"]) == ("done", 2)


def test_a_killed_process_on_the_second_node_is_named(runs: Runs):
    runs.job("exec sleep 300")
    runs.submit()
    (victim,) = wait_until(lambda: runs.processes("sleep", node="n2"), "the rank on n2 sleeps")
    wait_until(lambda: runs.processes("sleep", node="n1"), "the rank on n1 sleeps")
    os.kill(victim, signal.SIGKILL)
    failed = runs.stoker("wait", code=137).out
    assert "rank 1 (n2) exited after" in failed
    assert "killed by signal 9 (SIGKILL)" in failed
    wait_until(lambda: runs.processes("sleep") == [], "no process is left")


def test_a_killed_supervisor_of_a_rank_is_named_and_leaves_nothing(runs: Runs):
    runs.job("sleep 300 & setsid sleep 300 & wait")
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 4, "all ranks sleep")
    both = runs.processes("stoker", node="n2")  # the rank's own, and what stands between it and Slurm
    (member,) = [pid for pid in both if int(Path(f"/proc/{pid}/stat").read_text().split()[3]) in both]
    os.kill(member, signal.SIGKILL)
    failed = runs.stoker("wait", code=1).out
    assert "rank 1 (n2) was lost" in failed
    runs.lab.wait_for(job)
    wait_until(lambda: runs.processes("sleep") == [], "no process is left")


@pytest.mark.soak
def test_a_frozen_node_is_named_within_ten_seconds_and_may_continue(runs: Runs):
    runs.job("sleep 300")
    runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "all ranks sleep")
    frozen = [pid for name in ("stoker", "sh", "sleep") for pid in runs.processes(name, node="n2")]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        wait_until(lambda: "rank 1 (n2) has sent no heartbeat for" in runs.batch_log(), "the rank is named", 30)
        named = time.monotonic() - began
    finally:
        for pid in frozen:
            with suppress(ProcessLookupError):  # Slurm has ended what stood still
                os.kill(pid, signal.SIGCONT)
    assert named < 11
    # A disk that hangs for a while stops our own process, not the training: that alone ends no run.
    assert "its host answers, but its `stoker rank` hangs; the run ends after 10 min 00 s (timeouts.stall)" in (
        runs.batch_log()
    )
    time.sleep(3)
    assert runs.status()["state"] == "running"
    runs.stoker("cancel", "--last")
    runs.stoker("wait", code=None)


SAVE = "mkdir -p $STOKER_CHECKPOINT_DIR/saved; echo saved; kill $!; exit 75"


def test_usr1_of_the_batch_shell_stops_the_ranks_after_a_checkpoint(runs: Runs):
    runs.job(f"trap '{SAVE}' USR1; sleep 300 & wait")
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "all ranks sleep")
    runs.lab.run("scancel", "--batch", "--signal=USR1", job)  # as --signal=B:USR1 does before the time is over
    assert runs.stoker("wait", code=75).out == f"run {runs.run.name}: stopped (stopped after a checkpoint)\n"
    assert [runs.log(0), runs.log(1)] == ["saved\n", "saved\n"]


@pytest.mark.soak
def test_before_its_time_is_over_a_run_stops_after_a_checkpoint(runs: Runs):
    runs.job(f"trap '{SAVE}' USR1; sleep 300 & wait", "nodes: 2, time: 1m", "checkpoint: {before_end: 10s}\n")
    runs.submit()
    # Slurm's word may come up to a minute before ours.
    assert f"run {runs.run.name}: stopped (stopped after a checkpoint" in runs.wait(code=75)
    assert [runs.log(0), runs.log(1)] == ["saved\n", "saved\n"]


@pytest.mark.soak
def test_a_run_reports_its_time_limit(runs: Runs):
    runs.job("trap '' TERM USR1; while :; do sleep 1; done", "nodes: 2, time: 1m", "timeouts: {grace: 3s}\n")
    runs.submit()
    assert runs.wait(code=124).startswith(f"run {runs.run.name}: timeout (")
    assert runs.status()["state"] == "timeout"


@pytest.mark.soak
def test_a_requeued_job_is_the_next_attempt_of_its_run(runs: Runs):
    runs.job("[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || sleep 300; echo attempt $(basename $STOKER_ATTEMPT_DIR)")
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "all ranks sleep")
    runs.lab.run("scontrol", "requeue", job)
    assert runs.stoker("wait").out == f"run {runs.run.name}: done\n"
    assert runs.log(1, attempt=2) == "attempt 2\n"
    now = runs.status()
    assert (now["job"], now["attempts"]) == (job, 2)


def test_sbatch_errors_name_the_job_file_key_and_leave_no_run(runs: Runs):
    runs.job("true", "nodes: 1", "slurm: {partition: fast}")
    refused = runs.stoker("submit", "job.yaml", code=2).err
    output = "invalid partition specified: fast; Invalid partition name specified (slurm.partition, job.yaml:4:20)"
    assert refused == f"sbatch: {output}\n"
    assert runs.stoker("status", "last", code=1).err.startswith("run 'last': ")
    runs.stoker("submit", "job.yaml", "--set", "slurm.partition=cpu")
    assert runs.stoker("wait").out == f"run {runs.run.name}: done\n"


UNAVAILABLE = "Requested node configuration is not available"


@pytest.mark.parametrize(
    ("resources", "slurm", "complaint"),
    [
        ("gpus_per_rank: 9", "", f"{UNAVAILABLE} (resources.gpus_per_rank, job.yaml:3:28)"),
        (
            "nodes: 2, memory_per_node: 4TiB",
            "",
            f"Memory specification can not be satisfied; {UNAVAILABLE} (resources.memory_per_node, job.yaml:3:40)",
        ),
        ("nodes: 1", "reservation: course", "Requested reservation is invalid (slurm.reservation, job.yaml:4:22)"),
        ("nodes: 1", "extra: [--constraint=v100]", "Invalid feature specification (slurm.extra, job.yaml:4:16)"),
        ("nodes: 1", "extra: [--nodelist=n9]", "Invalid node name specified (slurm.extra, job.yaml:4:16)"),
        (
            "nodes: 1",
            "extra: [--nonsense=1]",
            "unrecognized option '--nonsense=1'; Try \"sbatch --help\" for more information (slurm.extra, job.yaml:4:16)",
        ),
    ],
)
def test_a_refusal_names_what_the_job_asked_for(runs: Runs, resources: str, slurm: str, complaint: str):
    runs.job("true", resources, f"slurm: {{{slurm}}}")
    assert runs.stoker("submit", "job.yaml", code=2).err == f"sbatch: {complaint}\n"
    assert runs.lab.run("squeue", "--noheader").out == ""


def test_a_job_that_can_never_start_is_reported(runs: Runs):
    runs.job("true", "nodes: 40")
    refused = runs.stoker("submit", "job.yaml", code=2).err
    assert "resources.nodes: 40 requested, but partition 'cpu' has " in refused
    assert "stoker submit --force submits it anyway" in refused
    assert not runs.stoker("status", "--json").out.count('"state"')
    runs.submit("--force")
    why = "PartitionConfig: its partition does not allow its request: it will never start"
    wait_until(lambda: runs.status()["reason"] == why, "the reason is known")
    given_up = runs.stoker("wait", "--timeout", "1s", code=1)
    assert given_up.err == f"queued ({why})\nrun {runs.run.name}: still queued ({why})\n"
    runs.stoker("cancel", "--last")


def test_a_submission_killed_after_sbatch_loses_no_job(runs: Runs, wrapper):
    path = wrapper("sbatch", f'PATH="{os.environ["PATH"]}"; sbatch "$@" >/dev/null; kill -9 $PPID')
    runs.job("echo ran")
    killed = runs.stoker("submit", "job.yaml", code=-9, env={"PATH": path})
    assert killed.out == ""
    assert re.fullmatch(r"\d+", runs.status()["job"] or "")
    assert runs.stoker("wait").out == f"run {runs.run.name}: done\n"
    assert runs.log(0) == "ran\n"


def test_a_job_that_ends_before_its_ranks_points_to_its_log(runs: Runs):
    (runs.folder / "work").mkdir()
    runs.job("true", "nodes: 1", "working_directory: work\nslurm: {extra: [--hold]}")
    job = runs.submit()
    (runs.folder / "work").rmdir()
    runs.lab.run("scontrol", "release", job)
    output = runs.stoker("wait", code=1).out
    assert output == (
        f"run {runs.run.name}: failed (job {job} ended before a rank started: its log is slurm.log in the attempt's folder)\n"
    ) or re.fullmatch(rf"run {runs.run.name}: failed \(job {job} ended with exit code 1 before .*\)\n", output)
    assert "working_directory: " in runs.batch_log()
    assert "working_directory: " in runs.stoker("logs").out


HOSTILE = """we"ird $(touch pwned) `touch pwned` 'é' %j #x;touch pwned"""


def test_no_name_reaches_a_shell(runs: Runs):
    runs.folder = runs.folder / HOSTILE
    runs.folder.mkdir()
    variable = json.dumps(HOSTILE + "\n#SBATCH --nodes=4\ntouch pwned")
    runs.job(
        'echo "$NOTE"; pwd',
        "nodes: 1",
        f"environment: {{variables: {{NOTE: {variable}}}}}\nslurm: {{extra: ['--mcs-label=a\"b$(touch pwned)']}}",
    )
    runs.stoker("submit", "job.yaml", "--set", "slurm.extra=--nice=1")
    runs.stoker("wait")
    assert runs.log(0) == f"{HOSTILE}\n#SBATCH --nodes=4\ntouch pwned\n{runs.folder}\n"
    assert runs.batch_log() != ""
    assert list(runs.lab.shared.rglob("pwned")) == []


def test_a_job_in_a_job_inherits_nothing_of_it(runs: Runs):
    runs.job(PLACE, "nodes: 2, ranks_per_node: 1, cpus_per_rank: 2")
    outer = ["salloc", "-N1", "-n1", "-w", "n4", "--mem=100"]
    runs.lab.run(*outer, "stoker", "submit", "job.yaml", cwd=runs.folder, env={"SBATCH_TIMELIMIT": "nonsense"})
    runs.stoker("wait")
    assert runs.log(1) == "1/2 0/1 node 1 n2 threads 2\n"


def test_run_in_an_allocation_starts_the_ranks_on_all_its_nodes(runs: Runs):
    runs.job("echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE node $NODE_RANK $SLURMD_NODENAME", "nodes: 4")
    done = runs.lab.run("salloc", "-N4", "stoker", "run", "job.yaml", cwd=runs.folder)
    assert sorted(line.removeprefix(f"[{line[1]}] ") for line in done.out.splitlines() if "/4" in line) == [
        f"{rank}/4 0/1 node {rank} n{rank + 1}" for rank in range(4)
    ]
    failing = runs.job("exit $((RANK * 3))", "nodes: 2")
    done = runs.lab.run("salloc", "-w", "n[1-2]", "stoker", "run", failing, cwd=runs.folder, code=None)
    assert done.err.count("rank 1 (n2) exited after") == 1


def controller_of(lab: Lab) -> int:
    mark = f"SLURM_CONF={lab.env['SLURM_CONF']}\0".encode()
    pids = subprocess.run(["pgrep", "-x", "slurmctld"], capture_output=True, text=True).stdout.split()
    (pid,) = [int(pid) for pid in pids if mark in Path(f"/proc/{pid}/environ").read_bytes()]
    return pid


@pytest.mark.soak
def test_a_frozen_controller_is_reported_within_the_timeout(runs: Runs):
    runs.job("true", "nodes: 1", "slurm: {extra: [--hold]}")
    job = runs.submit()
    controller = controller_of(runs.lab)
    os.kill(controller, signal.SIGSTOP)
    try:
        began = time.monotonic()
        now = runs.status()
        assert time.monotonic() - began < 15
        assert now["state"] == "unknown"
        assert now["reason"] == f"submitted as job {job}; squeue: no answer within 10 s"
    finally:
        os.kill(controller, signal.SIGCONT)
    assert runs.status()["state"] == "queued"
