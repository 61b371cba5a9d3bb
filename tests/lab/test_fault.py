"""Every fault has its documented effect, observed in a job or in Slurm, and heals."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_jobs import (
    Job,
    fault,
    in_force,
    refusal,
    start_probe,
    start_trapping,
    submit,
    wait_for_written_state,
)
from running import wait_until

pytestmark = pytest.mark.needs("slurm", "namespaces")


@pytest.fixture
def job(lab) -> Job:
    """A job of two tasks, on n1 and n2, that reports the state of its network."""
    return start_probe(lab, "n1,n2")


def test_a_cut_cable_lets_no_packet_through(lab, job):
    job.next_network(lambda n: n["tcp"] is not None and n["udp"] == 50, "the network is healthy")
    assert fault(lab, "cut", "n2") == "n2: link down (stoker lab fault heal n2)"
    job.next_network(lambda n: n["tcp"] is None and n["udp"] == 0, "the network is cut")
    assert job.beats(1)
    assert refusal(lab, "cut", "n2", code=1).startswith("n2: link down since ")
    assert fault(lab, "heal", "n2") == "n2: link up"
    job.next_network(lambda n: n["tcp"] is not None and n["udp"] == 50, "the network is healthy again")


def test_a_slow_cable_slows_what_passes(lab, job):
    output = fault(lab, "slow", "n2", "--rate", "1mbit")
    assert output == "n2: link slowed each way: 1mbit (stoker lab fault heal n2)"
    # 100 kB less a burst of 16 kB at 1 Mbit/s.
    job.next_network(lambda n: n["tcp"] is not None and n["tcp"] > 0.6, "100 kB take long")
    assert fault(lab, "heal", "n2") == "n2: link at full speed"
    job.next_network(lambda n: n["tcp"] is not None and n["tcp"] < 0.5, "100 kB are quick again")


def test_a_lossy_cable_loses_packets(lab, job):
    output = fault(lab, "slow", "n2", "--loss", "50%")
    assert output == "n2: link slowed each way: 50 % of packets lost (stoker lab fault heal n2)"
    job.next_network(lambda n: 0 < n["udp"] < 35, "a quarter of the packets come back")
    assert fault(lab, "heal", "n2") == "n2: link at full speed"
    job.next_network(lambda n: n["udp"] == 50, "all packets come back")


def kernel_can_delay() -> bool:
    tried = subprocess.run(
        ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "0ms"], capture_output=True, text=True
    )
    if tried.returncode == 0:
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)
    return tried.returncode == 0


def test_a_link_delays_if_the_kernel_supports_it_and_reports_it_otherwise(lab, job):
    if not kernel_can_delay():
        assert refusal(lab, "slow", "n2", "--delay", "20ms", code=3) == (
            "n2: this kernel cannot delay packets (--delay; it has no sch_netem)\n"
            "  try: stoker lab fault slow n2 --rate 10mbit\n"
        )
        assert in_force(lab) == []
        return
    output = fault(lab, "slow", "n2", "--delay", "400ms")
    assert output == "n2: link slowed each way: 400ms later (stoker lab fault heal n2)"
    job.next_network(lambda n: n["tcp"] is not None and n["tcp"] > 0.8, "a round trip takes long")


def test_a_frozen_rank_stops_and_continues(lab, job):
    output = fault(lab, "freeze", job.id, "--rank", "1")
    assert output == f"{job.id}: rank 1 on n2 frozen (stoker lab fault heal {job.id})"
    assert not job.beats(1, 1)
    assert job.beats(0)
    assert job.state() == "RUNNING"
    assert fault(lab, "heal", job.id) == f"{job.id}: rank 1 continues"
    assert job.beats(1)


def test_a_full_local_disk_refuses_writes_on_that_node_only(lab):
    # Each node tries on request, and reports the result in a file named after the node and the attempt.
    script = """srun bash -c 'for try in 1 2 3; do
      until [ -e try-$try ]; do sleep 0.05; done
      head -c 1M /dev/zero > $SLURM_TMPDIR/file-$try && result=ok || result=full
      echo $result > new-$SLURMD_NODENAME; mv new-$SLURMD_NODENAME disk-$SLURMD_NODENAME-$try
    done'"""
    job = submit(lab, script, "--nodes=2", "--ntasks-per-node=1", "--nodelist=n2,n4")

    def disks(number: int) -> dict[str, str]:
        (job.folder / f"try-{number}").touch()
        files = {node: f"disk-{node}-{number}" for node in ("n2", "n4")}
        wait_until(lambda: all(job.has(file) for file in files.values()), "both nodes tried their disk")
        return {node: job.read(file).strip() for node, file in files.items()}

    assert disks(1) == {"n2": "ok", "n4": "ok"}
    assert re.fullmatch(
        r"n2: local disk full \(2\d\d MB taken\) \(stoker lab fault heal n2\)", fault(lab, "fill", "n2")
    )
    assert disks(2) == {"n2": "full", "n4": "ok"}
    assert "No space left on device" in job.read("log")
    assert re.fullmatch(r"n2: 2\d\d MB free", fault(lab, "heal", "n2"))
    assert disks(3) == {"n2": "ok", "n4": "ok"}


