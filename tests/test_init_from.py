"""stoker init --from: a user script becomes a job file and a list of what has no key."""

import json
import os
import tarfile
from pathlib import Path

import needs
import pytest
from conftest import REPOSITORY

GOLDEN = REPOSITORY / "tests/golden/init"
SCRIPTS = sorted(path.name for path in GOLDEN.glob("*.sbatch"))
HOME = {"HOME": "/home/me", "SCRATCH": "", "SBATCH_ACCOUNT": ""}


def draft(stoker, folder: Path, name: str) -> str:
    """The output of init for the script, followed by the job file."""
    (folder / name).write_bytes((GOLDEN / name).read_bytes())
    text = stoker("init", "--from", name, env=HOME, code=0).out
    for path in sorted(folder.iterdir()):
        if path.name != name:
            text += f"=== {path.name}\n{path.read_text()}"
    return text


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_becomes_a_job_file(stoker, tmp_path, name):
    expected = GOLDEN / Path(name).with_suffix(".txt").name
    text = draft(stoker, tmp_path, name)
    if os.environ.get("STOKER_BLESS"):
        expected.write_text(text)
    else:
        assert text == expected.read_text()
    # It reads as a job: whatever is found is missing here, and no mistake of the file.
    assert stoker("check", "job.yaml", "--json", env=HOME).code in (0, 1)


def test_the_job_does_what_the_script_does(stoker, tmp_path):
    draft(stoker, tmp_path, "single.sbatch")
    (tmp_path / "train.py").write_text(
        "import os, sys\n"
        "names = os.listdir(sys.argv[2])\n"
        "os.makedirs(sys.argv[4])\n"
        "open(sys.argv[4] + '/found.txt', 'w').write(' '.join(names) + os.environ['PYTHONHASHSEED'])\n"
    )
    (tmp_path / "one.png").write_text("an image")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "one.png", "images/one.png")
    assert stoker("check", "job.yaml", code=0).out.startswith("job.yaml: ready to run here")
    stoker("run", "job.yaml", "--set", "resources.cpus_per_rank=1", code=0)
    (back,) = tmp_path.glob("runs/*/attempts/1/back/node-0000/results/found.txt")
    assert back.read_text() == "one.png0"


def test_arguments_of_the_script_are_parameters(stoker, tmp_path):
    (tmp_path / "hello.sh").write_text('#!/bin/bash\n#SBATCH --time=1\necho "hello $1"\n')
    done = stoker("init", "--from", "hello.sh", "hello.yaml", code=0)
    assert done.out == "wrote hello.yaml, hello.run.sh from hello.sh\n  next: stoker check hello.yaml\n"
    output = stoker("run", "hello.yaml", "--set", "params.argument_1=two words", code=0).out
    assert output.splitlines()[-1] == "hello two words"


def test_json_has_the_files_and_omitted_lines(stoker, tmp_path):
    (tmp_path / "a.sh").write_text("#!/bin/bash\n#SBATCH --output=a.out\n./a > b\n")
    value = json.loads(stoker("init", "--from", "a.sh", "--json", code=0).out)
    assert value == {
        "job": "job.yaml",
        "files": ["job.run.sh"],
        "not_carried_over": [{"line": 2, "what": "--output=a.out", "why": "belongs to the run: stoker logs last"}],
    }


def test_nothing_is_overwritten(stoker, tmp_path):
    (tmp_path / "a.sh").write_text("#!/bin/bash\n./a > b\n")
    (tmp_path / "job.run.sh").write_text("mine")
    done = stoker("init", "--from", "a.sh", code=1)
    assert done.err == "job.run.sh: already exists\n  try: stoker init another.yaml --from SCRIPT\n"
    assert (tmp_path / "job.run.sh").read_text() == "mine"
    assert not (tmp_path / "job.yaml").exists()


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("#!/bin/bash\nif true\n", 2, "a.sh:2: "),
        ("", 2, "a.sh: is empty"),
        ("#!/bin/bash\n\0", 2, "a.sh: a zero byte at byte 12"),
    ],
)
def test_files_that_are_not_scripts_are_rejected(stoker, tmp_path, content, code, message):
    (tmp_path / "a.sh").write_text(content)
    assert stoker("init", "--from", "a.sh", code=code).err.startswith(message)
    assert not (tmp_path / "job.yaml").exists()
    assert stoker("init", "--from", "none.sh", code=1).err.startswith("none.sh: ")


def test_hostile_scripts_are_rejected_quickly_in_one_line(stoker, tmp_path):
    rows = ["A0=", *(f"A{i}=$A{i - 1}$A{i - 1}" for i in range(1, 300)), "python3 a.py $A299"]
    (tmp_path / "a.sh").write_text("#!/bin/bash\n#SBATCH --tine\x1b=1\n" + "\n".join(rows) + "\n")
    done = stoker("init", "--from", "a.sh", code=0, timeout=20)
    assert "\x1b" not in done.out + (tmp_path / "job.yaml").read_text()
    assert stoker("check", "job.yaml").code in (0, 1)


@pytest.mark.needs("scripts")
@pytest.mark.parametrize(
    "script", sorted(p.name for p in (needs.test_data() or Path("/")).glob("batch-scripts/*.sh")) or ["none"]
)
def test_course_scripts_become_job_files(stoker, tmp_path, script):
    (tmp_path / script).write_bytes((needs.test_data() / "batch-scripts" / script).read_bytes())
    stoker("init", "--from", script, env=HOME, code=0)
    done = stoker("check", "job.yaml", "--json", env=HOME)
    assert done.code in (0, 1), done.out
    job = json.loads(done.out)["effective"]
    for word in EXPECTED[script]:
        assert word in job, (word, job)


EXPECTED = {
    "hello.sh": ["bash job.run.sh", "time: 15m"],
    "extremeweather.sh": ["memory_per_node: ", "name: extremeweather", "StdEnv/2020"],
    "ml-test.sh": ["gpus_per_rank: 1", "cpus_per_rank: 3", "time: 3h", "data.tar", "venv: /home/me/my_env"],
    "ml-test-chain.sh": ["modules: python/3.6 cuda cudnn", "job.tasks.csv", "at_once: 1"],
    "ddp-demo.sh": [
        "nodes: 2",
        "ranks_per_node: 4",
        "gpus_per_rank: 1",
        "cpus_per_rank: 8",
        "conda: ml",
        "name: ddp-demo",
    ],
    "venv-every-node.sh": ["nodes: 2", "requirements.txt", "run: python myscript.py"],
    "notes-example.sh": ["name: myjob", "time: 1h", "memory_per_node: "],
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#!/bin/bash\npython3 -u train.py caf\xe9\n", "x.sh:2: byte 0xe9 is not UTF-8, as a job file must be"),
        (
            b"#!/bin/bash\n#SBATCH -p a\x1b\n./a\n",
            "x.sh:2: byte 0x1b is a terminal control character and not valid in a job file",
        ),
    ],
)
def test_invalid_bytes_are_rejected_with_their_line(stoker, tmp_path, content, message):
    (tmp_path / "x.sh").write_bytes(content)
    assert stoker("init", "--from", "x.sh", code=2).err.splitlines()[0] == message
    assert not (tmp_path / "job.yaml").exists()
