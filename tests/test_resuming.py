"""Refusals, messages and waits of `stoker resume`."""

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
import run_folders
from running import Job, finish, python, wait_for

JOB = """\
name: resnet20
train: {model: cifar-resnet20, epochs: 3, seed: 1}
data:
  train: {source: DATASET, split: train}
  validation: {source: DATASET, split: test}
checkpoint: {directory: /scratch/saved}
"""


@pytest.fixture
def run(stoker, example_dataset) -> run_folders.RunFolder:
    """A training that failed in its first attempt."""
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.ended(1, run_folders.BEGIN + 9, "failed", 137)
    (folder.attempt(1) / "job.yaml").write_text(JOB.replace("DATASET", str(example_dataset)))
    manifest = json.loads((example_dataset / "manifest.json").read_text())
    facts = {"name": "train", "source": str(example_dataset), "split": "train", "version": manifest["version"]}
    folder.capsule(data={"datasets": [facts]})
    return folder


@pytest.mark.parametrize(
    ("setting", "change", "why"),
    [
        ("train.model=resnet18", "cifar-resnet20 to resnet18", "its checkpoints have the old model"),
        ("train.classes=7", "its default to 7", "its checkpoints have the old model"),
        ("train.seed=2", "1 to 2", "its sample order depends on it"),
        ("train.training_data=validation", "train to validation", "its epochs use the old data"),
        ("data.train.split=test", "train to test", "its epochs use the old data"),
        ("checkpoint.directory=/other", "/scratch/saved to /other", "its checkpoints are in the old folder"),
        ("name=other", "resnet20 to other", "its folder has this name"),
    ],
)
def test_what_makes_another_run_is_refused(stoker, run, setting, change, why):
    key = setting.partition("=")[0]
    refused = stoker("resume", "last", "--set", setting, code=2)
    assert refused.err == (
        f"run {run.path.name}: {key}: cannot change from {change}: {why} (--set {key})\n"
        f"  try: stoker run job.yaml --set {setting}      (starts a new run)\n"
    )
    assert [path.name for path in (run.path / "attempts").iterdir()] == ["1"]


def test_a_folder_of_runs_elsewhere_is_refused(stoker, run):
    refused = stoker("resume", "last", "--set", "record.directory=/elsewhere", code=2)
    assert (
        f"record.directory: cannot change from {stoker.folder}/runs to /elsewhere: its folder is in the old place"
        in refused.err
    )


def test_another_kind_of_job_is_refused(stoker, run):
    refused = stoker("resume", "last", "--set", "train=null", "--set", "run=echo", code=2)
    assert refused.err == (f"run {run.path.name}: cannot change from train to run: its checkpoints do not fit\n")


def test_another_version_of_the_dataset_is_refused(stoker, run, photos, example_dataset):
    stoker("data", "pack", "photos", "other", code=0)
    version = json.loads(Path(stoker.folder / "other/manifest.json").read_text())["version"][:8]
    began = json.loads((example_dataset / "manifest.json").read_text())["version"][:8]
    refused = stoker("resume", "last", "--set", "data.train.source=other", code=2)
    assert refused.err == (
        f"run {run.path.name}: data.train.source: {stoker.folder}/other is version {version}, the run started with {began} "
        "(--set data.train.source)\n"
        "  try: stoker run job.yaml      (starts a new run)\n"
    )


def test_what_may_change_is_taken(stoker, run, example_dataset):
    (stoker.folder / "moved").symlink_to(example_dataset)  # the same version in another place
    settings = ["train.epochs=5", "train.optimizer.lr=0.01", "resources.ranks_per_node=4", "data.train.source=moved"]
    shown = stoker("resume", "last", "--dry-run", *(word for text in settings for word in ("--set", text)))
    assert "cannot change" not in shown.err
    lines = [line for line in shown.err.splitlines() if line.startswith("changed: ")]
    assert lines == [
        "changed: train.epochs: 3 → 5 (--set train.epochs)",
        "changed: train.optimizer.lr: 0.1 → 0.01 (--set train.optimizer.lr)",
        "changed: resources.ranks_per_node: 1 → 4 (--set resources.ranks_per_node)",
        f"changed: data.train.source: {example_dataset} → {stoker.folder}/moved (--set data.train.source)",
        "changed: ranks: 1 → 4",
    ]
    assert shown.code in (0, 1)  # 1: this build has no stoker-train
    assert shown.code == 0 or "stoker-train" in shown.err


