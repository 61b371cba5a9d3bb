"""`stoker run`, `stoker resume` and `stoker rank`: what ranks find, what becomes of their output, what is recorded."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from running import Job, python, wait_for, wait_until

HOST = socket.gethostname().split(".")[0]


def environment_of(job: Job, rank: int) -> dict[str, str]:
    lines = job.log(rank).decode().split("\n")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_ranks_find_the_contract_in_their_environment(stoker, tmp_path):
    job = Job(tmp_path, "env", ranks=2)
    stoker("run", "job.yaml", code=0, env={"RANK": "9", "TORCHELASTIC_RUN_ID": "x", "OMP_NUM_THREADS": None})
    folder = job.run_folder()
    for rank in (0, 1):
        found = environment_of(job, rank)
        assert found["RANK"] == found["LOCAL_RANK"] == str(rank)
        assert found["WORLD_SIZE"] == found["LOCAL_WORLD_SIZE"] == "2"
        assert found["NODE_RANK"] == "0"
        assert found["MASTER_ADDR"] == "127.0.0.1"
        assert int(found["MASTER_PORT"]) >= 1024
        assert found["OMP_NUM_THREADS"] == str(max(1, len(os.sched_getaffinity(0)) // 2))
        assert found["STOKER_RUN_ID"] == folder.name
        assert found["STOKER_RUN_DIR"] == str(folder)
        assert found["STOKER_ATTEMPT_DIR"] == str(folder / "attempts/1")
        assert found["STOKER_JOB"] == str(folder / "attempts/1/job.yaml")
        assert found["STOKER_CHECKPOINT_DIR"] == str(folder / "checkpoints")
        assert found["STOKER_RESUME"] == found["STOKER_DEADLINE"] == ""
        assert not {"STOKER_WORLD", "STOKER_PLACE", "TORCHELASTIC_RUN_ID"} & found.keys()
    assert environment_of(job, 0)["MASTER_PORT"] == environment_of(job, 1)["MASTER_PORT"]


def test_the_users_own_number_of_threads_is_kept(stoker, tmp_path):
    job = Job(tmp_path, "env", ranks=1)
    stoker("run", "job.yaml", code=0, env={"OMP_NUM_THREADS": "3"})
    assert environment_of(job, 0)["OMP_NUM_THREADS"] == "3"


def test_data_and_deadline_reach_the_ranks(stoker, tmp_path):
    (tmp_path / "set").mkdir()
    job = Job(tmp_path, "env", ranks=1, more="data: {train: {source: set}}\n")
    before = time.time()
    stoker("run", "job.yaml", "--set", "resources.time=1h", code=0)
    found = environment_of(job, 0)
    assert found["STOKER_DATA_TRAIN"] == str(tmp_path / "set")
    assert before + 3590 < int(found["STOKER_DEADLINE"]) < time.time() + 3610


def test_rank_0_is_streamed_verbatim_and_peers_are_prefixed(stoker, tmp_path):
    job = Job(tmp_path, '{shell: \'printf "out $RANK\\n"; printf "err $RANK\\n" >&2\'}', ranks=3)
    result = stoker("run", "job.yaml", code=0)
    assert sorted(result.out.splitlines()) == ["[1] out 1", "[2] out 2", "out 0"]
    errors = result.err.splitlines()
    assert errors[0] == f"run {job.run_folder().name}   in runs/"
    assert sorted(errors[1:-2]) == ["[1] err 1", "[2] err 2", "err 0"]
    assert re.fullmatch(r"done, [\d.]+ m?s", errors[-2])
    assert errors[-1] == "  next: stoker report last"
    assert sorted(job.log(2).splitlines()) == [b"err 2", b"out 2"]


def test_output_without_a_line_end_and_with_any_bytes_arrives(stoker, tmp_path):
    program = python(
        tmp_path, "p.py", "import os\nos.write(1, bytes(range(256)) * 8 + b'\\nend ' + os.environ['RANK'].encode())\n"
    )
    job = Job(tmp_path, program)
    process = stoker.start("run", "job.yaml", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = process.stdout.buffer.read()
    assert process.wait() == 0
    for rank in (0, 1):
        assert job.log(rank) == bytes(range(256)) * 8 + b"\nend " + str(rank).encode()
    assert b"end 0" in out
    assert b"[1] end 1\n" in out


def test_progress_bars_and_endless_lines_of_other_ranks_stay_readable(stoker, tmp_path):
    text = "import os, sys\nif os.environ['RANK'] == '1':\n    print('10 %\\r50 %\\rdone')\n    print('x' * 200_000)\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    lines = stoker("run", "job.yaml", code=0).out.splitlines()
    assert lines[0] == "[1] done"
    assert all(line.startswith("[1] x") and len(line) <= 65540 for line in lines[1:])
    assert sum(len(line) - 4 for line in lines[1:]) == 200_000
    assert job.log(1) == b"10 %\r50 %\rdone\n" + b"x" * 200_000 + b"\n"


def test_20_mb_from_each_rank_lose_nothing(stoker, tmp_path):
    text = "import os, sys\nline = (os.environ['RANK'] * 99 + '\\n').encode()\nfor _ in range(200):\n"
    text += "    sys.stdout.buffer.write(line * 1000)\n    sys.stderr.buffer.write(line)\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    with open(tmp_path / "out", "wb") as out:
        process = stoker.start("run", "job.yaml", stdout=out, stderr=subprocess.DEVNULL)
        assert process.wait() == 0
    seen = (tmp_path / "out").read_bytes().split(b"\n")
    assert sum(line == b"0" * 99 for line in seen) == 200_000
    assert sum(line == b"[1] " + b"1" * 99 for line in seen) == 200_000
    assert len(job.log(0)) == len(job.log(1)) == 200_200 * 100


def test_a_reader_that_stands_still_does_not_hold_the_run_up(stoker, tmp_path):
    text = "import sys\nfor _ in range(3000):\n    sys.stdout.write('y' * 999 + '\\n')\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text), ranks=1)
    process = stoker.start("run", "job.yaml", stderr=subprocess.DEVNULL)
    assert process.wait() == 0  # its output is not read
    assert len(job.log(0)) == 3_000_000


def test_a_reader_that_leaves_does_not_end_the_run(stoker, tmp_path):
    text = "import time\nfor i in range(20):\n    print('line', i, flush=True)\n    time.sleep(0.05)\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text))
    command = f"{stoker.path} run job.yaml 2>err | head -1; echo ${{PIPESTATUS[0]}}"
    shell = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert shell.stdout.splitlines()[1] == "0"
    assert job.log(1).count(b"\n") == 20


def test_no_terminal_no_input_no_home(stoker, tmp_path):
    Job(tmp_path, "cat", ranks=1)
    process = stoker.start("run", "job.yaml", stdin=None, env={"HOME": None, "TERM": None})
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "")
    assert err.startswith("run 20")


def test_arguments_arrive_one_by_one_whatever_is_in_them(stoker, tmp_path):
    program = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n"
    (tmp_path / "p.py").write_text(program)
    run = json.dumps("python3 p.py 'two words' 'a\nb' 'naïve ☃' '$HOME' \"it's\" ''")
    Job(tmp_path, run, ranks=1)
    assert json.loads(stoker("run", "job.yaml", code=0).out) == ["two words", "a\nb", "naïve ☃", "$HOME", "it's", ""]


def test_the_capsule_is_whole_when_the_run_ends(stoker, tmp_path):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=tmp_path, check=True, capture_output=True
        )

    program = python(tmp_path, "p.py", "print('hi')\n")
    job = Job(tmp_path, program, ranks=1)
    git("init", "-q")
    git("add", "p.py")
    git("commit", "-qm", "one")
    (tmp_path / "p.py").write_text("print('changed')\n")
    stoker("run", "job.yaml", code=0, env={"MY_TOKEN": "hush", "MY_URL": "https://me:hush@example.org/x"})
    capsule = job.run_folder() / "capsule"
    code = json.loads((capsule / "code.json").read_text())
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True).stdout.strip()
    assert code["commit"] == commit
    assert f"_{commit[:7]}_test_" in job.run_folder().name
    assert "+print('changed')" in (capsule / "code.diff").read_text()
    assert code["untracked"] == ["job.yaml"]  # the run's own folder is not code
    installed = (
        "import importlib.metadata as m; print(*{d.metadata['Name'] + '==' + d.version for d in m.distributions()})"
    )
    listed = subprocess.run([program.split()[0], "-c", installed], capture_output=True, text=True).stdout.split()
    assert listed and set((capsule / "packages.txt").read_text().split()) == set(listed)
    environment = (capsule / "environment.json").read_text()
    assert "hush" not in environment and "MY_TOKEN" in environment
    execution = json.loads((capsule / "execution.json").read_text())
    assert HOST in json.dumps(execution)
    assert (capsule / "data.json").exists()


def test_what_is_killed_with_the_ranks_is_not_the_capsule(stoker, tmp_path):
    """While packages are still listed, a rank that does not end is killed."""
    slow = "import sys, time\nif sys.orig_argv[1:2] == ['-c']: time.sleep(7)\n"
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/sitecustomize.py").write_text(slow)
    text = "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    text += "sys.exit(5) if os.environ['RANK'] == '1' else time.sleep(600)\n"
    job = Job(tmp_path, python(tmp_path, "p.py", text), more="timeouts: {grace: 0s}\n")
    stoker("run", "job.yaml", code=5, env={"PYTHONPATH": str(tmp_path / "slow")})
    assert "==" in (job.run_folder() / "capsule/packages.txt").read_text()
    assert not job.processes()


def test_the_dry_run_shows_the_plan_and_writes_nothing(stoker, tmp_path):
    Job(tmp_path, "python train.py --lr 0.1", ranks=3)
    result = stoker("run", "job.yaml", "--dry-run", code=0)
    assert result.out == (
        "would run test, in runs/\n"
        "  ranks    3 ranks on this machine\n"
        "  command  python train.py --lr 0.1\n"
        f"  folder   {tmp_path}\n"
    )
    assert json.loads(stoker("run", "job.yaml", "--dry-run", "--json", code=0).out)["world_size"] == 3
    assert not (tmp_path / "runs").exists()


def test_json_is_one_value_and_the_ranks_output_stays_out_of_it(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'echo hello; test $RANK = 0 || exit 7'}")
    result = stoker("run", "job.yaml", "--json", code=7)
    value = json.loads(result.out)
    assert value["run"] == job.run_folder().name
    assert (value["state"], value["exit_code"], value["first_rank"], value["attempt"]) == ("failed", 7, 1, 1)
    assert "hello" in result.err


def test_set_overrides_a_job_value(stoker, tmp_path):
    job = Job(tmp_path, "env", ranks=1)
    stoker("run", "job.yaml", "--set", "resources.ranks_per_node=2", code=0)
    assert environment_of(job, 1)["WORLD_SIZE"] == "2"


def test_events_record_the_whole_run(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'sleep 0.2; exit $RANK'}")
    stoker("run", "job.yaml", code=1)
    lines = (job.run_folder() / "attempts/1/events-node-0000.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds[0] == "attempt_started" and kinds[-1] == "attempt_ended"
    assert kinds.count("rank_started") == kinds.count("rank_ended") == 2
    assert json.loads(lines[-1])["exit_code"] == 1


def test_resume_is_the_next_attempt_of_the_same_run(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'echo attempt dir $STOKER_ATTEMPT_DIR; test -e ok'}", ranks=1)
    first = stoker("run", "job.yaml", code=1)
    assert "try: stoker resume" not in first.err  # nothing to resume from
    (tmp_path / "ok").touch()
    again = stoker("resume", "last", "--from-start", code=0)
    name = job.run_folder().name
    assert again.err.splitlines()[0] == f"run {name}   attempt 2, from the start: there is no checkpoint yet"
    assert job.log(0, attempt=2).decode().strip().endswith("/attempts/2")
    done = stoker("resume", "last", code=2)
    assert done.err == (
        f"run {name}: is done, there is nothing to resume\n  try: stoker rerun {name}      (starts a new run)\n"
    )
    longer = stoker("resume", "last", "--from-start", "--set", "run=echo more", code=0)
    assert longer.out == "more\n"
    assert [path.name for path in sorted((job.run_folder() / "attempts").iterdir())] == ["1", "2", "3"]


def test_a_running_run_is_not_resumed(stoker, tmp_path):
    job = Job(tmp_path, "sleep 600", ranks=1)
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: job.pid(0, "sleep"))
    name = job.run_folder().name
    refused = stoker("resume", name, code=2)
    assert refused.err == f"run {name}: is still running\n  try: stoker logs -f {name}\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143


def test_two_runs_at_once_do_not_share_a_port(stoker, tmp_path):
    Job(tmp_path, "{shell: 'echo port $MASTER_PORT; sleep 1'}", ranks=1)
    processes = [stoker.start("run", "job.yaml") for _ in range(4)]
    ports = {process.communicate()[0] for process in processes}
    assert len(ports) == 4


def test_a_port_that_was_asked_for_and_is_taken_is_named(stoker, tmp_path):
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = "in use by another program on this host (MASTER_PORT; unset it to use a free port)"
        job = Job(tmp_path, "'true'")
        result = stoker("run", "job.yaml", code=3, env={"MASTER_PORT": str(port)})
        # One of the job's variables is the same wish.
        wish = f"environment.variables.MASTER_PORT={port}"
        again = stoker("run", "job.yaml", "--set", wish, code=3)
        assert again.err.splitlines()[1].endswith(f"port {port}: {taken}")
        # A port inherited from an outer run is ignored.
        stoker("run", "job.yaml", code=0, env={"MASTER_PORT": str(port), "RANK": "0"})
    lines = result.err.splitlines()
    assert re.fullmatch(rf"rank 0 \({HOST}, process \d+\): port {port}: {re.escape(taken)}", lines[1])
    assert lines[2] == "  no checkpoint yet"
    assert not job.processes()


def test_invalid_port_in_the_environment_is_refused_before_anything_is_written(stoker, tmp_path):
    Job(tmp_path, "'true'")
    refused = stoker("run", "job.yaml", code=2, env={"MASTER_PORT": "abc"})
    assert refused.err == "MASTER_PORT: 'abc' is not a port (environment)\n  try: unset MASTER_PORT\n"
    assert not (tmp_path / "runs").exists()
    for more in ({"RANK": "0"}, {"STOKER_SET_ENVIRONMENT_VARIABLES_MASTER_PORT": "23456"}):
        stoker("run", "job.yaml", "--dry-run", code=0, env={"MASTER_PORT": "abc"} | more)


def test_pytorch_ranks_rendezvous_at_the_reserved_port(stoker, tmp_path):
    # PyTorch's store listens with SO_REUSEADDR, which is what the reservation makes way for.
    text = (
        "import os, socket, time\n"
        "port = int(os.environ['MASTER_PORT'])\n"
        "if os.environ['RANK'] == '0':\n"
        "    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "    s.bind(('', port)); s.listen(); s.accept()[0].sendall(b'met')\n"
        "else:\n"
        "    for _ in range(100):\n"
        "        try:\n"
        "            print(socket.create_connection((os.environ['MASTER_ADDR'], port)).recv(9).decode()); break\n"
        "        except OSError: time.sleep(0.05)\n"
    )
    Job(tmp_path, python(tmp_path, "p.py", text))
    assert stoker("run", "job.yaml", code=0).out == "[1] met\n"


def test_what_cannot_run_is_refused_before_anything_is_written(stoker, tmp_path):
    job = Job(tmp_path, "'true'")
    assert stoker("run", "job.yaml", "--set", "resources.nodes=2", code=2).err == (
        "resources.nodes: 2 requested, 1 available (no Slurm allocation)\n  try: stoker run --set resources.nodes=1\n"
    )
    text = job.path.read_text()
    job.path.write_text(text + "data: {train: {source: nowhere}}\n")
    assert stoker("run", "job.yaml", code=1).err == (
        f"data.train.source: {tmp_path}/nowhere: no such folder\n  try: stoker data pack FOLDER {tmp_path}/nowhere\n"
    )
    job.path.write_text(text.replace("{variables", "{venv: nowhere, variables"))
    assert stoker("run", "job.yaml", code=1).err == (
        f"environment.venv: {tmp_path}/nowhere: no virtual environment (no bin/python)\n"
        f"  try: python3 -m venv {tmp_path}/nowhere\n"
    )
    zero = stoker("run", "job.yaml", "--set", "resources.ranks_per_node=0", code=2)
    assert "resources.ranks_per_node" in zero.err
    assert not (tmp_path / "runs").exists()


def test_srun_may_not_start_the_run_once_per_task(stoker, tmp_path):
    Job(tmp_path, "'true'")
    step = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1"}
    assert stoker("run", "job.yaml", code=2, env=step).err == (
        "run: srun started it 4 times, and each would be a separate run (SLURM_STEP_NUM_TASKS)\n"
        "  try: stoker run JOB      (without srun; it starts one rank per task)\n"
    )


def test_rank_without_a_run_names_the_command_that_starts_it(stoker):
    assert stoker("rank", "--", "true", code=2).err == (
        "rank: there is no run to join (STOKER_WORLD)\n  try: stoker run JOB      (starts the ranks)\n"
    )
    assert stoker("rank", code=2).err == "rank: no command after --\n  try: stoker run JOB\n"


def test_inside_an_allocation_srun_starts_one_rank_per_task(stoker, tmp_path):
    # A stand-in for srun: starts the tasks with the variables that Slurm gives them, on this machine.
    srun = tmp_path / "bin/srun"
    srun.parent.mkdir()
    srun.write_text(
        "#!/usr/bin/env python3\n"
        "import os, subprocess, sys\n"
        "words = sys.argv[1:]\n"
        "options = dict(w[2:].partition('=')[::2] for w in words if w.startswith('--') and w != '--')\n"
        "n = int(options['ntasks'])\n"
        "command = words[[i for i, w in enumerate(words) if not w.startswith('--')][0]:]\n"
        "assert 'SLURM_CPU_BIND' not in os.environ\n"
        "tasks = [subprocess.Popen(command, env=os.environ | {'SLURM_PROCID': str(i), 'SLURM_LOCALID': str(i),\n"
        "         'SLURM_NODEID': '0', 'SLURM_STEP_NUM_TASKS': str(n), 'SLURM_STEP_TASKS_PER_NODE': str(n)})\n"
        "         for i in range(n)]\n"
        "sys.exit(max(t.wait() for t in tasks))\n"
    )
    srun.chmod(0o755)
    run = (
        # Rank 1 fails once rank 0 has spoken: before that it might be ended without a word.
        "{shell: 'echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT; "
        "until test -s $STOKER_ATTEMPT_DIR/rank-0000.log; do sleep 0.05; done; exit $((RANK * 7))'}"
    )
    job = Job(tmp_path, run)
    allocation = {
        "PATH": f"{srun.parent}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": HOST if re.fullmatch(r"[\w-]+", HOST) else "n1",
        "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
    }
    result = stoker("run", "job.yaml", code=7, env=allocation)
    port = environment_line(job.log(0))
    assert f"rank 0 of 2 at 127.0.0.1:{port}" in result.out
    assert f"[1] rank 1 of 2 at 127.0.0.1:{port}" in result.out
    assert re.search(rf"rank 1 \({HOST}\) exited after [\d.]+ m?s: exit code 7\n", result.err)
    plan = json.loads(stoker("run", "job.yaml", "--dry-run", "--json", code=0, env=allocation).out)
    assert plan["with_srun"] is True
    assert not job.processes()


def environment_line(log: bytes) -> str:
    return log.decode().rpartition(":")[2].strip()


def test_starting_and_ending_costs_next_to_nothing(stoker, tmp_path):
    Job(tmp_path, "'true'")
    times = []
    for _ in range(5):
        start = time.monotonic()
        stoker("run", "job.yaml", code=0)
        times.append(time.monotonic() - start)
    # About 0.05 s on an idle machine; the bound leaves room for tests that run beside this one.
    assert min(times) < 2


@pytest.mark.parametrize("verb", ["run", "resume", "rank"])
def test_unknown_flags_are_refused(stoker, verb):
    assert stoker(verb, "--nonsense", code=2).err.startswith(f"{verb}: unknown option '--nonsense'")


METRICS = """\
import os
with open(os.environ["STOKER_ATTEMPT_DIR"] + "/metrics-0000.csv", "w") as file:
    file.write("time,epoch,step,samples,loss\\n1,0,1,8,3.5\\n2,0,2,8,2.77\\n")
