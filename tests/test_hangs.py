"""Where a hanging run was, is known after it has been ended: stacks in the logs, in the messages and in `stoker explain`."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from conftest import MODULE
from running import Job, finish, wait_for

BEGIN = "stoker: where the processes are before they are stopped"


def script(folder: Path, text: str) -> str:
    (folder / "p.py").write_text("import os, queue, sys, time\n" + text)
    return f"{sys.executable} p.py"


def wait_for_batch() -> str:
    return "def next_batch():\n    return queue.Queue().get()\n"


def explained(stoker) -> dict:
    return json.loads(stoker("explain", "last", "--json").out)["diagnosis"]


def test_the_rank_apart_from_its_peers_is_named_with_its_line(stoker, tmp_path):
    text = (
        wait_for_batch() + "def load():\n    time.sleep(600)\nload() if os.environ['RANK'] == '1' else next_batch()\n"
    )
    job = Job(tmp_path, script(tmp_path, text), 3, "timeouts: {stall: 3s}\n")
    result = stoker("run", "job.yaml", code=1)
    stacks = [line for line in result.err.splitlines() if " in " in line and "p.py" in line]
    assert stacks[0] == "rank 1 was in load (p.py:5)"
    assert re.fullmatch(r"ranks 0, 2 were in \S+ \(threading.py:\d+\), called by next_batch \(p.py:3\)", stacks[1])
    assert re.search(r"rank \d .* made no progress for [\d.]+ s, like all other ranks \(timeouts.stall\)", result.err)
    log = job.log(1).decode()
    assert log.index(BEGIN) < log.index('"MainThread"') < log.index("load (")
    cause = explained(stoker)
    assert (cause["rule"], cause["rank"]) == ("rank-apart", 1)
    assert not job.processes()


def test_ranks_that_hang_in_one_place_are_not_distinguished(stoker, tmp_path):
    Job(tmp_path, script(tmp_path, wait_for_batch() + "next_batch()\n"), 2, "timeouts: {stall: 3s}\n")
    err = stoker("run", "job.yaml", code=1).err
    assert re.search(r"^ranks 0, 1 were in \S+ \(threading.py:\d+\), called by next_batch \(p.py:3\)$", err, re.M)
    assert explained(stoker)["rule"] == "ranks-same-place"


def test_a_program_that_imports_stoker_needs_no_tool(stoker, tmp_path):
    text = "import stoker\n" + wait_for_batch() + "next_batch()\n"
    job = Job(tmp_path, script(tmp_path, text).replace(sys.executable, "python3"), 1, "timeouts: {stall: 3s}\n")
    # A folder with this Python and without py-spy.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(Path(sys.executable).resolve())
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    err = stoker("run", "job.yaml", code=1, env={"PATH": path, "PYTHONPATH": MODULE}).err
    assert "rank 0 was in wait (threading.py:" in err
    assert "called by next_batch (p.py:4)" in err
    log = job.log(0).decode()
    assert "most recent call first" in log
    assert "py-spy" not in log
    # The answer to the signal is no error of the program.
    assert "last output: File" not in err


def test_without_a_tool_the_kernel_still_names_the_file(stoker, tmp_path):
    os_pipe = tmp_path / "train.tar"
    subprocess.run(["mkfifo", os_pipe], check=True)
    job = Job(tmp_path, "{shell: 'exec 3<>train.tar; read line <&3'}", 1, "timeouts: {stall: 3s}\n")
    err = stoker("run", "job.yaml", code=1, env={"PATH": "/nonexistent"}).err
    assert " was in " not in err
    log = job.log(0).decode()
    assert f"asleep in read of {os_pipe}" in log
    assert "gdb: not found" in log


def test_a_cpp_program_is_read_by_gdb(stoker, tmp_path):
    (tmp_path / "p.c").write_text(
        "#include <unistd.h>\nvoid exchange(void) { for (;;) pause(); }\nint main(void) { exchange(); }\n"
    )
    subprocess.run(["gcc", "-g", "-O0", "p.c", "-o", "solver"], cwd=tmp_path, check=True)
    Job(tmp_path, "./solver", 1, "timeouts: {stall: 3s}\n")
    err = stoker("run", "job.yaml", code=1).err
    assert re.search(
        r"^rank 0 was in \S*pause\S*( \((pause\.c:\d+|libc\.so\.6)\))?, called by exchange \(p\.c:2\)$", err, re.M
    ), err


def test_a_launcher_is_not_taken_for_the_training(stoker, tmp_path):
    (tmp_path / "launch.py").write_text("import subprocess, sys\nsubprocess.call([sys.executable, 'p.py'])\n")
    script(tmp_path, wait_for_batch() + "next_batch()\n")
    Job(tmp_path, f"{sys.executable} launch.py", 1, "timeouts: {stall: 3s}\n")
    err = stoker("run", "job.yaml", code=1).err
    assert "called by next_batch (p.py:3)" in err


def test_a_failing_rank_costs_no_stacks(stoker, tmp_path):
    job = Job(tmp_path, script(tmp_path, "sys.exit(7) if os.environ['RANK'] == '0' else time.sleep(600)\n"), 2)
    stoker("run", "job.yaml", code=7)
    assert BEGIN not in job.log(1).decode()


def test_a_process_that_answers_nothing_does_not_delay_the_end(stoker, tmp_path):
    text = "import signal\nsignal.signal(41, lambda *_: time.sleep(600))\ntime.sleep(600)\n"
    job = Job(tmp_path, script(tmp_path, text), 1, "timeouts: {stall: 3s, grace: 2s}\n")
    process = stoker.start("run", "job.yaml")
    code, _ = finish(process)
    assert code == 1
    assert not job.processes()


def test_ctrl_c_of_a_run_that_works_needs_no_stacks(stoker, tmp_path):
    job = Job(tmp_path, script(tmp_path, "print('up', flush=True)\ntime.sleep(600)\n"), 1)
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: b"up" in job.log(0))
    process.send_signal(signal.SIGINT)
    code, _ = finish(process)
    assert code == 130
    assert BEGIN not in job.log(0).decode()
