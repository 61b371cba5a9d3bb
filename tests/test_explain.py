"""stoker explain on arbitrary logs, runs of this machine, and jobs of fake Slurm programs."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

from conftest import REPOSITORY
from test_status_jobs import Cluster

FULL = "OSError: [Errno 28] No space left on device: '/a'\n"


def diagnosis(stoker, *words: str | Path, code: int = 0, **options) -> dict:
    return json.loads(stoker("explain", *words, "--json", code=code, **options).out)["diagnosis"]


def run(stoker, shell: str, more: str = "") -> None:
    (stoker.folder / "job.yaml").write_text(f"name: x\nrun: {{shell: {json.dumps(shell)}}}\n{more}")
    stoker("run", "job.yaml")


def test_an_arbitrary_log_is_explained(stoker, tmp_path: Path):
    (tmp_path / "train.log").write_text("epoch 1\n" + FULL)
    output = stoker("explain", "train.log", code=0).out
    assert output == (
        "train.log\n  cause      the disk is full: /a\n"
        "  evidence   train.log:2  OSError: [Errno 28] No space left on device: '/a'\n"
        "  cure       delete unneeded files, write checkpoints to a different disk, or keep fewer of them\n"
        "  confirm    df -h; df -i\n"
    )


def test_ranks_of_several_logs_are_distinguished(stoker, tmp_path: Path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/rank-0.log").write_text("RuntimeError: pair.cc:534] Connection closed by peer [10.0.0.2]:44750\n")
    with gzip.open(tmp_path / "logs/rank-1.log.gz", "wt") as log:
        log.write("RuntimeError: CUDA error: invalid device ordinal\n")
    for words in (["logs"], ["logs/rank-0.log", "logs/rank-1.log.gz"]):
        found = diagnosis(stoker, *words)
        assert (found["rule"], found["rank"], found["certainty"]) == ("no-such-gpu", 1, "known")
        assert found["followed"].startswith("rank 0: the connection to a peer broke")


def test_escape_sequences_are_removed(stoker, tmp_path: Path):
    (tmp_path / "evil.log").write_bytes(b"\x1b]0;owned\x07\x1b[2Jit glows \x9b31m\xff\x00\x07here\n")
    output = stoker("explain", "evil.log", code=1).out
    assert "\x1b" not in output and "\x07" not in output and "\x9b" not in output
    assert "it glows " in output


def test_a_growing_log_is_read_up_to_its_current_end(stoker, tmp_path: Path):
    log = tmp_path / "grows.log"
    writer = subprocess.Popen(["sh", "-c", f"echo 'Disk quota exceeded' > {log}; exec yes step >> {log}"])
    try:
        while not log.exists() or log.stat().st_size < 100_000:
            pass
        found = json.loads(stoker("explain", "grows.log", "--json").out)["diagnosis"]
        assert found["bytes"] >= 100_000
    finally:
        writer.kill()
        writer.wait()


def test_a_log_on_standard_input_is_explained_like_a_file(stoker, tmp_path: Path):
    (tmp_path / "train.log").write_text("epoch 1\n" + FULL)
    as_file = stoker("explain", "train.log", code=0).out
    as_input = as_file.replace("train.log\n", "standard input\n", 1).replace("train.log:", "stdin:")
    assert stoker("explain", "-", input="epoch 1\n" + FULL, code=0).out == as_input
    assert stoker("explain", "-", input="one\ntwo\n", code=1).out.startswith("standard input\n  cause      unknown")
    packed = tmp_path / "train.log.gz"
    packed.write_bytes(gzip.compress(b"epoch 1\n" + FULL.encode()))
    for file in (tmp_path / "train.log", packed):
        with file.open() as log:
            process = stoker.start("explain", stdin=log, stdout=subprocess.PIPE)
            assert process.communicate()[0] in (as_input, as_input.encode())


def test_a_log_on_standard_input_is_not_sent_to_a_host(stoker, tmp_path: Path):
    refused = "explain: a log on standard input is read on this machine; --host excludes it\n"
    assert stoker("explain", "-", "--host", "login", input=FULL, code=2).err == refused + "  try: stoker explain -\n"
    (tmp_path / "train.log").write_text(FULL)
    with (tmp_path / "train.log").open() as log:
        process = stoker.start("explain", "--host", "login", stdin=log, stderr=subprocess.PIPE)
        _, err = process.communicate()
    assert process.returncode == 2
    assert err == refused + "  try: stoker explain last --host login\n"


def test_without_arguments_only_a_file_is_read_from_standard_input(stoker):
    run(stoker, "exit 7")
    assert stoker("explain", input=FULL, code=1).out.startswith("run ")


def test_a_missing_log_is_an_error(stoker, tmp_path: Path):
    (tmp_path / "a.log").write_text("x\n")
    (tmp_path / "empty").mkdir()
    assert stoker("explain", "a.log", "b.log", code=1).err == "explain: b.log: no such log\n"
    assert "empty: no logs in this folder" in stoker("explain", "empty", code=1).err


def test_the_rank_that_failed_first_explains_the_run(stoker):
    shell = "[ $RANK = 1 ] && python3 -c 'import nothing_of_this_name'; sleep 30"
    run(stoker, "set -e; " + shell.replace("[ $RANK = 1 ] &&", "[ $RANK = 0 ] ||"), "resources: {ranks_per_node: 2}\n")
    found = diagnosis(stoker, "last")
    assert (found["rule"], found["rank"]) == ("module-missing", 1)
    assert re.fullmatch(r"rank-0001\.log:\d+", found["evidence"][0]["where"])


def test_a_rank_that_exited_early_is_named_and_not_its_peer(stoker):
    closed = "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:44750"
    (stoker.folder / "job.yaml").write_text(
        f"name: x\nrun: {{shell: \"[ $RANK = 1 ] && exit 0; sleep 2; echo '{closed}' >&2; exit 1\"}}\n"
        "resources: {ranks_per_node: 2}\n"
    )
    assert "\n  rank 1 done earlier; no checkpoint yet\n" in stoker("run", "job.yaml", code=1).err
    found = diagnosis(stoker, "last")
    assert (found["rule"], found["rank"], found["certainty"]) == ("rank-ended-early", 1, "likely")
    assert re.fullmatch(
        r"exited with code 0, [\d.]+ m?s earlier: uneven numbers of batches, or an early return",
        found["cause"],
    )
    assert found["evidence"][0]["where"] == "records"
    assert found["followed"].startswith("rank 0: the connection to a peer broke")


def test_killed_ranks_are_looked_up_without_slurm(stoker):
    run(stoker, "kill -9 $$")
    found = diagnosis(stoker, "last")
    assert found["rule"] == "killed-by-signal-9"
    assert found["confirm"].startswith("journalctl -k | grep -i 'killed process'; ")
    assert "--mem" not in found["cure"]


def test_a_successful_run_has_no_cause(stoker):
    run(stoker, "echo error rate 0.3")
    assert stoker("explain", code=0).out.endswith("done\n  cause      none: its logs contain no failure\n")


def test_a_run_that_succeeded_with_a_missing_command_shows_both(stoker):
    run(stoker, "trainer train.py; tar xf nothing.tar; echo cleaning up")
    output = stoker("explain", code=0).out
    assert "trainer: not found" in output
    assert re.search(
        r"\n  but        the run succeeded, but a line shows a failure: tar: nothing.tar: Cannot open", output
    )


def test_resource_usage_is_shown_with_the_result(stoker):
    (stoker.folder / "leak.py").write_text(
        "import time\nkept = []\nfor _ in range(110):\n    kept.append(b'x' * (2 << 20))\n    time.sleep(0.08)\n"
    )
    more = "resources: {cpus_per_rank: 2}\nrecord: {sample_every: 100ms}\n"
    run(stoker, f"exec {sys.executable} leak.py", more)
    found = diagnosis(stoker, "last")
    also = {each["rule"]: each for each in found["also"]}
    assert set(also) == {"memory-grows", "cpus-idle"}
    assert re.match(r"memory of rank 0 grows by [\d.]+ [MG]B a minute, from ", also["memory-grows"]["text"])
    assert also["cpus-idle"]["level"] == "advice"
    output = stoker("explain", "last", code=0).out
    assert "\n  slow       memory of rank 0 grows by " in output
    assert "\n  hint       ranks of node 0 use 0." in output


LOGGING_ERROR = (
    "import logging\nfor epoch in range(3):\n    logging.error('epoch', epoch)\n    print('epoch', epoch, flush=True)\n"
)


def test_an_error_that_the_program_handled_is_not_a_cause(stoker):
    (stoker.folder / "train.py").write_text(LOGGING_ERROR)
    run(stoker, f"exec {sys.executable} train.py")
    assert "--- Logging error ---" in stoker("logs", "last", code=0).out
    assert stoker("explain", code=0).out.endswith("done\n  cause      none: its logs contain no failure\n")
    (stoker.folder / "train.py").write_text(LOGGING_ERROR + "raise KeyError('lr')\n")
    run(stoker, f"exec {sys.executable} train.py")
    found = diagnosis(stoker, "last")
    assert (found["cause"], found["certainty"]) == ("the program raised KeyError: 'lr' (train.py:5)", "known")


def test_the_cure_of_a_run_names_its_job_file_and_id(stoker):
    run(stoker, "trainer train.py")
    found = diagnosis(stoker, "last")
    assert "`environment: {modules: [NAME]}`" in found["cure"]
    assert found["confirm"] == "stoker check job.yaml"
    (stoker.folder / "trained.log").write_text("/bin/sh: 1: trainer: not found\n")
    found = diagnosis(stoker, "trained.log")
    assert found["cure"] == "load its module or activate its environment before that line"
    assert found["confirm"] is None


def test_a_bare_exit_code_is_not_a_cause(stoker):
    run(stoker, "echo one; echo two; exit 7")
    output = stoker("explain", "last", code=1).out
    assert "  cause      unknown; these lines are the most relevant\n  evidence   rank-0000.log:1  one\n" in output


def cluster_of(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "slurm")


def test_the_reason_of_a_waiting_job_is_shown_with_a_cure(stoker, tmp_path: Path):
    cluster = cluster_of(tmp_path)
    header = "JOBID|STATE|REASON|START_TIME|END_TIME|PARTITION|NODELIST|USER|NAME"
    cluster.program("squeue", f"printf '{header}\\n7|PENDING|Priority|N/A|N/A|cpu||ada|train\\n'")
    output = stoker("explain", "7", env=cluster.env, code=0).out
    assert output == (
        "job 7: queued\n  reason     other jobs have a higher priority (Priority)\n  start      Slurm has no estimate yet\n"
        "  sooner     use a shorter --time and fewer nodes: smaller jobs fit into gaps\n"
    )
    cluster.program("squeue", f"printf '{header}\\n7|PENDING|JobHeldUser|N/A|N/A|cpu||ada|train\\n'")
    output = stoker("explain", "7", env=cluster.env, code=0).out
    assert output.endswith("  start      never, unless changed\n  cure       scontrol release 7\n")


def test_a_failed_job_is_explained_by_its_log(stoker, tmp_path: Path):
    log = tmp_path / "slurm-7.out"
    log.write_text("starting\n/var/spool/job7: line 3: trainer: command not found\ncleaning up\n")
    cluster = cluster_of(tmp_path)
    cluster.job("FAILED", "ExitCode=127:0", log)
    found = diagnosis(stoker, "7", env=cluster.env)
    assert (found["rule"], found["evidence"][0]["where"]) == ("command-not-found", "slurm-7.out:2")
    log.write_text("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch.\n")
    assert diagnosis(stoker, "7", env=cluster.env)["confirm"] == "sacct -j 7 -o JobID,ReqMem,MaxRSS"


def test_a_job_whose_log_folder_does_not_exist_is_explained(stoker, tmp_path: Path):
    cluster = cluster_of(tmp_path)
    cluster.job("FAILED", "ExitCode=0:53", tmp_path / "nofolder/7.out")
    explained = stoker("explain", "7", env=cluster.env, code=0)
    assert explained.out.startswith("job 7: failed (Slurm could not start it: exit code 0:53)\n")
    found = diagnosis(stoker, "7", env=cluster.env)
    assert (found["rule"], found["certainty"]) == ("log-folder-missing", "known")
    assert found["cause"] == f"Slurm could not open the job's log: folder {tmp_path}/nofolder does not exist"
    assert found["cure"] == f"create it, then submit again: `mkdir -p {tmp_path}/nofolder`"
    # The folder exists: only the usual reason is known.
    (tmp_path / "nofolder").mkdir()
    found = diagnosis(stoker, "7", env=cluster.env)
    assert (found["rule"], found["certainty"]) == ("launch-failed", "likely")


def test_a_job_without_a_log_is_explained_by_its_state(stoker, tmp_path: Path):
    cluster = cluster_of(tmp_path)
    cluster.job("TIMEOUT")
    found = diagnosis(stoker, "7", env=cluster.env)
    assert (found["rule"], found["certainty"]) == ("state-timeout", "known")
    assert found["notes"] == ["Slurm does not know the path of its log (any more): stoker explain LOG"]


def test_the_rules_page_lists_all_rules(stoker):
    page = (REPOSITORY / "docs/explain-rules.md").read_text()
    rules = json.loads(stoker("explain", "--rules", "--json", code=0).out)["rules"]
    listed = {rule["rule"]: rule["kind"] for rule in rules}
    assert len(listed) >= 100
    assert dict(re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \|", page, re.MULTILINE)) == listed