@pytest.mark.parametrize(
    ("run", "key", "now"),
    [
        ("\"sh -c 'echo lr ${params.lr}; exit 1'\"", "run", "sh -c 'echo lr 0.1; exit 1'"),
        ("{shell: 'echo lr ${params.lr}; exit 1'}", "run.shell", "echo lr 0.1; exit 1"),
    ],
)
def test_params_that_would_change_nothing_are_refused_with_what_would(stoker, run: str, key: str, now: str):
    (stoker.folder / "job.yaml").write_text(f"name: again\nrun: {run}\nparams: {{lr: 0.1}}\n")
    stoker("run", "job.yaml", code=1)
    refused = stoker("resume", "last", "--set", "params.lr=0.2", code=2).err.splitlines()
    (folder,) = (stoker.folder / "runs").iterdir()
    assert refused[0] == f"run {folder.name}: --set params.lr=0.2: its command already contains the values of params"
    cure, _, rest = refused[1].rpartition("      ")
    assert rest == "(with the new value)"
    words = shlex.split(cure)
    assert words == ["try:", "stoker", "resume", folder.name, "--set", f"{key}={now}"]
    changed = stoker("resume", "last", "--from-start", "--set", words[-1].replace("0.1", "0.2"), code=1)
    assert changed.out == "lr 0.2\n"


# The first failed rank ends its peers, so all ranks must have printed before.
RENDEZVOUS = """\
cd "$(dirname "$0")"
touch ready-$WORLD_SIZE-$RANK
until [ -e ready-$WORLD_SIZE-0 ] && [ -e ready-$WORLD_SIZE-$((WORLD_SIZE - 1)) ]; do sleep 0.02; done
"""


def test_edited_job_file_is_reported_and_not_used(stoker):
    rendezvous = stoker.folder / "rendezvous.sh"
    rendezvous.write_text(RENDEZVOUS)
    job = stoker.folder / "job.yaml"
    job.write_text(
        f"name: again\nrun: {{shell: 'echo lr ${{params.lr}}; sh {rendezvous}; exit 1'}}\nparams: {{lr: 0.1}}\n"
    )
    stoker("run", "job.yaml", code=1)
    assert "job file: " not in stoker("resume", "last", "--from-start", code=1).err
    job.write_text(job.read_text().replace("0.1", "0.5") + "resources: {ranks_per_node: 2}\n")
    resumed = stoker("resume", "last", "--from-start", code=1)
    assert resumed.out == "lr 0.1\n"
    before, now = (f"echo lr {lr}; sh {rendezvous}; exit 1" for lr in (0.1, 0.5))
    assert [line for line in resumed.err.splitlines() if line.startswith("job file: ")] == [
        f'job file: run.shell is "{now}" in job.yaml now; the run keeps "{before}" '
        f"(to change it: --set 'run.shell={now}')",
        "job file: params.lr is 0.5 in job.yaml now; the run keeps 0.1",
        "job file: resources.ranks_per_node is 2 in job.yaml now; the run keeps 1 "
        "(to change it: --set resources.ranks_per_node=2)",
    ]
    changes = ("--set", f"run.shell={now}", "--set", "resources.ranks_per_node=2")
    taken = stoker("resume", "last", "--from-start", *changes, code=1)
    assert sorted(taken.out.splitlines()) == ["[1] lr 0.5", "lr 0.5"]
    lines = [line for line in taken.err.splitlines() if line.startswith("job file: ")]
    assert lines == ["job file: params.lr is 0.5 in job.yaml now; the run keeps 0.1"]


OWN_FOLDER = """\
import os, pathlib
saved = pathlib.Path("saved.txt")
print("epoch 0 over", saved.read_text() if saved.exists() else "nothing", flush=True)
saved.write_text("epoch 3")
raise SystemExit(1)
"""


@pytest.mark.parametrize("where", ["in the run", "elsewhere"])
def test_a_resume_without_a_checkpoint_needs_from_start(stoker, where: str):
    (stoker.folder / "own.py").write_text(OWN_FOLDER)
    folder = stoker.folder / "kept"
    checkpoint = "" if where == "in the run" else f"checkpoint: {{directory: {folder}}}\n"
    (stoker.folder / "job.yaml").write_text(f"name: own\nrun: python3 own.py\n{checkpoint}")
    stoker("run", "job.yaml", code=1)
    (run,) = (stoker.folder / "runs").iterdir()
    searched = run / "checkpoints" if where == "in the run" else folder / run.name
    refused = stoker("resume", "last", code=1).err.splitlines()
    assert refused == [
        f"run {run.name}: no checkpoint in {searched} (STOKER_CHECKPOINT_DIR), and attempt 1 has run: it would start at "
        "the beginning, also over checkpoints in a separate folder",
        f"  try: stoker resume {run.name} --from-start",
    ]
    assert [each.name for each in (run / "attempts").iterdir()] == ["1"]
    again = stoker("resume", run.name, "--from-start", code=1)
    assert again.out == "epoch 0 over epoch 3\n"


