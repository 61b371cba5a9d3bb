"""status, wait, logs and cancel of jobs without a run, with fake Slurm programs: output, and behaviour if the programs are
slow, garbled, down or missing."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

HEADER = "JOBID|STATE|REASON|START_TIME|END_TIME|PARTITION|NODELIST|USER|NAME"
UNKNOWN = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
NO_ACCOUNTS = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


class Cluster:
    """Fake Slurm programs, each a few lines of shell."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()
        self.program("sacct", NO_ACCOUNTS)
        self.program("squeue", UNKNOWN)
        self.program("scontrol", UNKNOWN)

    def program(self, name: str, text: str) -> None:
        file = self.folder / name
        file.write_text(f'#!/bin/sh\necho "{name} $@" >> {self.folder}/calls\n{text}\n')
        file.chmod(0o755)

    def job(self, state: str, more: str = "", log: Path | None = None) -> None:
        """Job 7, in the formats of squeue and scontrol."""
        self.program("squeue", f"printf '{HEADER}\\n7|{state}|None|1795255200|1795258800|cpu|n1|ada|train\\n'")
        out = f" StdOut={log}" if log else ""
        self.program(
            "scontrol",
            f"echo 'JobId=7 JobName=train UserId=ada(1000) JobState={state} Reason=None {more} "
            f"StartTime=1795255200 EndTime=1795258800 NodeList=n1{out}'",
        )

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "slurm")


def status(stoker, cluster: Cluster, *words: str) -> dict:
    return json.loads(stoker("status", *words, "--json", env=cluster.env, code=0).out)


def test_a_job_without_a_run_has_a_line(stoker, cluster: Cluster):
    cluster.job("FAILED", "ExitCode=7:0")
    out = stoker("status", "7", env=cluster.env, code=0).out.splitlines()
    assert out[0].split() == ["JOB", "STATE", "NAME", "USER", "NODES", "ELAPSED", "NOTE"]
    assert re.split(r"\s{2,}", out[1].strip()) == ["7", "failed", "train", "ada", "n1", "01:00:00", "exit code 7"]
    (job,) = status(stoker, cluster, "7")["jobs"]
    assert (job["state"], job["exit_code"], job["elapsed_s"]) == ("failed", 7, 3600)


ENDINGS = [
    ("COMPLETED", "ExitCode=0:0", 0, "job 7: done\n"),
    ("FAILED", "ExitCode=7:0", 7, "job 7: failed (exit code 7)\n"),
    ("FAILED", "ExitCode=0:9", 137, "job 7: failed (killed by signal 9 (SIGKILL))\n"),
    ("TIMEOUT", "ExitCode=0:15", 124, "job 7: timeout (reached its time limit)\n"),
    ("OUT_OF_MEMORY", "ExitCode=0:125", 137, "job 7: out of memory\n"),
    ("NODE_FAIL", "ExitCode=0:0", 3, "job 7: node failed\n"),
    ("PREEMPTED", "ExitCode=0:15", 3, "job 7: preempted\n"),
    ("CANCELLED", "ExitCode=0:15", 130, "job 7: cancelled\n"),
]


@pytest.mark.parametrize(("state", "more", "code", "output"), ENDINGS)
def test_wait_reports_each_result_as_text_and_exit_code(stoker, cluster: Cluster, state, more, code, output):
    cluster.job(state, more)
    ended = stoker("wait", "7", env=cluster.env)
    assert (ended.code, ended.out) == (code, output)


def test_a_completed_job_with_a_failure_in_its_log_is_reported(stoker, cluster: Cluster, tmp_path: Path):
    log = tmp_path / "slurm-7.out"
    log.write_text("starting\n/var/spool/job7: line 3: trainer: command not found\ncleaning up\n")
    cluster.job("COMPLETED", "ExitCode=0:0", log)
    doubt = "/var/spool/job7: line 3: trainer: command not found"
    ended = stoker("wait", "7", env=cluster.env, code=0)
    assert ended.out == f"job 7: done\n  but slurm-7.out:2: {doubt}\n"
    assert stoker("wait", "7", "--strict", env=cluster.env, code=1).out == ended.out
    assert f"slurm-7.out:2 contains a failure: {doubt}" in stoker("status", "7", env=cluster.env).out
    (job,) = status(stoker, cluster, "7")["jobs"]
    assert job["doubts"] == [{"file": str(log), "line": 2, "text": doubt}]


