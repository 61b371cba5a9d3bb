"""What goes wrong with a rank: named with host and place, everybody ended, the exit code kept, no process left."""

import json
import os
import re
import resource
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest
from running import Job, finish, python, wait_for

HOST = socket.gethostname().split(".")[0]
AFTER = r"exited after [\d.]+ m?s"


def final_lines(err: str) -> list[str]:
    """The final lines of stderr, from the last one that begins with "rank"."""
    lines = err.splitlines()
    start = max(i for i, line in enumerate(lines) if line.startswith("rank "))
    return lines[start:]


def test_a_failed_rank_is_named_with_its_last_output(stoker, tmp_path):
    text = (
        "import os, time\nif os.environ['RANK'] == '1':\n    raise ValueError('no such class: 11')\ntime.sleep(600)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    start = time.monotonic()
    result = stoker("run", "job.yaml", code=1)
    assert time.monotonic() - start < 100
    words = final_lines(result.err)
    assert re.fullmatch(rf"rank 1 \({HOST}\) {AFTER}: exit code 1", words[0])
    log = f"runs/{job.run_folder().name}/attempts/1/rank-0001.log"
    assert words[1:] == [
        f"  last output: ValueError: no such class: 11   ({log})",
        "  rank 0 stopped; no checkpoint yet",
    ]
    assert not job.processes()


def test_a_run_that_cannot_start_fails_with_a_reason(stoker, tmp_path):
    job = Job(tmp_path, "sleep 600", 20)
    limit = (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    result = stoker("run", "job.yaml", code=3, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
    reason = result.err.splitlines()[-1]
    assert reason.endswith("too many open files")
    (run,) = json.loads(stoker("status", "last", "--json", code=0).out)["runs"]
    assert (run["state"], run["exit_code"], run["reason"]) == ("failed", 3, reason)
    wait_for(lambda: not job.processes())


def test_the_exit_code_of_the_first_failed_rank_is_returned(stoker, tmp_path):
    # Rank 2 fails because of rank 1, a moment later and with another code.
    wait = "until test -s $STOKER_ATTEMPT_DIR/rank-0001.log; do sleep 0.01; done; sleep 0.05"
    job = Job(tmp_path, f"{{shell: 'case $RANK in 1) echo x; exit 7;; 2) {wait}; exit 9;; esac; sleep 600'}}", 4)
    result = stoker("run", "job.yaml", code=7)
    words = final_lines(result.err)
    assert re.fullmatch(rf"rank 1 \({HOST}\) {AFTER}: exit code 7", words[0])
    assert words[2] in (
        "  ranks 0, 3 stopped; rank 2 failed later; no checkpoint yet",
        "  ranks 0, 2, 3 stopped; no checkpoint yet",
    )
    assert not job.processes()


@pytest.mark.parametrize(("number", "name"), [(signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV")])
def test_a_killed_rank_is_named_with_the_signal(stoker, tmp_path, number, name):
    job = Job(tmp_path, "sleep 600")
    process = stoker.start("run", "job.yaml")
    os.kill(wait_for(lambda: job.pid(1, "sleep")), number)
    code, err = finish(process)
    assert code == 128 + number
    assert re.fullmatch(rf"rank 1 \({HOST}\) {AFTER}: killed by signal {int(number)} \({name}\)", err[1])
    assert err[2] == "  rank 0 stopped; no checkpoint yet"
    assert not job.processes()


def test_a_killed_rank_is_the_cause_even_if_its_peer_is_reported_first(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'test $RANK = 1 || exec sleep 600; until test -e go; do sleep 0.01; done; exit 1'}")
    process = stoker.start("run", "job.yaml")
    victim = wait_for(lambda: job.pid(0, "sleep"))
    watcher = int(Path(f"/proc/{victim}/stat").read_text().rpartition(")")[2].split()[1])  # its `stoker rank`
    os.kill(watcher, signal.SIGSTOP)
    os.kill(victim, signal.SIGKILL)
    (tmp_path / "go").touch()
    events = job.run_folder() / "attempts/1/events-node-0000.jsonl"
    wait_for(lambda: '"stopping"' in events.read_text())
    os.kill(watcher, signal.SIGCONT)
    code, err = finish(process)
    assert code == 137
    assert re.fullmatch(rf"rank 0 \({HOST}\) {AFTER}: killed by signal 9 \(SIGKILL\)", err[1])
    assert err[2] == "  rank 1 failed later; no checkpoint yet"


# A rank that reports its position as a trainer does, in backward of step 118 of epoch 3, counted from 0 (docs/formats/run.md#beacon).
BEACON = (
    "import os, struct, sys, time\n"
    "rank = int(os.environ['RANK'])\n"
    "with open(os.environ['STOKER_ATTEMPT_DIR'] + f'/rank-{rank:04}.beacon', 'wb') as f:\n"
    "    block = struct.pack('<8sIIqQQQQqq', b'STKBEACN', 1, rank, os.getpid(), 2, 3 | 3 << 32, 118, 9, 0, 0)\n"
    "    f.write(block.ljust(4096, b'\\0'))\n"
)


def test_the_position_in_the_training_is_reported(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", BEACON + "if rank == 1: os.kill(os.getpid(), 9)\ntime.sleep(600)\n"))
    result = stoker("run", "job.yaml", code=137)
    assert final_lines(result.err)[0] == (
        f"rank 1 ({HOST}) exited at epoch 4 step 118, phase backward: killed by signal 9 (SIGKILL)"
    )
    events = [json.loads(line) for line in (job.run_folder() / "attempts/1/events-node-0000.jsonl").open()]
    (ended,) = (e for e in events if e["kind"] == "rank_ended" and e["rank"] == 1)
    assert (ended["phase"], ended["epoch"], ended["step"], ended["signal"]) == ("backward", 3, 118, 9)


def test_a_silent_rank_is_reported_before_it_is_stopped(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", BEACON + "time.sleep(600)\n"), 1, more="timeouts: {stall: 12s}\n")
    result = stoker("run", "job.yaml", code=1)
    place = "at epoch 4 step 118, phase backward"
    lines = result.err.splitlines()
    assert re.fullmatch(
        rf"rank 0 \({HOST}\) has been silent for 1\d s {place}: no step, no CPU time; "
        r"the run ends after 12 s \(timeouts.stall\)",
        lines[1],
    )
    assert re.fullmatch(rf"rank 0 \({HOST}\) made no progress for 1\d s {place} \(timeouts.stall\)", lines[2])
    assert not job.processes()


def test_a_stopped_rank_is_named_within_10_s_and_the_run_ends(stoker, tmp_path):
    job = Job(tmp_path, "sleep 600")
    process = stoker.start("run", "job.yaml")
    os.kill(wait_for(lambda: job.pid(1, "sleep")), signal.SIGSTOP)
    start = time.monotonic()
    code, err = finish(process)
    assert time.monotonic() - start < 100
    assert code == 1
    who = rf"rank 1 \({HOST}\)"
    assert re.fullmatch(
        rf"{who} has been stopped by a signal \(state T\) for [\d.]+ s; the run ends after 5.0 s \(timeouts.stopped\)",
        err[1],
    )
    assert re.fullmatch(rf"{who} was stopped by a signal \(state T\) for [\d.]+ s \(timeouts.stopped\)", err[2])
    assert err[3] == "  rank 0 stopped; no checkpoint yet"
    assert not job.processes()


def test_a_stopped_rank_may_continue(stoker, tmp_path):
    job = Job(tmp_path, "sleep 8", more="timeouts: {stopped: 1m}\n")
    process = stoker.start("run", "job.yaml")
    pid = wait_for(lambda: job.pid(1, "sleep"))
    os.kill(pid, signal.SIGSTOP)
    time.sleep(5)
    os.kill(pid, signal.SIGCONT)
    code, err = finish(process)
    assert code == 0
    assert err[2] == f"rank 1 ({HOST}) continues"


def test_a_rank_with_a_killed_supervisor_is_named_and_leaves_no_process(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'setsid sleep 601 & sleep 600'}")
    process = stoker.start("run", "job.yaml")
    pid = wait_for(lambda: job.pid(1, "sleep"))
    parents = []
    while (comm := Path(f"/proc/{pid}/comm").read_text().strip()) != "stoker":
        parents.append(comm)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    code, err = finish(process)
    assert code == 137
    assert err[1] == f"rank 1 ({HOST}) was lost: its `stoker rank` was killed by signal 9 (SIGKILL)"
    assert not job.processes()


def test_a_missing_command_never_started(stoker, tmp_path):
    job = Job(tmp_path, "no-such-command --lr 1", 1)
    result = stoker("run", "job.yaml", code=127)
    assert final_lines(result.err) == [
        f"rank 0 ({HOST}) never started: no-such-command: command not found in PATH",
        "  no checkpoint yet",
    ]
    assert not job.processes()


def test_a_command_that_cannot_be_executed_never_started(stoker, tmp_path):
    (tmp_path / "plain").write_text("not a program")
    (tmp_path / "noexec").write_text("#!/nowhere/python\n")
    (tmp_path / "noexec").chmod(0o755)
    Job(tmp_path, "./plain", 1)
    result = stoker("run", "job.yaml", code=126)
    assert final_lines(result.err)[0] == f"rank 0 ({HOST}) never started: ./plain: permission denied"
    Job(tmp_path, "./noexec", 1)
    result = stoker("run", "job.yaml", code=127)
    assert final_lines(result.err)[0] == (
        f"rank 0 ({HOST}) never started: ./noexec: its first line names the interpreter '/nowhere/python', which does not exist"
    )
    (tmp_path / "noexec").write_bytes(b"#!/bin/sh\r\nexit 0\r\n")
    result = stoker("run", "job.yaml", code=127)
    assert final_lines(result.err)[0] == (
        f"rank 0 ({HOST}) never started: ./noexec: its first line names the interpreter '/bin/sh\\r', which does not exist: "
        "the file has Windows line ends"
    )
    Job(tmp_path, "/tmp", 1)
    result = stoker("run", "job.yaml", code=126)
    assert final_lines(result.err)[0] == f"rank 0 ({HOST}) never started: /tmp: expected a program, got a folder"


def test_a_missing_rank_is_named(stoker, tmp_path):
    # A stand-in for an srun that starts one task of two.
    srun = tmp_path / "bin/srun"
    srun.parent.mkdir()
    srun.write_text(
        '#!/bin/bash\nwhile [ "${1#--}" != "$1" ]; do shift; done\n'
        'SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 exec "$@"\n'
    )
    srun.chmod(0o755)
    job = Job(tmp_path, "sleep 600", more="timeouts: {start: 1s, grace: 1s}\n")
    allocation = {"PATH": f"{srun.parent}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[17]"}
    result = stoker("run", "job.yaml", code=3, env=allocation)
    words = final_lines(result.err)
    assert words[0] == "rank 1 (n17) did not join within 1.0 s (timeouts.start)"
    assert not job.processes()


def test_worlds_of_one_are_rejected(stoker, tmp_path):
    # An srun without a task count: each process believes it is alone.
    srun = tmp_path / "bin/srun"
    srun.parent.mkdir()
    srun.write_text(
        '#!/bin/bash\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexport SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0\n'
        '"$@" & "$@" & wait\n'
    )
    srun.chmod(0o755)
    job = Job(tmp_path, "sleep 600")
    allocation = {"PATH": f"{srun.parent}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1"}
    result = stoker("run", "job.yaml", code=2, env=allocation)
    words = final_lines(result.err)
    assert re.fullmatch(
        rf"rank 0 \({HOST}, process \d+\): was started with a world size of 1, this run has 2", words[0]
    )
    assert words[1] == "  try: start all ranks with a single `stoker run`"
    assert not job.processes()


def test_a_daemon_left_by_a_rank_is_reported_and_stopped(stoker, tmp_path):
    text = (
        "import os, time\n"
        "if os.environ['RANK'] == '1' and os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "time.sleep(0.3)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    result = stoker("run", "job.yaml", code=0)
    assert re.search(
        rf"^rank 1 \({HOST}\) left processes behind, now killed: python3\S* \(process \d+\)$", result.err, re.M
    )
    assert not job.processes()


def test_a_stubborn_rank_is_killed_after_the_grace_time(stoker, tmp_path):
    text = (
        "import os, signal, subprocess, sys, time\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
        "if os.environ['RANK'] == '0':\n"
        "    subprocess.Popen(['setsid', 'sleep', '600'])\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
        "time.sleep(0.5)\n"
        "sys.exit(5)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text), more="timeouts: {grace: 2s}\n")
    start = time.monotonic()
    stoker("run", "job.yaml", code=5)
    assert 2 < time.monotonic() - start < 100  # rank 0 sleeps for 600 s
    assert not job.processes()


def test_a_rank_without_progress_is_stopped_after_the_limit(stoker, tmp_path):
    job = Job(tmp_path, "sleep 600", 1, more="timeouts: {stall: 3s}\n")
    result = stoker("run", "job.yaml", code=1)
    assert re.fullmatch(
        rf"rank 0 \({HOST}\) made no progress for [\d.]+ s \(timeouts.stall\)", final_lines(result.err)[0]
    )
    assert not job.processes()


def test_a_computing_rank_is_not_silent(stoker, tmp_path):
    text = "import time\nend = time.time() + 5\nwhile time.time() < end: pass\n"
    Job(tmp_path, python(tmp_path, "p.py", text), 1, more="timeouts: {stall: 2s}\n")
    stoker("run", "job.yaml", code=0)


@pytest.mark.needs("mount")
def test_a_full_disk_under_the_log_loses_output_not_the_run(stoker, tmp_path, tmpfs):
    disk = tmpfs("1M")
    text = "import sys\nfor _ in range(4000):\n    sys.stdout.write('z' * 999 + '\\n')\n"
    Job(tmp_path, python(tmp_path, "p.py", text), 1, more=f"record: {{directory: {disk}}}\n")
    result = stoker("run", "job.yaml", code=0)
    assert result.out.count("\n") == 4000
    assert re.search(
        rf"^rank 0 \({HOST}\): \S+/rank-0000.log: no space left on device; [\d.]+ MB of output are missing$",
        result.err,
        re.M,
    )


@pytest.mark.needs("root")
def test_a_read_only_folder_is_reported(stoker, open_folder):
    job = Job(open_folder, "'true'", 1)
    (open_folder / "runs").mkdir(mode=0o755)
    result = stoker("run", "job.yaml", code=2, cwd=open_folder, user=65534)
    assert re.fullmatch(rf"{open_folder}/runs/\S+: permission denied\n", result.err)
    assert not job.processes()


@pytest.mark.needs("mount")
def test_a_full_disk_leaves_no_run(stoker, tmp_path, tmpfs):
    disk = tmpfs("1M")
    with suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
        while filler.write(b"0" * 4096):
            pass
    Job(tmp_path, "'true'", 1, more=f"record: {{directory: {disk}/runs}}\n")
    result = stoker("run", "job.yaml", code=1)
    assert "no space left on device" in result.err
    listed = json.loads(stoker("status", "--runs", disk / "runs", "--json", code=0).out)["runs"]
    assert all(run["state"] == "damaged" for run in listed)