def test_from_start_does_not_ignore_a_checkpoint(stoker):
    text = (
        "import os, pathlib, sys\n"
        "folder = pathlib.Path(os.environ['STOKER_CHECKPOINT_DIR'])\n"
        "folder.mkdir(parents=True, exist_ok=True)\n"
        "(folder / 'step=20.safetensors').write_bytes(bytes([2] + 7 * [0]) + b'{}')\n"
        "sys.exit(1)\n"
    )
    (stoker.folder / "save.py").write_text(text)
    (stoker.folder / "job.yaml").write_text("name: saves\nrun: python3 save.py\n")
    stoker("run", "job.yaml", code=1)
    (run,) = (stoker.folder / "runs").iterdir()
    refused = stoker("resume", "last", "--from-start", code=2).err.splitlines()
    assert refused == [
        f"run {run.name}: has the checkpoint step=20.safetensors, and --from-start would overwrite it",
        f"  try: stoker rerun {run.name}",
    ]


# Needs its time to save when it is asked to end.
SAVES_LATE = """\
import os, signal, sys, time
def save(number, frame):
    time.sleep(1.5)
    os.makedirs(os.environ["STOKER_CHECKPOINT_DIR"], exist_ok=True)
    with open(os.environ["STOKER_CHECKPOINT_DIR"] + "/late.safetensors", "wb") as file:
        file.write(bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{}")
    sys.exit(75)
if os.environ["STOKER_RESUME"]:
    print(os.environ["STOKER_RESUME"])
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("run", ["{command}", "{{shell: '{command}; exit $?'}}"])  # a shell is gone before its command
def test_resume_uses_the_checkpoint_of_orphan_ranks(stoker, tmp_path, run):
    job = Job(tmp_path, run.format(command=python(tmp_path, "late.py", SAVES_LATE)), ranks=1)
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: b"ready" in job.log(0))
    process.kill()
    process.wait()
    resumed = stoker("resume", "last", code=0)
    name = job.run_folder().name
    waiting, begun = resumed.err.splitlines()[:2]
    assert re.fullmatch(r"waiting for rank 0 \(pid \d+\) of attempt 1 to end \.\.\.", waiting)
    assert begun == f"run {name}   attempt 2, from runs/{name}/checkpoints/late.safetensors"
    assert resumed.out == f"{tmp_path}/runs/{name}/checkpoints/late.safetensors\n"
    wait_for(lambda: not job.processes())  # what the capsule asks for ends by itself


# Its checkpoint is as new as can be, and watched for two seconds before a run resumes from it.
SAVES_AND_FAILS = """\
import os, pathlib, sys, time
if os.environ["STOKER_RESUME"]:
    print("ready", flush=True)
    time.sleep(600)
folder = pathlib.Path(os.environ["STOKER_CHECKPOINT_DIR"])
folder.mkdir(parents=True, exist_ok=True)
(folder / "last.safetensors").write_bytes(bytes([2] + 7 * [0]) + b"{}")
sys.exit(1)
"""


def test_one_of_two_concurrent_resumes_proceeds(stoker, tmp_path):
    job = Job(tmp_path, python(tmp_path, "fails.py", SAVES_AND_FAILS), ranks=1)
    stoker("run", "job.yaml", code=1)
    run = job.run_folder()
    os.utime(run / "checkpoints/last.safetensors")
    both = [stoker.start("resume", "last") for _ in range(2)]
    wait_for(lambda: b"ready" in job.log(0, attempt=2))
    wait_for(lambda: any(each.poll() is not None for each in both))
    (refused,) = [each for each in both if each.poll() is not None]
    (proceeding,) = [each for each in both if each is not refused]
    assert finish(refused) == (
        2,
        [f"run {run.name}: is still running", f"  try: stoker logs -f {run.name}"],
    )
    assert sorted(path.name for path in (run / "attempts").iterdir()) == ["1", "2"]
    proceeding.send_signal(signal.SIGINT)
    assert finish(proceeding)[0] == 130
    wait_for(lambda: not job.processes())


def test_the_wait_for_ranks_that_do_not_end_can_be_interrupted(stoker, tmp_path):
    text = (
        "import signal, time\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    job = Job(tmp_path, python(tmp_path, "deaf.py", text), ranks=1, more="timeouts: {grace: 10m}\n")
    process = stoker.start("run", "job.yaml")
    wait_for(lambda: b"ready" in job.log(0))
    (pid,) = job.running("deaf.py")
    try:
        process.kill()
        process.wait()
        resume = stoker.start("resume", "last")
        assert resume.stderr.readline() == f"waiting for rank 0 (pid {pid}) of attempt 1 to end ...\n"
        resume.send_signal(signal.SIGINT)
        code, err = finish(resume)
    finally:
        os.kill(pid, signal.SIGKILL)
    assert code == 130
    run = job.run_folder()
    assert err == [f"run {run.name}: not resumed: rank 0 (pid {pid}) of attempt 1 has not ended"]
    assert [path.name for path in (run / "attempts").iterdir()] == ["1"]
    wait_for(lambda: not job.processes())
