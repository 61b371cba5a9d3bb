"""stoker check: what is wrong with a job file, and with what it needs, before it runs."""

import json
import os
import re
from pathlib import Path

import pytest
from conftest import REPOSITORY

JOB = """\
name: cifar
train: {{model: cifar-resnet20, epochs: 2}}
data:
  train: {{source: {dataset}, split: train}}
  validation: {{source: {dataset}, split: test}}
"""


def write(folder: Path, text: str, name: str = "job.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_job_that_can_run_is_ready(stoker, tmp_path, example_dataset):
    write(tmp_path, f"run: 'true'\ndata: {{train: {{source: {example_dataset}, split: train}}}}\n")
    done = stoker("check", "job.yaml", code=0)
    lines = done.out.splitlines()
    assert lines[0] == "job.yaml: ready to run here (1 rank)"
    assert lines[1].startswith(f"  data      train: {example_dataset} version ")
    assert ", split train, 5 000 samples, dataset of " in lines[1]
    assert f"  runs      {tmp_path}/runs" in lines
    assert done.err == ""
    assert not (tmp_path / "runs").exists(), "check changes nothing"


def test_a_training_is_checked_against_its_data(stoker, tmp_path, example_dataset):
    write(tmp_path, JOB.format(dataset=example_dataset))
    flags = ["--set", "train.classes=3", "--set", "train.batch=6000"]
    findings = {f["rule"]: f for f in json.loads(stoker("check", *flags, "--json", code=1).out)["findings"]}
    findings.pop("no-trainer", None)  # where the command is built without libtorch
    assert findings == {
        "too-few-classes": {
            "rule": "too-few-classes",
            "level": "job",
            "what": "train.classes: 3 outputs for 10 classes",
            "where": "--set train.classes",
            "cure": "omit train.classes",
        },
        "large-batch": {
            "rule": "large-batch",
            "level": "advice",
            "what": "train.batch: one step needs 6 000 samples, an epoch has 5 000",
            "where": "--set train.batch",
            "cure": "",
        },
    }


def test_errors_in_the_file_are_shown_with_line_and_caret(stoker, tmp_path):
    write(tmp_path, "run: python x.py\nresorces: {nodes: 2}\ntimeouts: {grace: 30}\n")
    done = stoker("check", "job.yaml", code=2)
    assert done.out == ""
    assert done.err == (
        "job.yaml:2:1: unknown key 'resorces'; did you mean 'resources'?\n"
        "    2 | resorces: {nodes: 2}\n"
        "      | ^\n"
        "job.yaml:3:19: timeouts.grace: '30' has no unit (write 30s, 30m or 30h)\n"
        "    3 | timeouts: {grace: 30}\n"
        "      |                   ^\n"
    )


def test_json_is_one_value_also_for_an_error(stoker, tmp_path):
    write(tmp_path, "run: x\nnmae: 1\n")
    done = stoker("check", "job.yaml", "--json", code=2)
    error = json.loads(done.out)["error"]
    assert error["code"] == "invalid"
    assert error["message"].startswith("job.yaml:2:1: unknown key 'nmae'; did you mean 'name'?\n")


def test_missing_inputs_of_the_job_are_listed(stoker, tmp_path):
    write(
        tmp_path,
        "run: python3 train.py\n"
        "data: {train: {source: packed}}\n"
        "environment: {venv: env}\n"
        "resources: {nodes: 2}\n"
        "working_directory: work\n",
    )
    done = stoker("check", code=1)
    python = next(Path(f) / "python3" for f in os.environ["PATH"].split(":") if os.access(Path(f) / "python3", os.X_OK))
    assert [line for line in done.out.splitlines() if not line.startswith(("  ranks", "  space", "  port"))] == [
        "job.yaml: not ready, 5 mistakes would lose the job",
        f"  program   {python}",
        f"  runs      {tmp_path}/runs",
        f"  mistake   data.train.source: {tmp_path}/packed: no such dataset (job.yaml:2:24)",
        "  mistake   resources.nodes: 2 nodes need an allocation, this is one machine (job.yaml:4:20)",
        "            try: salloc --nodes 2 --ntasks-per-node 1",
        f"  mistake   environment.venv: {tmp_path}/env: is not a virtual environment: bin/python is missing (job.yaml:3:21)",
        f"            try: python3 -m venv {tmp_path}/env",
        f"  mistake   run: train.py: no such file in {tmp_path}/work (job.yaml:1:6)",
        f"  mistake   working_directory: {tmp_path}/work: no such folder (job.yaml:5:20)",
    ]


def test_a_folder_without_a_dataset_is_reported_with_the_pack_command(stoker, tmp_path):
    (tmp_path / "photos").mkdir()
    write(tmp_path, "run: 'true'\ndata: {train: {source: photos}}\n")
    done = stoker("check", code=1)
    assert (
        f"  mistake   data.train.source: {tmp_path}/photos: is not a dataset: it has no manifest.json (job.yaml:2:24)\n"
        f"            try: stoker data pack FOLDER {tmp_path}/photos\n"
    ) in done.out


def test_a_missing_split_is_reported(stoker, tmp_path, example_dataset):
    write(tmp_path, JOB.format(dataset=example_dataset))
    done = stoker("check", "--set", "data.train.split=trian", "--json", code=1)
    findings = [f for f in json.loads(done.out)["findings"] if f["rule"] == "no-split"]
    assert len(findings) == 1
    assert findings[0]["what"].endswith("no split 'trian'; did you mean 'train'?")
    assert findings[0]["where"] == "--set data.train.split"


def test_a_missing_program_is_reported(stoker, tmp_path):
    write(tmp_path, "run: no-such-program --x\n")
    assert "  mistake   run: 'no-such-program' was not found in PATH (job.yaml:1:6)\n" in stoker("check", code=1).out
    write(tmp_path, "run: ./script.sh\n")
    (tmp_path / "script.sh").write_text("#!/bin/sh\n")
    assert "  mistake   run: './script.sh' is not an executable file (job.yaml:1:6)\n" in stoker("check", code=1).out


def test_a_script_that_the_kernel_cannot_start_is_reported(stoker, tmp_path):
    script = tmp_path / "script.sh"
    write(tmp_path, "run: ./script.sh\n")
    script.write_bytes(b"#!/bin/sh\r\necho one\r\n")
    script.chmod(0o755)
    windows = stoker("check", code=1).out
    assert (
        "  mistake   run: ./script.sh: its first line names the interpreter '/bin/sh\\r', which does not exist: the file has "
        "Windows line ends (job.yaml:1:6)\n"
    ) in windows
    assert f"try: sed -i 's/\\r$//' {script}\n" in windows
    script.write_text("#!/nonexistent/python\n")
    missing = "./script.sh: its first line names the interpreter '/nonexistent/python', which does not exist"
    assert f"  mistake   run: {missing} (job.yaml:1:6)\n" in stoker("check", code=1).out
    script.write_text("#!/bin/sh\n")
    stoker("check", code=0)
    write(tmp_path, "run: /tmp\n")
    assert "  mistake   run: '/tmp' is a folder, not a program (job.yaml:1:6)\n" in stoker("check", code=1).out


def test_more_ranks_than_cores_is_slow_but_ready(stoker, tmp_path):
    write(tmp_path, "run: 'true'\nresources: {ranks_per_node: 1000}\n")
    done = stoker("check", code=0)
    cores = len(os.sched_getaffinity(0))
    assert (
        f"  slow      resources.ranks_per_node: 1000 x 1 cores requested, {cores} available (job.yaml:2:29)\n"
        in done.out
    )


@pytest.mark.needs("root")
def test_a_read_only_folder_is_reported(stoker, open_folder):
    write(open_folder, "run: 'true'\n")
    open_folder.chmod(0o755)
    done = stoker("check", "job.yaml", code=1, cwd=open_folder, user=65534)
    assert f"  mistake   record.directory: {open_folder}: no permission to write (by default)\n" in done.out


def test_print_shows_each_value_with_its_origin(stoker, tmp_path):
    write(tmp_path, "name: a\nrun: echo ${params.lr}\nparams: {lr: 0.1}\n")
    done = stoker(
        "check", "--print", "--set", "checkpoint.keep_last=5", env={"STOKER_SET_TIMEOUTS_GRACE": "1m"}, code=0
    )
    lines = done.out.splitlines()
    assert lines[0] == "name: a                                     # job.yaml:1:7"
    assert f"working_directory: {tmp_path}".ljust(44).rstrip() in lines[1]
    assert "run: echo 0.1                               # job.yaml:2:6" in lines
    assert "  keep_last: 5                              # --set checkpoint.keep_last" in lines
    assert "  grace: 1m                                 # STOKER_SET_TIMEOUTS_GRACE" in lines
    assert "  nodes: 1                                  # default" in lines
    # What is printed is a job file, and the same job.
    write(tmp_path, done.out, "effective.yaml")
    again = stoker("check", "effective.yaml", "--print", code=0)
    strip = [line.split("  #")[0].rstrip() for line in lines]
    assert [line.split("  #")[0].rstrip() for line in again.out.splitlines()] == strip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none.yaml", "none.yaml: no such file or directory\n  try: stoker init\n"),
        (".", ".: expected a file, got a folder\n"),
        ("/dev/null", "/dev/null: is not a regular file\n"),
    ],
)
def test_invalid_job_files_are_reported(stoker, name, expected):
    done = stoker("check", name)
    assert (done.code, done.err) == (1 if name == "none.yaml" else 2, expected)