def test_a_large_disk_of_the_host_is_not_filled(lab):
    output = refusal(lab, "fill", "shared")
    assert output.startswith("shared: the shared disk is a folder of this host with ")
    assert output.endswith(
        " free: filling it would fill the host (limit 2GiB)\n"
        "  try: STOKER_LAB_DIR=/a/small/disk stoker lab up     (or: --mode namespaces, and a node's disk)\n"
    )


def test_a_drained_node_finishes_its_jobs_and_gets_no_more(lab, job):
    output = fault(lab, "drain", "n2")
    assert output == "n2: drained: its jobs continue, no job starts there (stoker lab fault heal n2)"
    assert "drain" in lab.run("sinfo", "-h", "-n", "n2", "-o", "%T").out
    later = submit(lab, "hostname", "--nodelist=n2")
    wait_until(lambda: "Node" in lab.run("squeue", "-h", "-j", later.id, "-o", "%r").out, "the job waits for the node")
    assert job.beats(1)
    assert refusal(lab, "drain", "n2", code=1).startswith("n2: drained since ")
    assert fault(lab, "heal", "n2") == "n2: accepts jobs again"
    later.wait("COMPLETED")
    assert later.read("log") == "n2\n"


def test_a_step_over_its_memory_is_killed_with_the_reason_in_its_log(lab, job):
    output = fault(lab, "oom", job.id)
    assert output == (
        f"{job.id}: step {job.id}.1 used 256M instead of 64M and was killed;"
        " without cgroups only its log shows the reason (nothing to heal)"
    )
    assert in_force(lab) == []
    log = lab.folder / "log/slurmd-n1.log"
    assert f"StepId={job.id}.1 exceeded memory limit" in log.read_text()
    assert job.state() == "RUNNING"


def test_a_limit_that_is_still_ahead_can_be_given_back(lab, job):
    limit = lab.run("squeue", "-h", "-j", job.id, "-o", "%l").out.strip()
    output = fault(lab, "expire", job.id, "--after", "10m")
    assert output == f"{job.id}: time limit expires in 600 s (was {limit}) (stoker lab fault heal {job.id})"
    end = lab.run("squeue", "-h", "-j", job.id, "-o", "%e", env={"SLURM_TIME_FORMAT": "%s"}).out
    assert time.time() + 500 < float(end) < time.time() + 601
    assert fault(lab, "heal", job.id) == f"{job.id}: time limit is {limit} again"
    assert lab.run("squeue", "-h", "-j", job.id, "-o", "%l").out.strip() == limit


