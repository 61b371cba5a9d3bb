"""`stoker submit` without a cluster: its script, its files and its refusals."""

import json
import subprocess
from pathlib import Path

import pytest

JOB = "name: digits\nrun: 'true'\n"
HOSTILE = """we"ird $(touch pwned) `touch pwned` 'é' %j #x;touch pwned"""


def refused(stoker, text: str, code: int = 2, *words: str) -> str:
    """What submitting this job file is refused with; nothing may be left of it."""
    (stoker.folder / "job.yaml").write_text(text)
    output = stoker("submit", "job.yaml", *words, code=code)
    assert output.out == ""
    assert not list((stoker.folder / "runs").glob("*"))
    return output.err


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("resources: {nodez: 2}", "3:13: unknown key 'nodez'; did you mean 'nodes'?"),
        ("resources: {nodes: two}", "3:20: resources.nodes: 'two' is not a whole number"),
        ("resources: {nodes: 0}", "3:20: resources.nodes: 0 is too small (at least 1)"),
        ("resources: {time: 90}", "3:19: resources.time: '90' has no unit (write 90s, 90m or 90h)"),
        (
            "resources: {memory_per_node: 64}",
            "3:30: resources.memory_per_node: '64' has no unit (write 64GB, 64MiB, ...)",
        ),
        ("slurm: {partition: [a, b]}", "3:20: slurm.partition: expected text, got a list"),
        ("slurm: {partition: gpu cpu}", "3:20: slurm.partition: 'gpu cpu' is not a valid name"),
        ('slurm: {account: "a\\n#SBATCH --uid=0"}', "3:18: slurm.account: 'a\\x0a#SBATCH --uid=0' is not a valid name"),
        ("slurm: {qos: '-x'}", "3:14: slurm.qos: '-x' is not a valid name"),
        ("slurm: {reservation: ''}", "3:22: slurm.reservation: '' is not a valid name"),
        ("slurm: {extra: [--time=1]}", "3:16: slurm.extra: '--time=1': use resources.time instead of --time"),
        ("slurm: {extra: [--output=x]}", "3:16: slurm.extra: '--output=x': --output is set by Stoker"),
        ("slurm: {extra: [gpu]}", "3:16: slurm.extra: 'gpu' is not an sbatch option (such as --constraint=v100)"),
        (
            'slurm: {extra: ["--nice=1\\n#SBATCH --uid=0"]}',
            "3:16: slurm.extra: '--nice=1\\x0a#SBATCH --uid=0' contains a control character",
        ),
    ],
)
def test_a_mistake_in_the_job_file_is_shown_where_it_is(stoker, line: str, complaint: str):
    output = refused(stoker, JOB + line + "\n").splitlines()
    assert output[:2] == [f"job.yaml:{complaint}", f"    3 | {line}"]
    assert output[2] == "      | " + " " * (int(complaint.split(":")[1]) - 1) + "^"


def test_a_name_that_no_folder_should_have_is_refused(stoker):
    assert refused(stoker, 'name: "a\\nb"\nrun: x\n').splitlines()[0] == (
        "job.yaml:1:7: name: 'a\\x0ab' is not a valid name: letters, digits, '.', '_' and '-', at most 64, no leading '.'"
    )


def test_missing_folders_are_named_with_what_makes_them(stoker):
    here = stoker.folder
    assert (
        refused(stoker, JOB + "working_directory: nowhere\n", 1)
        == f"working_directory: {here}/nowhere: no such folder\n"
    )
    assert refused(stoker, JOB + "environment: {venv: env}\n", 1) == (
        f"environment.venv: {here}/env: no virtual environment (no bin/python)\n  try: python3 -m venv {here}/env\n"
    )
    assert refused(stoker, JOB + "data: {train: {source: digits}}\n", 1) == (
        f"data.train.source: {here}/digits: no such folder\n  try: stoker data pack FOLDER {here}/digits\n"
    )
    assert stoker("submit", "no.yaml", code=1).err == "no.yaml: no such file or directory\n  try: stoker init\n"


def test_nodes_that_a_launcher_cannot_use_are_refused(stoker):
    assert refused(stoker, JOB + "resources: {nodes: 2}\nlauncher: single\n") == (
        "resources.nodes: 2 requested, but launcher: single starts ranks on one node only\n"
        "  try: stoker submit --set launcher=srun\n"
    )