@pytest.mark.needs("root")
def test_an_unreadable_job_file_is_reported(stoker, open_folder):
    write(open_folder, "run: x\n").chmod(0)
    done = stoker("check", "job.yaml", code=2, cwd=open_folder, user=65534)
    assert done.err == "job.yaml: permission denied\n"


def test_a_huge_file_is_rejected(stoker, tmp_path):
    write(tmp_path, "run: x\n" + "# padding\n" * 200_000)
    assert stoker("check", code=2).err == "job.yaml: larger than 1.00 MB\n"


def test_keys_lists_every_setting(stoker):
    done = stoker("check", "--keys", code=0)
    assert "train.epochs" in done.out
    assert "checkpoint.every" in done.out


def docs_table(keys: list[dict]) -> str:
    rows = ["| key | what | type and range | default |", "|---|---|---|---|"]
    for key in keys:
        what = f"{key['what']} {key['see']}".strip()
        kind = "; ".join(filter(None, [key["type"], key["range"]]))
        default = f"`{key['default']}`" if key["default"] else key["unset"] or "required"
        rows.append(f"| `{key['key']}` | {what} | {kind} | {default} |")
    return "\n".join(rows) + "\n"


def test_the_page_of_the_job_file_has_the_table_of_the_settings(stoker):
    keys = json.loads(stoker("check", "--keys", "--json", code=0).out)["keys"]
    page = REPOSITORY / "docs/job-file.md"
    text = page.read_text()
    old = re.search(r"^\| key \|.*?\n(?=\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert old, "docs/job-file.md has no table that begins with '| key |'"
    if os.environ.get("STOKER_BLESS"):
        page.write_text(text.replace(old[0], docs_table(keys)))
    else:
        assert old[0] == docs_table(keys), "docs/job-file.md is behind the settings; try: script/bless"