@pytest.mark.parametrize(("verb", "done"), [("kill", "killed"), ("freeze", "frozen")])
def test_a_node_without_its_daemon_starts_nothing_and_its_jobs_run_on(lab, job, verb, done):
    output = fault(lab, verb, "n2")
    assert output == (
        f"n2: slurmd {done}: its jobs continue until Slurm marks the node down (stoker lab fault heal n2)"
    )
    later = submit(lab, "hostname", "--nodelist=n2", "--ntasks=1")
    assert job.beats(1, 2)
    assert not later.has("log")
    assert fault(lab, "heal", "n2") == "n2: slurmd answers"
    again = submit(lab, "hostname", "--nodelist=n2", "--ntasks=1")
    again.wait("COMPLETED")
    assert again.read("log") == "n2\n"
    assert job.state() == "RUNNING"


@pytest.mark.parametrize(("verb", "done"), [("kill", "killed"), ("freeze", "frozen")])
def test_without_the_controller_jobs_run_on_and_no_command_is_answered(lab, job, verb, done):
    if verb == "kill":
        wait_for_written_state(lab)
    output = fault(lab, verb, "controller")
    assert output == (
        f"controller: slurmctld {done}: jobs continue, no job starts, commands get no answer"
        " (stoker lab fault heal controller)"
    )
    assert lab.run("timeout", "1", "squeue", code=124).out == ""
    assert job.beats(0) and job.beats(1)
    assert refusal(lab, "drain", "n1", code=3) == (
        "LAB: the controller does not answer (it has an active fault)\n  try: stoker lab fault heal controller\n"
    )
    assert fault(lab, "heal", "controller") == "controller: slurmctld answers"
    assert job.state() == "RUNNING"


def test_faults_are_listed_and_healed_by_any_other_process(lab, job):
    fault(lab, "cut", "n3")
    fault(lab, "freeze", "n4")
    fault(lab, "freeze", job.id, "--rank", "0")
    listed = fault(lab)
    assert re.search(r"^n3 +cut +\d.*link down$", listed, re.MULTILINE)
    assert re.search(rf"^{job.id} rank 0 +freeze +\d.*rank 0 on n1 frozen$", listed, re.MULTILINE)
    assert [(f["kind"], f["target"], f["rank"]) for f in in_force(lab)] == [
        ("cut", "n3", None),
        ("freeze", "n4", None),
        ("freeze", job.id, 0),
    ]
    assert refusal(lab, "heal", "n1", code=1) == f"n1: nothing to heal in LAB (active: n3, n4, {job.id})\n"
    assert fault(lab, "heal") == f"n3: link up\nn4: slurmd answers\n{job.id}: rank 0 continues"
    assert fault(lab, "heal") == "LAB: no active faults"


@pytest.mark.parametrize("is_submitted", [False, True], ids=["before", "after"])
def test_what_a_killed_command_left_half_done_heals(lab, tmp_path, is_submitted):
    victim = start_trapping(lab, "--nodelist=n3", "--partition=low")
    # The command dies inside its call of sbatch.
    real = lab.sh("command -v sbatch").out.strip()
    fake = tmp_path / "sbatch"
    submits = f'{real} "$@" > /dev/null' if is_submitted else ":"
    fake.write_text(f"#!/bin/bash\n{submits}\nkill -9 $PPID\n")
    fake.chmod(0o755)
    fault(lab, "preempt", victim.id, code=-9, env={"PATH": f"{tmp_path}:{lab.env['PATH']}"})
    (entry,) = in_force(lab)
    assert (entry["kind"], entry["target"]) == ("preempt", victim.id)

    def preempting() -> str:
        return lab.run("squeue", "-h", "-p", "cpu", "-o", "%T").out

    assert (preempting() != "") == is_submitted
    assert fault(lab, "heal") == f"{victim.id}: the job that preempted it is cancelled"
    wait_until(lambda: preempting() == "", "it is cancelled")
    assert in_force(lab) == []
    (victim.folder / "stop").touch()


def test_a_killed_rank_exits_and_its_peers_stay(lab):
    job = start_probe(lab, "n3,n4")
    assert refusal(lab, "kill", job.id) == f"{job.id}: --rank N is required\n"
    assert refusal(lab, "kill", job.id, "--rank", "7") == f"{job.id}: has no rank 7 (ranks 0-1 run)\n"
    assert fault(lab, "kill", job.id, "--rank", "1") == f"{job.id}: rank 1 on n4 killed (signal 9) (nothing to heal)"
    wait_until(lambda: "error: n4: task 1: Killed" in job.read("log"), "srun reports it")
    assert not job.beats(1, 0.5)
    assert job.beats(0)