def test_a_path_that_sbatch_cannot_take_is_refused(stoker):
    (stoker.folder / "a\nb").mkdir()
    assert refused(stoker, JOB + 'working_directory: "a\\nb"\n') == (
        f"{stoker.folder}/a\\x0ab: Slurm allows no control characters in paths (working_directory, job.yaml:3:20)\n"
    )
    assert refused(stoker, JOB + "record: {directory: 'a\\b'}\n") == (
        f"{stoker.folder}/a\\b: Slurm allows no backslash in log paths (record.directory, job.yaml:3:21)\n"
    )


def test_without_sbatch_the_cure_names_one(stoker):
    (stoker.folder / "job.yaml").write_text(JOB)
    (stoker.folder / "true").symlink_to("/bin/true")
    output = stoker("submit", "job.yaml", code=3, env={"PATH": str(stoker.folder)})
    assert output.err == (
        "sbatch: program not found in PATH (is this a machine with Slurm?)\n"
        "  try: module load slurm, or on a machine without Slurm: stoker run JOB\n"
    )
    assert not list((stoker.folder / "runs").glob("*"))


def test_a_folder_for_runs_that_cannot_be_written_is_refused(stoker, open_folder: Path):
    (open_folder / "job.yaml").write_text(JOB)
    open_folder.chmod(0o755)
    output = stoker("submit", "job.yaml", code=2, cwd=open_folder, user=65534)
    assert output.err == (
        f"record.directory: {open_folder}: no permission to write\n  stoker submit --force submits it anyway\n"
    )
    assert sorted(path.name for path in open_folder.iterdir()) == ["job.yaml"]
    (stoker.folder / "file").write_text("")
    assert refused(stoker, JOB + "record: {directory: file}\n").splitlines()[0] == (
        f"job.yaml:3:21: record.directory: {stoker.folder}/file: is not a folder"
    )


@pytest.mark.needs("mount")
def test_full_disk_is_reported_and_nothing_is_submitted(stoker, tmpfs):
    disk = tmpfs("256k")
    (disk / "job.yaml").write_text(JOB)
    (disk / "filling").write_bytes(b"x" * 240 * 1024)
    sbatch = stoker.folder / "bin/sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text("#!/bin/sh\ntouch /proc/self/cwd/called\n")
    sbatch.chmod(0o755)
    output = stoker("submit", "job.yaml", "--force", code=1, cwd=disk, env={"PATH": f"{sbatch.parent}:/bin"})
    assert output.err.endswith("no space left on device\n")
    assert not (disk / "called").exists()


def test_shell_syntax_stays_an_argument_of_the_script(stoker):
    folder = stoker.folder / HOSTILE
    folder.mkdir()
    option = json.dumps(f"--mcs-label={HOSTILE}")
    (folder / "job.yaml").write_text(JOB + f"slurm: {{extra: [{option}], account: $(id), qos: '`id`'}}\n")
    script = stoker("submit", "job.yaml", "--dry-run", code=0, cwd=folder).out
    quoted = HOSTILE.replace('"', '\\"')
    lines = script.splitlines()
    assert '#SBATCH --account="$(id)"' in lines
    assert '#SBATCH --qos="`id`"' in lines
    assert f'#SBATCH --mcs-label="{quoted}"' in lines
    assert f'#SBATCH --chdir="{stoker.folder}/{quoted}"' in lines
    log = quoted.replace("%", "%%")
    assert f'#SBATCH --output="{stoker.folder}/{log}/runs/RUN/attempts/1/slurm.log"' in lines
    # As bash reads the one command of the script.
    done = subprocess.run(
        ["bash", "-c", script.replace("\nexec ", "\nprintf '%s|' ")], cwd=folder, capture_output=True, text=True
    )
    assert done.stdout == f"{stoker.path}|run|{folder}/runs/RUN/attempts/1|"
    assert done.stderr == ""
    assert [path.name for path in folder.iterdir()] == ["job.yaml"]
    assert list(stoker.folder.rglob("pwned")) == []


def test_dry_run_writes_nothing_and_calls_nothing(stoker):
    (stoker.folder / "job.yaml").write_text(JOB)
    shown = stoker("submit", "job.yaml", "--dry-run", "--json", code=0, env={"PATH": str(stoker.folder)})
    output = json.loads(shown.out)
    assert (output["name"], output["resumes"]) == ("digits", None)
    assert output["script"].startswith("#!/bin/bash\n# digits, attempt 1 of run RUN, written by stoker ")
    assert [path.name for path in stoker.folder.iterdir()] == ["job.yaml"]