"""


def test_a_run_ends_with_its_duration_and_last_loss(stoker, tmp_path):
    Job(tmp_path, python(tmp_path, "m.py", METRICS), ranks=1)
    lines = stoker("run", "job.yaml", code=0).err.splitlines()
    assert re.fullmatch(r"done, [\d.]+ m?s, loss 2\.77", lines[-2])
    assert lines[-1] == "  next: stoker report last"
    printed = json.loads(stoker("run", "job.yaml", "--json", code=0).out)
    assert (printed["state"], printed["loss"]) == ("done", 2.77)
    assert 0 < printed["seconds"] < 600


def test_the_checkpoint_folder_exists_when_the_command_starts(stoker, tmp_path):
    job = Job(tmp_path, "{shell: 'echo saved > $STOKER_CHECKPOINT_DIR/a.txt'}", ranks=2)
    stoker("run", "job.yaml", code=0)
    assert (job.run_folder() / "checkpoints/a.txt").read_text() == "saved\n"
    other = tmp_path / "elsewhere"
    stoker("run", "job.yaml", "--set", f"checkpoint.directory={other}", code=0)
    assert [path.name for path in other.glob("*/*")] == ["a.txt"]
    (tmp_path / "file").touch()
    before = len(list((tmp_path / "runs").iterdir()))
    refused = stoker("run", "job.yaml", "--set", f"checkpoint.directory={tmp_path}/file")
    assert refused.code != 0 and refused.err.startswith("checkpoint.directory: ")
    assert len(list((tmp_path / "runs").iterdir())) == before


@pytest.mark.needs("mount")
def test_output_lost_on_a_full_disk_is_recorded(stoker, tmp_path, tmpfs):
    disk = tmpfs("1M")
    program = python(tmp_path, "p.py", "for i in range(3 * 1024): print('x' * 1023)\n")
    Job(tmp_path, program, ranks=1, more=f"record: {{directory: {disk}/runs}}\n")
    done = stoker("run", "job.yaml", code=0)
    assert len(done.out) == 3 << 20  # the reader has everything
    lost = "no space left on device"
    assert len([line for line in done.err.splitlines() if lost in line]) == 1
    assert re.fullmatch(r"done, [\d.]+ m?s, but output was lost", done.err.splitlines()[-2])
    for words in (["status"], ["wait"], ["explain"]):
        shown = stoker(*words, "last", "--runs", f"{disk}/runs", code=0).out
        assert "done" in shown and lost in shown and "of output are missing" in shown, words
    assert stoker("wait", "last", "--runs", f"{disk}/runs", "--strict").code == 1
    report = json.loads(stoker("report", "last", "--runs", f"{disk}/runs", "--json", "--format", "json", code=0).out)
    assert report["runs"][0]["state"] == "done"
    assert any(lost in note for note in report["runs"][0]["notes"])


WAITS = """\
import os, sys, time
print("started", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
print("finished", flush=True)
sys.exit(int(open("go").read()))
"""
LOST = "done, but output was lost"


class Waiting:
    """A run of two ranks that wait until `end()`. Its output is in files."""

    def __init__(self, stoker, tmp_path):
        self.folder, self.job = tmp_path, Job(tmp_path, python(tmp_path, "w.py", WAITS))
        with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
            self.process = stoker.start("run", "job.yaml", stdout=out, stderr=err)
        wait_for(lambda: self.job.log(0) == self.job.log(1) == b"started\n")
        self.run = self.job.run_folder()
        # It is written beside the ranks, and would make a removal file by file fail.
        wait_for((self.run / "capsule/environment.json").exists)

    def remove(self, path):
        path.rename(self.folder / "removed")
        shutil.rmtree(self.folder / "removed")

    def errors(self) -> list[str]:
        return (self.folder / "err").read_text().splitlines()

    def end(self, code: int = 0) -> int:
        (self.folder / "code").write_text(str(code))
        (self.folder / "code").rename(self.folder / "go")
        return self.process.wait()


def test_a_removed_run_folder_is_reported_while_the_ranks_continue(stoker, tmp_path):
    waiting = Waiting(stoker, tmp_path)
    waiting.remove(waiting.run)
    lost = f"run folder {waiting.run}: was removed during the run; logs, events, metrics and checkpoints in it are lost"
    wait_until(lambda: lost in waiting.errors(), "the report of the removal", timeout=30)
    assert waiting.end() == 1
    assert waiting.errors()[1:] == [lost, LOST]
    printed = (tmp_path / "out").read_text().splitlines()
    assert sorted(printed) == ["[1] finished", "[1] started", "finished", "started"]
    assert list((tmp_path / "runs").iterdir()) == []  # not even a part of it came back


def test_the_exit_code_of_a_failed_rank_outlives_its_run_folder(stoker, tmp_path):
    waiting = Waiting(stoker, tmp_path)
    waiting.remove(waiting.run)
    assert waiting.end(7) == 7  # perhaps before the first check
    errors = waiting.errors()
    assert len([line for line in errors if "was removed during the run" in line]) == 1
    assert any(re.fullmatch(r"rank [01] \(\S+\) exited after .+: exit code 7", line) for line in errors)
    assert not any("stoker resume" in line or "stoker report" in line or ".log" in line for line in errors)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_moved_run_folder_keeps_open_logs_and_can_be_moved_back(stoker, tmp_path):
    waiting = Waiting(stoker, tmp_path)
    waiting.run.rename(tmp_path / "kept")
    lost = f"run folder {waiting.run}: was moved to {tmp_path}/kept during the run; new files are not written there"
    wait_until(lambda: lost in waiting.errors(), "the report of the move", timeout=30)
    assert waiting.end() == 1
    cure = f"mv {tmp_path}/kept {waiting.run}"
    assert waiting.errors()[1:] == [lost, f"  try: {cure}", LOST]
    assert list((tmp_path / "runs").iterdir()) == []
    subprocess.run(cure, shell=True, check=True)
    assert [waiting.job.log(rank) for rank in (0, 1)] == [b"started\nfinished\n"] * 2
    assert f"done ({lost})" in stoker("wait", "last", code=0).out
    assert stoker("wait", "last", "--strict").code == 1


def test_a_replaced_run_folder_is_reported_and_stays_empty(stoker, tmp_path):
    waiting = Waiting(stoker, tmp_path)
    waiting.run.rename(tmp_path / "kept")
    (waiting.run / "attempts/1").mkdir(parents=True)
    lost = f"run folder {waiting.run}: was replaced during the run; its logs, events and metrics are in {tmp_path}/kept"
    wait_until(lambda: lost in waiting.errors(), "the report of the replacement", timeout=30)
    assert waiting.end() == 1
    assert waiting.errors()[1:] == [lost, LOST]
    assert list((waiting.run / "attempts/1").iterdir()) == []
    assert (tmp_path / "kept/attempts/1/rank-0001.log").read_text() == "started\nfinished\n"


def test_removed_attempts_of_a_run_are_reported(stoker, tmp_path):
    waiting = Waiting(stoker, tmp_path)
    waiting.remove(waiting.run / "attempts")
    attempt = waiting.run / "attempts/1"
    lost = f"attempt folder {attempt}: was removed during the run; logs, events and metrics in it are lost"
    assert waiting.end() == 1
    assert waiting.errors()[1:] == [lost, LOST]
    assert not attempt.exists()


def test_a_removed_log_is_lost_output(stoker, tmp_path):
    waiting = Waiting(stoker, tmp_path)
    log = waiting.run / "attempts/1/rank-0001.log"
    log.unlink()
    assert waiting.end() == 0
    (lost,) = [line for line in waiting.errors() if "during the run" in line]
    assert re.fullmatch(rf"rank 1 \(\S+\): {re.escape(str(log))}: was removed during the run; its output is lost", lost)
    assert re.fullmatch(r"done, [\d.]+ m?s, but output was lost", waiting.errors()[-2])
    assert f"done ({lost})" in stoker("wait", "last", code=0).out
    assert stoker("wait", "last", "--strict").code == 1


def test_secrets_stay_out_of_the_records_and_values_are_for_the_owner(stoker, tmp_path):
    token = "hf_" + "0123456789abcdef" * 2
    job = Job(tmp_path, "{shell: 'test -n \"$HF_TOKEN\"'}", ranks=1)
    wish = f"environment.variables.HF_TOKEN={token}"
    done = stoker("run", "job.yaml", "--set", wish, code=0, env={"NOTE": f"use {token}", "DB_PWD": "hush"})
    assert token not in done.err + done.out
    run = job.run_folder()
    kept = {
        path.relative_to(run).as_posix()
        for path in run.rglob("*")
        if path.is_file() and token.encode() in path.read_bytes()
    }
    assert kept == {"job.yaml", "attempts/1/job.yaml"}  # the run needs it
    for name in (*kept, "capsule/environment.json"):
        assert (run / name).stat().st_mode & 0o777 == 0o600, name
    variables = json.loads((run / "capsule/environment.json").read_text())["variables"]
    assert (variables["NOTE"], variables["DB_PWD"], variables["HF_TOKEN"]) == ("use (hidden)", "(hidden)", "(hidden)")
    assert json.loads((run / "run.json").read_text())["typed"][-1] == "environment.variables.HF_TOKEN=(hidden)"
    again = stoker(
        "resume", "last", "--from-start", "--set", "run=true", "--set", "environment.variables.HF_TOKEN=other", code=0
    )
    assert "environment.variables.HF_TOKEN: (hidden) → (hidden)" in again.err
    assert token not in stoker("report", "last", "--format", "text", code=0).out
