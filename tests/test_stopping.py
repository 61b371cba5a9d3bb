"""Runs that are ended on request: by a signal, from outside, or because their time is over. 75 means that a checkpoint was
written."""

import json
import os
import signal
import socket
import time

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
    "time.sleep(60)\n"
)


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
        "time.sleep(60)\n"
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
    text = "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text), more="timeouts: {grace: 1m}\n")
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, _ = finish(process, 5)
    assert code == 130
    assert not job.processes()


def test_the_run_killed_outright_takes_its_ranks_along(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'setsid sleep 61 & sleep 60'}", more="timeouts: {grace: 1s}\n")
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: job.pid(0, "sleep") and job.pid(1, "sleep"))
    process.kill()
    process.wait()
    wait_for(lambda: not job.processes(), 10)
    states = json.loads(stoker("status", "last", "--json", code=0).out)["runs"]
    assert states[0]["state"] == "lost"


def test_stop_after_a_checkpoint_is_passed_on_and_understood(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGUSR1,")))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(signal.SIGUSR1)
    code, err = finish(process)
    assert code == 75
    assert err[1:] == ["stopped after a checkpoint", "  no checkpoint yet", "  try: stoker resume last"]
    assert json.loads(stoker("status", "last", "--json").out)["runs"][0]["state"] == "stopped"


def test_stop_after_a_checkpoint_is_told_to_each_rank_once(stoker, tmp_path):
    text = (
        "import signal, sys, time\n"
        "told = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: told.append(1))\n"
        "signal.signal(signal.SIGUSR2, lambda *_: (print('told', len(told), flush=True), sys.exit(75)))\n"
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
    assert b"told 1\n" in job.log(0) and b"told 1\n" in job.log(1)


def test_stop_after_a_checkpoint_does_not_kill_what_cannot_do_it(stoker, tmp_path):
    job = Job(tmp_path, "sleep 2", 1)
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: job.pid(0, "sleep"))
    process.send_signal(signal.SIGUSR1)
    assert finish(process)[0] == 0


def test_the_time_that_was_asked_for_ends_the_run(stoker, tmp_path):
    job = Job(tmp_path, "sleep 60")
    result = stoker("run", "job.yaml", "--set", "resources.time=2s", code=1, timeout=20)
    assert result.err.splitlines()[1:] == [
        "time 2s is over (resources.time)",
        "  ranks 0, 1 stopped; no checkpoint yet",
        "  try: stoker resume last",
    ]
    assert not job.processes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_that_led_to_a_checkpoint_ends_with_75(stoker, tmp_path, number):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals=f"{int(number)},")))
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: both_ready(job))
    process.send_signal(number)
    code, err = finish(process)
    assert code == 75
    assert err[1:] == [
        f"interrupted by {number.name}, stopped after a checkpoint",
        "  no checkpoint yet",
        "  try: stoker resume last",
    ]
    (run,) = json.loads(stoker("status", "last", "--json").out)["runs"]
    assert (run["state"], run["exit_code"]) == ("stopped", 75)
    assert not job.processes()


def test_the_ranks_are_asked_to_save_before_the_time_is_over(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGUSR1,")))
    start = time.monotonic()
    result = stoker("run", "job.yaml", "--set", "resources.time=15s", code=75, timeout=40)
    assert 10 < time.monotonic() - start < 15
    assert b"got %d" % signal.SIGUSR1 in job.log(0) and b"got %d" % signal.SIGUSR1 in job.log(1)
    assert result.err.splitlines()[1:] == [
        "stopped after a checkpoint before time 15s is over (resources.time)",
        "  no checkpoint yet",
        "  try: stoker resume last",
    ]
    assert not job.processes()


def test_without_a_notice_the_time_ends_the_run_by_sigterm(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "p.py", SAVES.format(signals="signal.SIGTERM, signal.SIGUSR1")))
    settings = ["--set", "resources.time=3s", "--set", "checkpoint.before_end=0s"]
    result = stoker("run", "job.yaml", *settings, code=75, timeout=30)
    assert b"got %d" % signal.SIGTERM in job.log(0) and b"got %d" % signal.SIGTERM in job.log(1)
    assert result.err.splitlines()[1] == "time 3s is over (resources.time), stopped after a checkpoint"


def test_a_rank_that_is_ended_from_outside_ends_the_run(stoker, tmp_path):
    job = Job(tmp_path, "sleep 60")
    process = stoker.start("run", "job.yaml")
    os.kill(parent(wait_for(lambda: job.pid(1, "sleep"))), signal.SIGTERM)
    code, err = finish(process)
    assert code == 143
    assert err[1:] == [
        f"rank 1 ({HOST}) was ended from outside: killed by signal 15 (SIGTERM)",
        "  rank 0 stopped; no checkpoint yet",
    ]
    assert not job.processes()


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
    assert err[1] == "stopped after a checkpoint"