def fake_sbatch(stoker, text: str = "echo 7") -> dict[str, str]:
    """An environment with this sbatch and an empty cluster."""
    folder = stoker.folder / "cluster"
    folder.mkdir()
    for name, body in {
        "sbatch": f"touch {stoker.folder}/called; {text}",
        "sinfo": "echo 'cpu*|1:00|n/a|4|8|1000|0|(null)'",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        ("run: python3 missing.py\n", "job.yaml:1:6: run: missing.py: no such file in {here}"),
        ("run: python3 -u missing.py --lr 1\n", "job.yaml:1:6: run: missing.py: no such file in {here}"),
        ("run: no-such-program\n", "job.yaml:1:6: run: 'no-such-program' was not found in PATH"),
        (
            "run: python3 imports.py\n",
            "imports.py:2: run: imports 'surely_not_there', which is missing in this environment",
        ),
        (
            "run: torchrun --nproc-per-node 4 imports.py\nresources: {nodes: 2}\n",
            "job.yaml:1:6: run: Stoker starts 2 copies of torchrun, and each one trains separately (--nnodes is 1)",
        ),
        (
            "run: 'true'\nresources: {nodes: 9}\n",
            "job.yaml:2:20: resources.nodes: 9 requested, but partition 'cpu' has 4: the job would never start",
        ),
    ],
)
def test_a_job_that_check_expects_to_be_lost_is_refused_unless_forced(stoker, job: str, complaint: str):
    (stoker.folder / "imports.py").write_text("import os\nimport surely_not_there\n")
    env = fake_sbatch(stoker)
    (stoker.folder / "cluster/torchrun").write_text("#!/bin/sh\n")
    (stoker.folder / "cluster/torchrun").chmod(0o755)
    (stoker.folder / "job.yaml").write_text(job)
    output = stoker("submit", "job.yaml", code=2, env=env)
    assert complaint.format(here=stoker.folder) in output.err.replace(f"{stoker.folder}/imports.py", "imports.py")
    assert "  stoker submit --force submits it anyway\n" in output.err
    assert not (stoker.folder / "runs").exists()
    assert not (stoker.folder / "called").exists()
    forced = stoker("submit", "job.yaml", "--force", code=0, env=env)
    assert "forced: " in forced.err
    assert forced.out.startswith("submitted 7 ")


def test_a_script_that_check_expects_to_be_lost_is_refused_unless_forced(stoker):
    env = fake_sbatch(stoker)
    (stoker.folder / "train.sh").write_text(
        "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00 -o logs/%j\nsrun torchrun --nproc-per-node 4 train.py\n"
    )
    refused = stoker("submit", "train.sh", code=2, env=env)
    assert refused.err.splitlines() == [
        "train.sh:3: srun starts 2 copies of torchrun, and each one trains separately (--nnodes is 1) "
        "[separate-trainings]",
        "  stoker submit --force submits it anyway",
        "  try: stoker check train.sh",
    ]
    assert not (stoker.folder / "called").exists()
    # Options of the command line count.
    assert stoker("submit", "train.sh", "--sbatch=--nodes=1", code=0, env=env).out.startswith("submitted 7 ")
    assert stoker("submit", "train.sh", "--force", code=0, env=env).out.startswith("submitted 7 ")
    assert stoker("submit", "train.sh", "--dry-run", code=0, env=env).err == ""


@pytest.mark.parametrize("kind", ["job", "script"])
def test_a_refused_submission_leaves_no_run(stoker, kind: str):
    env = fake_sbatch(
        stoker, "echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1"
    )
    (stoker.folder / "job.yaml").write_text(JOB)
    (stoker.folder / "a.sh").write_text("#!/bin/bash\n#SBATCH --time=1:00\ntrue\n")
    (stoker.folder / "storage").mkdir()
    (stoker.folder / "runs").symlink_to("storage")
    refused = stoker("submit", "job.yaml" if kind == "job" else "a.sh", code=2, env=env)
    assert refused.err == "sbatch: Invalid qos specification\n"
    assert (stoker.folder / "called").exists()
    assert (stoker.folder / "runs").is_symlink()
    assert not list((stoker.folder / "storage").iterdir())
