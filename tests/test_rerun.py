"""stoker rerun: runs a job again as a new run, and lists differences."""

import subprocess
from pathlib import Path

JOB = "name: again\nrun: {shell: 'echo lr ${params.lr}'}\nparams: {lr: 0.1}\n"


def folders(stoker) -> list[Path]:
    return sorted((stoker.folder / "runs").iterdir(), key=lambda run: run.stat().st_mtime_ns)


def test_a_run_is_run_again_from_its_own_job(stoker):
    job = stoker.folder / "job.yaml"
    job.write_text(JOB)
    stoker("run", "job.yaml", code=0)
    (first,) = folders(stoker)
    job.write_text(JOB.replace("0.1", "0.5"))
    again = stoker("rerun", "last", code=0)
    assert again.out == "lr 0.1\n"
    notes = again.err.splitlines()
    assert notes[0] == f"rerun: {first.name} with differences:"
    assert "  job file: params.lr is 0.5 in job.yaml now; the run keeps 0.1" in notes
    assert len(folders(stoker)) == 2
    job.write_text(JOB)
    same = stoker("rerun", first.name, "--set", "resources.ranks_per_node=2", code=0)
    assert sorted(same.out.split()) == ["0.1", "0.1", "[1]", "lr", "lr"]
    refused = stoker("rerun", first.name, "--set", "params.lr=0.2", code=2).err
    assert "--set params.lr=0.2: its command already contains the values of params" in refused


def test_changed_code_is_reported(stoker):
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=stoker.folder, check=True, capture_output=True)

    patient = JOB.replace("echo", "until [ -e $STOKER_RUN_DIR/capsule/code.json ]; do sleep 0.1; done; echo")
    (stoker.folder / "job.yaml").write_text(patient)
    (stoker.folder / ".gitignore").write_text("runs\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    stoker("run", "job.yaml", code=0)
    git("commit", "-qm", "two", "--allow-empty")
    (stoker.folder / "job.yaml").write_text(patient + "# changed\n")
    notes = stoker("rerun", "last", "--dry-run", code=0).err
    assert "  code: commit " in notes and " then, commit " in notes
    assert "  code: there are uncommitted changes now\n" in notes
    assert len(folders(stoker)) == 1


def test_a_reader_who_leaves_ends_nothing(stoker):
    (stoker.folder / "job.yaml").write_text(
        "name: again\nrun: {shell: 'sleep 0.5; echo done > $STOKER_RUN_DIR/done'}\n"
    )
    stoker("run", "job.yaml", code=0)
    command = f"{stoker.path} rerun last 2>&1 | head -1"
    subprocess.run(["sh", "-c", command], cwd=stoker.folder, check=True, capture_output=True, timeout=60)
    _, second = folders(stoker)
    assert (second / "done").read_text() == "done\n"


def test_no_differences_are_reported_too(stoker):
    (stoker.folder / "job.yaml").write_text(JOB)
    stoker("run", "job.yaml", code=0)
    (first,) = folders(stoker)
    notes = stoker("rerun", "last", code=0).err
    assert notes.startswith(f"rerun: {first.name} (no differences in job, code, data and programs)\n")


def test_a_run_that_is_not_there_cannot_be_run_again(stoker):
    (stoker.folder / "runs").mkdir()
    assert stoker("rerun", "last", code=1).err == "run 'last': no runs in runs\n  try: stoker run JOB\n"
