"""Runs that are ended on request: by a signal, from outside, or because their time is over. 75 means that a checkpoint was
written."""

import json
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest
from running import Job, finish, parent, python, wait_for

HOST = socket.gethostname().split(".")[0]

# Saves and stops when it is asked to, as docs/exit-codes.md has it.
SAVES = (
    "import signal, sys, time\n"
    "def save(number, frame):\n"
    "    print('got', number, flush=True)\n"
    "    sys.exit(75)\n"
    "for number in ({signals}): signal.signal(number, save)\n"
    "print('ready', flush=True)\n"
    "time.sleep(600)\n"
)
# The message about ranks that exit with 75 without a checkpoint.
EXITED_WITH_75 = "ranks 0, 1 exited with code 75 (saved and stopped)"
BUT = ", but there is no checkpoint (STOKER_CHECKPOINT_DIR)"


def both_ready(job: Job) -> bool:
    return b"ready" in job.log(0) and b"ready" in job.log(1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_reaches_the_ranks_and_decides_the_code(stoker, tmp_path, number, code):
    text = (
        "import os, signal, sys, time\n"
        "def end(number, frame):\n"
        "    print('got', number, flush=True)\n"
        "    sys.exit(0)\n"
        f"signal.signal({int(number)}, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(number)
    ended, err = finish(process)
    assert ended == code
    assert err[1] == f"interrupted by {number.name}"
    assert err[2] == "  ranks 0, 1 stopped; no checkpoint yet"
    assert b"got %d" % number in job.log(0) and b"got %d" % number in job.log(1)
    events = (job.run_folder() / "attempts/1/events-node-0000.jsonl").read_text()
    assert json.loads(events.splitlines()[-1])["outcome"] == "stopped"
    assert not job.processes()


def test_a_second_interrupt_kills_at_once(stoker, tmp_path):
    text = "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text), more="timeouts: {grace: 10m}\n")
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, _ = finish(process)
    assert code == 130
    assert not job.processes()


def test_the_run_killed_outright_takes_its_ranks_along(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'setsid sleep 601 & sleep 600'}", more="timeouts: {grace: 1s}\n")
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: job.pid(0, "sleep") and job.pid(1, "sleep"))
    process.kill()
    process.wait()
    wait_for(lambda: not job.processes())
    states = json.loads(stoker("status", "last", "--json", code=0).out)["runs"]
    assert states[0]["state"] == "lost"


def test_stop_after_a_checkpoint_is_passed_on_and_understood(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGUSR1,")))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(signal.SIGUSR1)
    code, err = finish(process)
    assert code == 75
    assert err[1:] == [EXITED_WITH_75 + BUT, "  no checkpoint yet", "  try: stoker resume last --from-start"]
    assert json.loads(stoker("status", "last", "--json").out)["runs"][0]["state"] == "stopped"


def test_a_checkpoint_that_is_not_there_is_not_claimed(stoker, tmp_path):
    # 75 is also what sysexits.h calls EX_TEMPFAIL.
    Job(tmp_path, "{shell: 'test $RANK = 0 && exit 75; exit 0'}")
    result = stoker("run", "job.yaml", code=75)
    assert result.err.splitlines()[1:] == [
        "rank 0 exited with code 75 (saved and stopped)" + BUT,
        "  no checkpoint yet",
        "  try: stoker resume last --from-start",
    ]


def test_a_checkpoint_of_any_kind_is_one(stoker, tmp_path):
    Job(tmp_path, "{shell: 'mkdir -p $STOKER_CHECKPOINT_DIR && echo x > $STOKER_CHECKPOINT_DIR/model.pt; exit 75'}", 1)
    result = stoker("run", "job.yaml", code=75)
    assert result.err.splitlines()[1] == "stopped after a checkpoint"
    assert result.err.splitlines()[2].startswith("  last checkpoint: model.pt, torn: ")


def test_another_programs_checkpoint_is_the_last_one(stoker, tmp_path):
    text = (
        "import os, pathlib, sys\n"
        "folder = pathlib.Path(os.environ['STOKER_CHECKPOINT_DIR'])\n"
        "folder.mkdir(parents=True, exist_ok=True)\n"
        "(folder / 'step=20.safetensors').write_bytes(bytes([2] + 7 * [0]) + b'{}')\n"
        "sys.exit(75)\n"
    )
    Job(tmp_path, python(tmp_path, "save.py", text), 1)
    result = stoker("run", "job.yaml", code=75)
    assert result.err.splitlines()[1:] == [
        "stopped after a checkpoint",
        "  last checkpoint: step=20.safetensors, complete",
        "  try: stoker resume last",
    ]


def test_each_rank_gets_the_checkpoint_signal_once(stoker, tmp_path):
    text = (
        "import signal, sys, time\n"
        "received = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: received.append(1))\n"
        "signal.signal(signal.SIGUSR2, lambda *_: (print('received', len(received), flush=True), sys.exit(75)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    for number in (signal.SIGUSR1, signal.SIGUSR1, signal.SIGUSR2):
        process.send_signal(number)
        time.sleep(0.3)  # signals of one kind that wait are one
    assert finish(process)[0] == 75
    assert b"received 1\n" in job.log(0) and b"received 1\n" in job.log(1)


def test_a_request_to_save_that_comes_too_early_leaves_the_next_one_alone(stoker, tmp_path):
    text = (
        "import os, signal, sys, time\n"
        "print('imports', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(75))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: b"imports" in job.log(0) and b"imports" in job.log(1))
    process.send_signal(signal.SIGUSR1)
    time.sleep(0.5)
    (tmp_path / "go").touch()
    wait_for(lambda: both_ready(job))
    process.send_signal(signal.SIGUSR1)
    assert finish(process)[0] == 75


def test_stop_after_a_checkpoint_does_not_kill_what_cannot_do_it(stoker, tmp_path):
    job = Job(tmp_path, "sleep 2", 1)
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: job.pid(0, "sleep"))
    process.send_signal(signal.SIGUSR1)
    assert finish(process)[0] == 0


def test_the_time_that_was_asked_for_ends_the_run(stoker, tmp_path):
    job = Job(tmp_path, "sleep 600")
    result = stoker("run", "job.yaml", "--set", "resources.time=2s", code=1)
    assert result.err.splitlines()[1:] == [
        "time limit 2s (resources.time)",
        "  ranks 0, 1 stopped; no checkpoint yet",
        "  try: stoker resume last --from-start",
    ]
    assert not job.processes()
    waited = json.loads(stoker("wait", "last", "--json", code=124).out)
    assert (waited["state"], waited["exit_code"]) == ("timeout", 124)
    assert waited["reason"] == "time limit 2s (resources.time)"
    (run,) = json.loads(stoker("status", "last", "--json", code=0).out)["runs"]
    assert run["state"] == "timeout"
    assert ": timeout (time limit 2s (resources.time))\n" in stoker("wait", "last", code=124).out


def test_json_state_is_timeout_like_status(stoker, tmp_path):
    Job(tmp_path, "sleep 600", 1)
    result = json.loads(stoker("run", "job.yaml", "--json", "--set", "resources.time=1s", code=1).out)
    assert (result["state"], result["exit_code"]) == ("timeout", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_that_led_to_a_checkpoint_ends_with_75(stoker, tmp_path, number):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals=f"{int(number)},")))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(number)
    code, err = finish(process)
    assert code == 75
    assert err[1:] == [
        f"interrupted by {number.name}, {EXITED_WITH_75}{BUT}",
        "  no checkpoint yet",
        "  try: stoker resume last --from-start",
    ]
    (run,) = json.loads(stoker("status", "last", "--json").out)["runs"]
    assert (run["state"], run["exit_code"]) == ("stopped", 75)
    assert not job.processes()


def test_the_ranks_are_asked_to_save_before_the_time_is_over(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGUSR1,")))
    start = time.monotonic()
    result = stoker("run", "job.yaml", "--set", "resources.time=15s", code=75)
    assert 10 < time.monotonic() - start < 100
    assert b"got %d" % signal.SIGUSR1 in job.log(0) and b"got %d" % signal.SIGUSR1 in job.log(1)
    assert result.err.splitlines()[1:] == [
        f"{EXITED_WITH_75} before time limit 15s (resources.time){BUT}",
        "  no checkpoint yet",
        "  try: stoker resume last --from-start",
    ]
    assert not job.processes()


def test_without_a_notice_the_time_ends_the_run_by_sigterm(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGTERM, signal.SIGUSR1")))
    settings = ["--set", "resources.time=3s", "--set", "checkpoint.before_end=0s"]
    result = stoker("run", "job.yaml", *settings, code=75)
    assert b"got %d" % signal.SIGTERM in job.log(0) and b"got %d" % signal.SIGTERM in job.log(1)
    assert result.err.splitlines()[1] == f"time limit 3s (resources.time), {EXITED_WITH_75}{BUT}"


def test_a_run_that_saved_as_its_time_was_over_is_stopped_and_no_timeout(stoker, tmp_path):
    saves = "mkdir -p $STOKER_CHECKPOINT_DIR/saved; exit 75"
    Job(tmp_path, f"""{{shell: "trap '{saves}' TERM; sleep 600 & wait"}}""")
    settings = ["--set", "resources.time=2s", "--set", "checkpoint.before_end=0s"]
    result = stoker("run", "job.yaml", *settings, code=75)
    assert result.err.splitlines()[1] == "time limit 2s (resources.time), stopped after a checkpoint"
    waited = json.loads(stoker("wait", "last", "--json", code=75).out)
    assert (waited["state"], waited["exit_code"]) == ("stopped", 75)


def test_a_rank_that_is_ended_from_outside_ends_the_run(stoker, tmp_path):
    job = Job(tmp_path, "sleep 600")
    process = stoker.start("run", "job.yaml")
    os.kill(parent(wait_for(lambda: job.pid(1, "sleep"))), signal.SIGTERM)
    code, err = finish(process)
    assert code == 143
    assert err[1:] == [
        f"rank 1 ({HOST}) was terminated externally: killed by signal 15 (SIGTERM)",
        "  rank 0 stopped; no checkpoint yet",
    ]
    assert not job.processes()
    found = json.loads(stoker("explain", "last", "--json", code=0).out)["diagnosis"]
    assert (found["rule"], found["rank"]) == ("rank-ended-outside", 1)
    assert found["cause"] == f"it was killed from outside on {HOST}: killed by signal 15 (SIGTERM)"


def test_ranks_that_save_when_they_are_ended_from_outside_stop_with_75(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGTERM,")))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    ranks = [parent(pid) for pid in job.running("p.py")]
    assert len(set(ranks)) == 2
    for pid in ranks:
        os.kill(pid, signal.SIGTERM)
    code, err = finish(process)
    assert code == 75
    assert err[1] == EXITED_WITH_75 + BUT


def test_a_signal_that_came_to_the_ranks_first_leaves_them_their_time_to_save(stoker, tmp_path):
    text = (
        "import os, signal, sys, time\n"
        "def save(number, frame):\n"
        "    time.sleep(2)\n"
        "    print('saved', flush=True)\n"
        "    sys.exit(75)\n"
        "if os.environ['RANK'] == '0': signal.signal(signal.SIGTERM, save)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    for pid in [parent(pid) for pid in job.running("p.py")]:
        os.kill(pid, signal.SIGTERM)
    events = job.run_folder() / "attempts/1/events-node-0000.jsonl"
    wait_for(lambda: '"stopping"' in events.read_text())
    process.send_signal(signal.SIGTERM)
    code, err = finish(process)
    assert b"saved" in job.log(0)
    assert code == 75
    assert err[1] == f"interrupted by SIGTERM, rank 0 exited with code 75 (saved and stopped){BUT}"
    assert not job.processes()


def test_failure_before_the_interrupt_keeps_its_code(stoker, tmp_path):
    fails = "until test -e go; do sleep 0.02; done; exit 7"
    job = Job(tmp_path, f"{{shell: 'echo ready; test $RANK = 1 || exec sleep 600; {fails}'}}")
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job) and job.pid(1, "sh"))
    watcher = parent(job.pid(1, "sh"))
    process.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    wait_for(lambda: Path(f"/proc/{watcher}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    code, err = finish(process)
    assert code == 7
    assert re.fullmatch(rf"rank 1 \({HOST}\) exited after [\d.]+ m?s: exit code 7", err[1])
    assert err[-1] == "  rank 0 stopped; no checkpoint yet"


def test_once_all_ranks_are_done_no_signal_and_no_time_changes_that(stoker, tmp_path):
    # What remains is the capsule, which waits for git.
    git = tmp_path / "bin/git"
    git.parent.mkdir()
    waits = "touch asked; until test -e go; do sleep 0.05; done"
    git.write_text(f'#!/bin/sh\ncd {tmp_path}\ncase "$*" in *--show-toplevel*) {waits};; esac\nexit 128\n')
    git.chmod(0o755)
    job = Job(tmp_path, "{shell: 'until test -e asked; do sleep 0.05; done'}", 1)
    settings = ["--set", "resources.time=6s", "--set", "checkpoint.before_end=0s"]
    begin = time.monotonic()
    process = stoker.start("run", "job.yaml", *settings, env={"PATH": f"{git.parent}:{os.environ['PATH']}"})
    events = wait_for(lambda: list(tmp_path.glob("runs/*/attempts/1/events-node-0000.jsonl")))[0]
    wait_for(lambda: '"rank_ended"' in events.read_text())
    process.send_signal(signal.SIGTERM)
    time.sleep(max(0, begin + 7 - time.monotonic()))
    (tmp_path / "go").touch()
    assert finish(process)[0] == 0
    assert '"stopping"' not in events.read_text()
    assert json.loads(stoker("status", "last", "--json", code=0).out)["runs"][0]["state"] == "done"
    assert not job.processes()