def test_impossible_faults_have_exact_errors(lab, job, stoker):
    assert refusal(lab, "cut", "n9", code=1) == "n9: no such node in LAB (available: n1, n2, n3, n4)\n"
    assert refusal(lab, "expire", "99999", code=1) == "99999: no such job in LAB\n"
    assert refusal(lab, "preempt", "n1") == "n1: not a job id\n"
    assert refusal(lab, "preempt", job.id) == (
        f"{job.id}: runs in partition 'cpu', which has no preemption\n  try: sbatch --partition low ...\n"
    )
    assert refusal(lab, "oom", job.id, "--rank", "1") == f"{job.id}: oom applies to a whole job (--rank 1)\n"
    assert refusal(lab, "kill", "n1", "--rank", "1") == "n1: has no ranks (--rank 1)\n"
    assert refusal(lab, "cutt", "n1") == "unknown fault 'cutt'; did you mean 'cut'?\n  try: stoker lab fault\n"
    assert refusal(lab, "cut") == "cut: needs a target (NODE)\n  try: stoker lab fault\n"
    assert refusal(lab, "cut", "n1", "--rate", "1mbit") == "lab fault cut: --rate, --delay and --loss need slow\n"
    assert refusal(lab, "cut", "n1", "--after", "1s") == "lab fault cut: --after needs expire\n"
    assert refusal(lab, "slow", "n1", "--rate", "fast") == (
        "lab fault: --rate: 'fast' is not a rate (as in 500kbit, 10mbit or 1gbit)\n"
    )
    assert refusal(lab, "slow", "n1", "--loss", "2") == (
        "lab fault: --loss: '2' is not a share of packets (as in 1% or 0.5%)\n"
    )
    done = submit(lab, "true", "--ntasks=1")
    done.wait("COMPLETED")
    assert refusal(lab, "expire", done.id) == f"{done.id}: not running (COMPLETED)\n"
    nowhere = stoker("lab", "fault", "cut", "n1", "--name", "nowhere", code=1).err
    assert nowhere.startswith("nowhere: no such lab") and nowhere.endswith("  try: stoker lab up --name nowhere\n")
    assert in_force(lab) == []


@pytest.fixture
def small_disk(open_folder, monkeypatch) -> Iterator[Path]:
    """A disk of 200 MB for labs, its path short enough for Slurm's sockets."""
    folder = open_folder / "l"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200M,mode=755", "none", folder], check=True)
    monkeypatch.setenv("STOKER_LAB_DIR", str(folder))
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.needs("mount")
def test_in_processes_mode_links_stay_and_the_rest_works(small_disk, make_lab):
    lab = make_lab(f"p{os.getpid()}", "--mode", "processes", "--nodes", "2", "--gpus", "0")
    for verb, word in (("cut", "cut"), ("slow", "slowed")):
        assert refusal(lab, verb, "n2") == (
            f"n2: its link cannot be {word}: nodes of LAB share this host's network (mode processes)\n"
            "  try: stoker lab up --mode namespaces     (as root)\n"
        )
    job = start_probe(lab, "n1,n2")
    fault(lab, "freeze", job.id, "--rank", "1")
    assert not job.beats(1, 0.5)
    # The shared disk is small enough to be filled.
    output = fault(lab, "fill", "shared")
    assert re.fullmatch(r"shared: shared disk full \(.* taken\) \(stoker lab fault heal shared\)", output)
    with pytest.raises(OSError, match="No space left"):
        (lab.shared / "file").write_bytes(bytes(1 << 20))
    assert re.fullmatch(rf"{job.id}: rank 1 continues\nshared: .* free", fault(lab, "heal"))
    assert job.beats(1)
    (lab.shared / "file").write_bytes(bytes(1 << 20))