def test_lack_of_memory_is_read_from_the_log_if_the_state_is_missing(stoker, cluster: Cluster, tmp_path: Path):
    log = tmp_path / "slurm-7.out"
    log.write_text("slurmstepd: error: StepId=7.0 exceeded memory limit (268435456 > 67108864), being killed\n")
    cluster.job("FAILED", "ExitCode=0:9", log)
    assert stoker("wait", "7", env=cluster.env, code=137).out == "job 7: out of memory (took 268 MB of 67.1 MB)\n"


def test_failed_steps_in_accounting_are_reported(stoker, cluster: Cluster):
    cluster.job("COMPLETED", "ExitCode=0:0")
    cluster.program(
        "sacct",
        "printf 'JobID|State|ExitCode|DerivedExitCode\\n7|COMPLETED|0:0|2:0\\n7.batch|COMPLETED|0:0|\\n7.0|FAILED|2:0|\\n'",
    )
    output = "job 7: done (its script exited with 0, but step 7.0: exit code 2)\n"
    assert stoker("wait", "7", env=cluster.env, code=0).out == output
    assert cluster.calls() == ["squeue", "scontrol", "sacct"] * 2


def test_logs_prints_the_log_of_the_batch_script(stoker, cluster: Cluster, tmp_path: Path):
    log = tmp_path / "slurm-7.out"
    log.write_text("epoch 1\nepoch 2\nthe end")
    cluster.job("COMPLETED", "ExitCode=0:0", log)
    assert stoker("logs", "7", env=cluster.env, code=0).out == "epoch 1\nepoch 2\nthe end\n"
    assert stoker("logs", "7", "--grep", "2$", env=cluster.env, code=0).out == "epoch 2\n"
    lines = json.loads(stoker("logs", "7", "--json", env=cluster.env, code=0).out)["lines"]
    assert [line["text"] for line in lines] == ["epoch 1", "epoch 2", "the end"]
    refused = stoker("logs", "7", "--rank", "0", env=cluster.env, code=2)
    assert refused.err == "logs: --rank: job 7 has no ranks, only one log\n"
    cluster.job("COMPLETED", "ExitCode=0:0")
    forgotten = "job 7: unknown log path: Slurm's controller has forgotten the job\n"
    assert stoker("logs", "7", env=cluster.env, code=1).err == forgotten


def test_cancel_calls_scancel_once(stoker, cluster: Cluster):
    cluster.job("RUNNING")
    cluster.program("scancel", "exit 0")
    assert stoker("cancel", "7", "--dry-run", env=cluster.env, code=0).out == "would cancel job 7 (running)\n"
    assert "scancel" not in cluster.calls()
    assert stoker("cancel", "7", env=cluster.env, code=0).out == "cancelling job 7 (running)\n"
    assert cluster.calls().count("scancel") == 1
    cluster.job("COMPLETED", "ExitCode=0:0")
    assert stoker("cancel", "7", env=cluster.env, code=0).out == "job 7: has already ended (done)\n"
    cluster.job("RUNNING")
    cluster.program(
        "scancel", "echo 'scancel: error: Kill job error on job id 7: Access/permission denied' >&2; exit 1"
    )
    denied = "scancel: Kill job error on job id 7: Access/permission denied\n"
    assert stoker("cancel", "7", env=cluster.env, code=2).err == denied


@pytest.mark.parametrize("verb", ["resume", "rerun"])
def test_only_a_run_can_be_resumed(stoker, cluster: Cluster, verb: str):
    cluster.job("FAILED", "ExitCode=7:0")
    refused = stoker(verb, "7", env=cluster.env, code=1).err
    assert refused == (
        "job 7: no run in runs/ has this job; only runs can be resumed or rerun\n  try: stoker status 7\n"
    )


def test_an_unknown_job(stoker, cluster: Cluster):
    output = "job 7: not (or no longer) known to Slurm's controller, and sacct: Slurm accounting storage is disabled\n"
    for verb in ("status", "wait", "logs", "cancel"):
        assert stoker(verb, "7", env=cluster.env, code=1).err == output


