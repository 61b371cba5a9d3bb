"""User scripts through `stoker submit SCRIPT`: they get the environment of `sbatch SCRIPT`, and a run is
recorded around them."""

import json
import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")


def write(runs: Runs, text: str, name: str = "train.sh") -> Path:
    script = runs.folder / name
    script.write_text(textwrap.dedent(text))
    return script


def submit(runs: Runs, *words: str, **options) -> str:
    return json.loads(runs.stoker("submit", "--json", *words, **options).out)["job"]


def test_a_script_is_submitted_followed_and_recorded(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH --time=00:15:00\necho Hello, $1\necho Bye >&2\n", "hello.sh")
    output = runs.stoker("submit", "hello.sh", "World").out
    assert re.fullmatch(
        r"submitted (\d+) \(hello\.sh\)\n"
        r"  run   (runs/\S+_hello_\w{4})\n"
        r"  next  stoker status last, stoker logs -f last, stoker wait last, stoker cancel last\n",
        output,
    )
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert runs.stoker("logs", "last").out == "[0] Hello, World\n[0] Bye\n"
    capsule = json.loads((runs.run / "run.json").read_text())
    assert capsule["command"] == ["hello.sh", "World"]
    assert (runs.run / "attempts/1/slurm_script").read_text() == (runs.folder / "hello.sh").read_text()


FACTS = """\
    #!/bin/bash
    #SBATCH --job-name=facts --nodes=2
    #SBATCH --ntasks-per-node=2   # as in every course
    #SBATCH --output=facts-%x.out
    set -u
    echo "name $(basename "$0") args $# <$1> <$2>"
    echo "job $SLURM_JOB_NAME nodes $SLURM_JOB_NUM_NODES tasks $SLURM_NTASKS_PER_NODE"
    echo "directory $PWD submitted from $SLURM_SUBMIT_DIR"
    echo "leads $(($(ps -o pgid= -p $$) == $$)) input $(readlink /proc/$$/fd/0) mine $MINE"
    srun --label hostname | sort
    exit 3
    """


def test_a_script_finds_what_sbatch_alone_gives_it(runs: Runs):
    write(runs, FACTS, "facts.sh")
    seen = {}
    for how in ("sbatch", "stoker submit"):
        words = [*how.split(), "facts.sh", "a b", "$(date)"]
        done = runs.lab.run(*words, cwd=runs.folder, env={"MINE": "x y"})
        job = re.search(r"\d+", done.out)[0]
        runs.lab.wait_for(job, "FAILED")
        code = re.search(r"ExitCode=(\S+)", runs.lab.run("scontrol", "show", "job", job).out)[1]
        seen[how] = (runs.folder / "facts-facts.out").read_text(), code
        (runs.folder / "facts-facts.out").unlink()
    assert seen["stoker submit"] == seen["sbatch"]
    assert seen["sbatch"][1] == "3:0"
    assert "0: n1\n1: n1\n2: n2\n3: n2\n" in seen["sbatch"][0] or runs.lab.mode == "processes"
    assert runs.wait(code=3).endswith("(the script ended: exit code 3)\n")


def test_missing_log_folders_are_created_with_a_note(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH -o logs/%x-%j.out\n#SBATCH -e errors/%j.err\necho out\necho err >&2\n")
    shown = runs.stoker("submit", "train.sh", "--dry-run")
    assert "would create logs: without it Slurm would kill the job silently\n" in shown.err
    assert not (runs.folder / "logs").exists()
    output = runs.stoker("submit", "train.sh").out
    assert "  made  logs: without it Slurm would kill the job silently\n" in output
    runs.wait()
    (out,) = (runs.folder / "logs").iterdir()
    assert out.read_text() == "out\n"
    assert runs.log(0) == "out\n"  # a link
    assert runs.batch_log() == "err\n"


def test_a_log_folder_that_cannot_be_made_is_refused_with_its_line(runs: Runs):
    script = write(runs, "#!/bin/bash\n\n#SBATCH --output=train.sh/logs/%j.out\necho out\n")
    assert runs.stoker("submit", "train.sh", code=2).err == (
        f"--output: the log folder train.sh/logs does not exist and cannot be created in {script} (train.sh:3)\n"
        "  try: stoker submit train.sh --sbatch=--output=FILE\n"
    )


def test_sbatch_errors_name_the_line(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntaks-per-node=4\ntrue\n")
    refused = runs.stoker("submit", "train.sh", code=2).err
    assert refused.endswith(
        "[misspelt-option]\n  stoker submit --force submits it anyway\n  try: stoker check train.sh\n"
    )
    refused = runs.stoker("submit", "--force", "train.sh", code=2).err
    assert "unrecognized option '--ntaks-per-node=4'" in refused
    assert refused.endswith("(train.sh:3; did you mean '--ntasks-per-node'?)\n")
    write(runs, "#!/bin/bash\n#SBATCH --partition=nowhere\ntrue\n")
    assert runs.stoker("submit", "train.sh", code=2).err.endswith("(train.sh:2)\n")
    assert not list((runs.folder / "runs").iterdir()), "a refusal leaves no run"


def test_slurm_reports_in_advance_whether_it_accepts_a_script_or_a_job(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00\ntrue\n")
    output = runs.stoker("submit", "--check", "train.sh").out
    assert re.fullmatch(
        r"would be accepted: to start at \S+ using \d+ processors on nodes n\[?\S+ in partition \w+\n", output
    )
    refused = runs.stoker("submit", "--check", "train.sh", "--sbatch=--nodes=400", code=2).err
    assert refused.startswith("sbatch: ")
    runs.job("true", "nodes: 400")
    assert "resources.nodes: 400 requested, but partition" in runs.stoker("submit", "--check", "job.yaml", code=2).err
    assert "sbatch: " in runs.stoker("submit", "--check", "--force", "job.yaml", code=2).err
    runs.job("true", "nodes: 2")
    assert runs.stoker("submit", "--check", "job.yaml").out.startswith("would be accepted: ")
    assert not (runs.folder / "runs").exists()


def test_a_script_resumes_as_the_next_attempt_of_its_run(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH --nodes=1\necho $1 in $(basename $STOKER_ATTEMPT_DIR)\n[ -e ready ]\n")
    submit(runs, "train.sh", "World", "--sbatch=--time=5:00")
    assert runs.wait(code=1).endswith("(the script ended: exit code 1)\n")
    (runs.folder / "ready").touch()
    shown = runs.stoker("resume", "last", "--dry-run").out
    assert shown.endswith(f"run {runs.run}/attempts/2\n") and "#SBATCH --time=5:00\n" in shown
    output = runs.stoker("resume", "last").out
    assert re.fullmatch(r"submitted \d+ \(train\.sh\)\n  run   \S+\n  attempt 2\n  next  .*\n", output)
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert runs.stoker("logs", "last").out == "[0] World in 2\n"
    assert [run.name for run in (runs.folder / "runs").iterdir()] == [runs.run.name]
    refused = runs.stoker("resume", "last", code=2).err
    assert refused == f"run {runs.run.name}: is done, there is nothing to resume\n"
    first = runs.run
    runs.stoker("rerun", "last")
    assert runs.wait() == f"run {runs.run.name}: done\n" and runs.run != first
    assert runs.stoker("logs", "last").out == "[0] World in 1\n"


def test_what_is_not_done_of_a_scripts_array_has_a_command(runs: Runs):
    options = "#SBATCH --array=1-3 --output=/dev/null"
    write(runs, f"#!/bin/bash\n{options}\n[ $SLURM_ARRAY_TASK_ID != 2 ] || [ -e ready ]\n")
    submit(runs, "train.sh")
    runs.wait(code=1)
    refused = runs.stoker("resume", "last", code=2).err
    assert refused == (
        f"run {runs.run.name}: is an array, 1 of 3 tasks unfinished: submit them as a new run\n"
        "  try: stoker submit --sbatch=--array=2 train.sh\n"
    )
    (runs.folder / "ready").touch()
    runs.stoker(*refused.split("stoker ")[1].split())
    assert runs.wait() == f"run {runs.run.name}: done\n"


def test_a_warning_before_the_end_reaches_the_script_and_only_it(runs: Runs):
    script = """\
        #!/bin/bash
        #SBATCH --output=warned.out
        trap 'echo warned; exit 75' USR1
        (trap 'echo child warned' USR1; for _ in $(seq 600); do sleep 0.1; done) &
        echo ready
        while :; do sleep 0.1; done
        """
    write(runs, script)
    job = submit(runs, "train.sh")
    log = runs.folder / "warned.out"
    wait_until(lambda: log.exists() and "ready" in log.read_text(), "the script is ready")
    runs.lab.run("scancel", "--batch", "--signal=USR1", job)
    assert "stopped" in runs.wait(code=75)
    assert log.read_text() == "ready\nwarned\n"


def test_a_cancelled_script_runs_its_trap_once_and_is_reported(runs: Runs):
    script = """\
        #!/bin/bash
        trap 'echo cleaning; exit 0' TERM
        echo ready
        while :; do sleep 0.1; done
        """
    write(runs, script)
    job = submit(runs, "train.sh")
    wait_until(lambda: "ready" in runs.stoker("logs", "last", code=None).out, "the script is ready")
    runs.stoker("cancel", "last")
    runs.stoker("wait", "last", code=None)
    runs.lab.wait_for(job, "CANCELLED")
    assert runs.log(0).count("cleaning") == 1
    assert runs.status()["state"] == "cancelled"


def test_a_requeued_script_is_the_runs_next_attempt(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH --requeue\necho start ${SLURM_RESTART_COUNT:-0}\n[ -e go ] || sleep 300\n")
    job = submit(runs, "train.sh")
    wait_until(lambda: "start 0" in runs.stoker("logs", "last", code=None).out, "the script has begun")
    (runs.folder / "go").touch()
    runs.lab.run("scontrol", "requeue", job)
    runs.wait()
    now = runs.status()
    assert (now["state"], now["attempts"]) == ("done", 2)
    assert "start 1" in runs.log(0, attempt=2)


def test_any_interpreter_and_an_environment_that_is_not_exported(runs: Runs):
    write(
        runs,
        """\
        #!/usr/bin/env python3
        #SBATCH --export=NONE
        import os, sys
        print(sys.argv[1:], os.environ.get("MINE"), os.path.basename(os.environ["STOKER_RUN_DIR"]))
        """,
        "train.py",
    )
    runs.stoker("submit", "train.py", "--", "--lr", "0.1", env={"MINE": "x"})
    runs.wait()
    assert runs.log(0) == f"['--lr', '0.1'] None {runs.run.name}\n"


def test_an_array_of_tasks_is_one_run(runs: Runs):
    write(runs, "#!/bin/bash\n#SBATCH --array=1-3%1\necho task $SLURM_ARRAY_TASK_ID\n[ $SLURM_ARRAY_TASK_ID != 2 ]\n")
    output = runs.stoker("submit", "train.sh").out
    assert output.startswith("submitted ")
    assert "(train.sh, 3 tasks)" in output
    failed = runs.wait(code=1)
    assert failed == f"run {runs.run.name}: failed (the script ended: exit code 1)\n"
    assert [runs.log(task) for task in (1, 2, 3)] == ["task 1\n", "task 2\n", "task 3\n"]


HOSTILE = [
    "x; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a'b\"c\\d",
    "--help",
    "é漢字 €",
    "a\nb",
    "#SBATCH -x",
    "%j",
    "*",
]


def test_nothing_that_users_write_is_run_or_lost(runs: Runs):
    """Names, paths, arguments: as data, in the batch script, in Slurm and in the script that gets them."""
    folder = runs.folder / "my $(touch PWNED) 'quoted' folder"
    folder.mkdir()
    script = folder / "it's; a `script` #1.sh"
    script.write_text('#!/bin/bash\nprintf "%s\\0" "$@" > "$(dirname "$OUT")/got"\n')
    runs.stoker("submit", script.name, "--", *HOSTILE, cwd=folder, env={"OUT": str(folder / "out")})
    runs.stoker("wait", "last", cwd=folder)
    assert (folder / "got").read_text().split("\0")[:-1] == HOSTILE
    assert not list(runs.folder.rglob("PWNED"))
    (run,) = (folder / "runs").iterdir()
    batch = run / "attempts/1/job.sbatch"
    subprocess.run(["bash", "-n", batch], check=True)
    if subprocess.run(["sh", "-c", "command -v shellcheck"], capture_output=True).returncode == 0:
        subprocess.run(["shellcheck", batch], check=True)
    assert os.stat(run / "attempts/1/slurm_script").st_mode & 0o777 == 0o700