def test_without_slurm_a_number_is_an_unknown_run(stoker, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    missing = stoker("status", "7", env={"PATH": tmp_path / "bin"}, code=1).err
    assert missing == "run '7': no runs in runs\n  try: stoker run JOB\n"


def test_every_verb_reports_a_controller_that_is_down(stoker, cluster: Cluster):
    cluster.program(
        "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
    )
    output = "squeue: Unable to contact slurm controller (connect failure)\n"
    for verb in ("status", "logs", "cancel"):
        assert stoker(verb, "7", env=cluster.env, code=3).err == output
    given_up = stoker("wait", "7", "--timeout", "1s", env=cluster.env, code=1).err
    assert given_up == f"job 7: has not ended yet ({output.strip()})\n"


def test_garbled_output_is_an_error(stoker, cluster: Cluster):
    cluster.program("squeue", "head -c 100000 /dev/urandom; echo; echo '7|RUNNING'")
    assert stoker("status", "7", env=cluster.env, code=1).err == "squeue: printed no table of jobs\n"


def test_a_slow_squeue_is_given_up_after_ten_seconds(stoker, cluster: Cluster):
    cluster.program("squeue", "exec sleep 600")
    begin = time.monotonic()
    slow = stoker("status", "7", env=cluster.env, code=1)
    assert time.monotonic() - begin < 100
    assert slow.err == ("squeue: no answer within 10 s\n  try: scontrol ping shows whether Slurm's controller is up\n")


def array(count: int, states: Callable[[int], str]) -> str:
    rows = "\n".join(f"8_{i}|{states(i)}|None|1795255200|1795258800|cpu|n1|ada|sweep" for i in range(count))
    return f"cat <<'END'\n{HEADER}\n{rows}\nEND"


def test_an_array_is_counted_and_its_failures_listed(stoker, cluster: Cluster):
    cluster.program("squeue", array(100, lambda i: {3: "FAILED", 5: "RUNNING"}.get(i, "COMPLETED")))
    out = stoker("status", "8", env=cluster.env, code=0).out.splitlines()
    assert out[0] == "array 8 (100 tasks): 1 running, 98 done, 1 failed"
    assert [line.split()[:2] for line in out[2:]] == [["8_3", "failed"], ["8_5", "running"]]
    assert stoker("logs", "8", env=cluster.env, code=2).err == (
        "logs: array 8 has 100 tasks, each with a log\n  try: stoker logs 8_0\n"
    )


def test_ten_thousand_tasks_need_one_query_and_less_than_a_second(stoker, cluster: Cluster):
    cluster.program("squeue", array(10_000, lambda i: "FAILED" if i % 100 == 0 else "COMPLETED"))
    begin = time.monotonic()
    shown = status(stoker, cluster, "8")
    lasted = time.monotonic() - begin
    assert len(shown["jobs"]) == 10_000
    assert sum(job["state"] == "failed" for job in shown["jobs"]) == 100
    assert shown["scheduler"]["calls"] == 1
    assert lasted < 4  # 1 s on an idle machine: bench/status.py
    out = stoker("status", "8", env=cluster.env, code=0).out.splitlines()
    assert out[0] == "array 8 (10 000 tasks): 9 900 done, 100 failed"
    assert out[-1] == "... and 80 more not done"


def test_a_job_on_a_thousand_nodes_is_shown_as_slurm_writes_it(stoker, cluster: Cluster):
    cluster.program("squeue", f"printf '{HEADER}\\n7|RUNNING|None|1795255200|N/A|cpu|r[1-40]n[01-25]|ada|large\\n'")
    (job,) = status(stoker, cluster, "7")["jobs"]
    assert job["nodes"] == "r[1-40]n[01-25]"


def test_watch_ends_once_all_jobs_have_ended(stoker, cluster: Cluster):
    running = f"printf '{HEADER}\\n7|RUNNING|None|1795255200|N/A|cpu|n1|ada|train\\n'"
    done = f"printf '{HEADER}\\n7|COMPLETED|None|1795255200|1795258800|cpu|n1|ada|train\\n'"
    cluster.program("squeue", f"if [ $(grep -c squeue {cluster.folder}/calls) -gt 2 ]; then {done}; else {running}; fi")
    watched = stoker("status", "7", "--watch", env=cluster.env, code=0)
    # Not on a terminal: only what has changed.
    assert [line.split()[1] for line in watched.out.splitlines() if line.split()[0] == "7"] == ["running", "done"]
    refused = stoker("status", "--watch", "--json", env=cluster.env, code=2)
    assert "status: --watch and --json exclude each other" in refused.out


def test_queries_over_the_rate_limit_wait_or_are_refused(stoker, cluster: Cluster, tmp_path: Path):
    cluster.job("RUNNING")
    env = cluster.env | {"STOKER_SLURM_CALLS_PER_S": "0.001", "XDG_RUNTIME_DIR": str(tmp_path)}
    left = [json.loads(stoker("status", "7", "--json", env=env, code=0).out)["scheduler"]["left"] for _ in range(15)]
    assert left == list(range(28, -1, -2))
    refused = stoker("status", "7", env=env, code=1)
    assert refused.err == (
        "squeue: rate limit: 30 requests in a row are allowed, then 0.001 a second\n"
        "  try: STOKER_SLURM_CALLS_PER_S=N in the environment raises the limit\n"
    )
    assert len(cluster.calls()) == 30
