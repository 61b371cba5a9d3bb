"""Modules, conda and virtual environments built on the nodes: the environment of the ranks, and errors before a submission."""

import json
import os
import re
import shutil
import subprocess
import textwrap
import zipfile
from pathlib import Path

import pytest
from conftest import Stoker
from labs import Lab
from submitted import Runs


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


@pytest.fixture
def modules(tmp_path: Path) -> dict[str, str]:
    """Environment variables with which `module` finds a tree of modules."""
    write(tmp_path / "modules/python/3.10.lua", 'setenv("MY_PYTHON", "3.10")\n')
    write(tmp_path / "modules/python/3.11.lua", 'setenv("MY_PYTHON", "3.11")\n')
    write(tmp_path / "modules/cuda/12.lua", 'load("python/3.10")\nsetenv("MY_CUDA", "12")\n')
    return {"MODULEPATH": str(tmp_path / "modules"), "LMOD_PKG": "", "MODULESHOME": ""}


def wheel(folder: Path, name: str, version: str = "1.0") -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", f'version = "{version}"\n')
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def job(folder: Path, run: str, environment: str, more: str = "") -> None:
    (folder / "job.yaml").write_text(f"name: test\nrun: {run}\nenvironment: {environment}\n{more}")


@pytest.mark.needs("lmod")
def test_ranks_get_module_variables_and_replacements_are_reported(stoker: Stoker, tmp_path: Path, modules):
    job(tmp_path, "printenv MY_PYTHON MY_CUDA MPLBACKEND", "{modules: [cuda/12, python/3.11]}")
    done = stoker("run", "job.yaml", env=modules, code=0)
    assert done.out == "3.11\n12\nAgg\n"
    assert "module python/3.10 was replaced by python/3.11\n" in done.err


@pytest.mark.needs("lmod")
def test_a_missing_module_is_reported_before_anything_is_created(stoker: Stoker, tmp_path: Path, modules):
    job(tmp_path, "true", "{modules: [pyhton/3.11]}")
    for command in ("run", "submit"):
        wrong = stoker(command, "job.yaml", env=modules, code={"run": 1, "submit": 2}[command])
        assert "environment.modules: 'pyhton/3.11' cannot be loaded" in wrong.err
        assert "  try: module avail pyhton\n" in wrong.err
    assert not (tmp_path / "runs").exists()
    checked = json.loads(stoker("check", "job.yaml", "--json", env=modules, code=1).out)
    assert [finding["rule"] for finding in checked["findings"]] == ["no-module"]


@pytest.mark.parametrize(("program", "rules"), [("pkg-tool", []), ("./pkg-tool", ["no-program"])])
def test_commands_of_a_created_environment_are_not_searched_on_this_machine(stoker, tmp_path, program, rules):
    (tmp_path / "requirements.txt").write_text("stokertest\n")
    job(tmp_path, f"{program} --fast", "{venv: requirements.txt}")
    checked = json.loads(stoker("check", "job.yaml", "--json", code=1 if rules else 0).out)
    assert [each["rule"] for each in checked["findings"] if each["rule"] == "no-program"] == rules
    # The same command in an environment that exists.
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").symlink_to("/bin/true")
    job(tmp_path, f"{program} --fast", "{venv: env}")
    checked = json.loads(stoker("check", "job.yaml", "--json", code=1).out)
    assert "no-program" in [each["rule"] for each in checked["findings"]]


def test_a_virtual_environment_is_made_once_from_the_wheelhouse(stoker: Stoker, tmp_path: Path):
    wheel(tmp_path / "wheels", "stokertest", "1.5")
    (tmp_path / "requirements.txt").write_text("stokertest>=1.2\n")
    show = "import stokertest, sys; print(stokertest.version, sys.prefix)"
    job(
        tmp_path,
        f"python -c '{show}'",
        "{venv: requirements.txt, wheelhouse: wheels}",
        "resources: {ranks_per_node: 3}\n",
    )
    (tmp_path / "local").mkdir()
    environment = {"SLURM_TMPDIR": str(tmp_path / "local")}
    first = stoker("run", "job.yaml", env=environment, code=0)
    (venv,) = [path for path in (tmp_path / "local").iterdir() if path.is_dir()]
    lines = sorted(line.split("] ")[-1] for line in first.out.splitlines())
    assert lines == [f"1.5 {venv}"] * 3
    assert first.err.count("environment: created ") == 1
    again = stoker("run", "job.yaml", env=environment, code=0)
    assert "environment: created" not in again.err


def test_packages_without_a_wheel_are_reported_before_the_submission(stoker: Stoker, tmp_path: Path):
    wheel(tmp_path / "wheels", "stokertest", "1.0")
    (tmp_path / "requirements.txt").write_text("stokertest>=2\nnumpyy\n")
    (tmp_path / "train.py").write_text("import stokertest\nimport nor_this\n")
    job(tmp_path, "python3 train.py", "{venv: requirements.txt, wheelhouse: wheels}")
    wrong = stoker("submit", "job.yaml", code=2)
    assert (
        f"{tmp_path}/requirements.txt:1: environment.wheelhouse: no wheel for 'stokertest>=2' (found stokertest-1.0-py3-none-any.whl)"
        in wrong.err
    )
    assert f"{tmp_path}/requirements.txt:2: environment.wheelhouse: no wheel for 'numpyy'" in wrong.err
    assert "advice: train.py:2: run: imports 'nor_this', which is missing in this environment" in wrong.err
    assert "imports 'stokertest'" not in wrong.err
    assert not (tmp_path / "runs").exists()


def test_a_pip_error_ends_the_run_and_is_reported(stoker: Stoker, tmp_path: Path):
    (tmp_path / "wheels").mkdir()
    (tmp_path / "requirements.txt").write_text("stokertest\n")
    job(tmp_path, "python -V", "{venv: requirements.txt, wheelhouse: wheels}")
    (tmp_path / "local").mkdir()
    failed = stoker("run", "job.yaml", env={"SLURM_TMPDIR": str(tmp_path / "local")})
    assert failed.code == 2
    assert "environment.venv: " in failed.err
    assert "No matching distribution found for stokertest" in failed.err
    assert [path for path in (tmp_path / "local").iterdir() if path.is_dir()] == []


def test_an_unwritable_local_disk_is_reported_and_not_used(stoker: Stoker, tmp_path: Path):
    wheel(tmp_path / "wheels", "stokertest")
    (tmp_path / "requirements.txt").write_text("stokertest\n")
    job(tmp_path, "python -c 'import sys; print(sys.prefix)'", "{venv: requirements.txt, wheelhouse: wheels}")
    (tmp_path / "other").mkdir()
    environment = {"SLURM_TMPDIR": "/proc/nowhere", "TMPDIR": str(tmp_path / "other")}
    done = stoker("run", "job.yaml", env=environment, code=0)
    assert done.out.startswith(f"{tmp_path}/other/stoker-venv-")
    assert "environment: not in /proc/nowhere: " in done.err


@pytest.mark.needs("slurm", "lmod")
def test_every_node_builds_its_environment_and_modules_reach_all_ranks(runs: Runs, lab: Lab, modules):
    wheel(runs.folder / "wheels", "stokertest", "1.5")
    (runs.folder / "requirements.txt").write_text("stokertest\n")
    show = "import stokertest, sys, os; print(stokertest.version, os.environ['MY_PYTHON'], sys.prefix)"
    job(
        runs.folder,
        f'python -c "{show}"',
        "{modules: [python/3.11], venv: requirements.txt, wheelhouse: wheels}",
        "resources: {nodes: 2, ranks_per_node: 2}\n",
    )
    runs.stoker("submit", "job.yaml", env=modules)
    runs.wait()
    logs = [runs.log(rank) for rank in range(4)]
    assert sum(log.count("environment: created ") for log in logs) == 2
    assert all("1.5 3.11 " in log and "stoker-venv-" in log for log in logs)
    assert os.environ.get("SLURM_JOB_ID") is None


def make_image(folder: Path) -> Path:
    """An image of this machine's Python, in the form that Charliecloud builds from a Dockerfile, without a network."""
    root = folder / "root"
    for name in ("bin", "dev", "etc", "home", "mnt", "proc", "sys", "tmp", "usr/bin", "lib", "lib64"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    for program in ("/bin/sh", "/bin/cat", "/usr/bin/printenv"):
        shutil.copy(program, root / "bin")
        for library in re.findall(r"(/\S+) \(0x", subprocess.check_output(["ldd", program], text=True)):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    (root / "etc/image").write_text("not built\n")
    (folder / "Dockerfile").write_text("FROM base\nRUN echo built > /etc/image\n")
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "USER": "root",
        "CH_IMAGE_STORAGE": str(folder / "storage"),
        "CH_IMAGE_CACHE": "disabled",
    }
    for words in (["import", root, "base"], ["build", "-t", "ours", "-f", folder / "Dockerfile", folder]):
        subprocess.run(["ch-image", *words], env=environment, check=True, capture_output=True, text=True, timeout=120)
    image = folder / "image"
    subprocess.run(["ch-convert", "ours", image], env=environment, check=True, capture_output=True, timeout=120)
    return image


@pytest.mark.needs("slurm", "charliecloud")
def test_ranks_run_in_a_container_on_every_node(runs: Runs):
    image = make_image(runs.folder / "build")
    (runs.folder / "own.txt").write_text("own file\n")
    run = "/bin/sh -c 'cat /etc/image own.txt; printenv RANK WORLD_SIZE'"
    job(runs.folder, run, f"{{container: {image}}}", "resources: {nodes: 2}\n")
    runs.stoker("submit", "job.yaml", env={"USER": "root"})
    runs.wait()
    assert [runs.log(rank) for rank in range(2)] == [f"built\nown file\n{rank}\n2\n" for rank in range(2)]


@pytest.mark.needs("charliecloud")
def test_tasks_of_a_farm_run_in_a_container(stoker: Stoker, tmp_path: Path):
    image = make_image(tmp_path / "build")
    job(tmp_path, "none", f"{{container: {image}, variables: {{SIZE: big}}}}")
    (tmp_path / "tasks.txt").write_text("cat /etc/image\necho $SIZE $STOKER_TASK > two; cat two\n")
    stoker("farm", "tasks.txt", "--job", "job.yaml", env={"USER": "root"}, code=0)
    assert stoker("farm", "tasks.txt", "--output", code=0).out == "built\nbig 2\n"


def test_a_farm_refuses_what_it_cannot_use_of_a_job_file(stoker: Stoker, tmp_path: Path):
    (tmp_path / "tasks.txt").write_text("true\n")
    (tmp_path / "requirements.txt").write_text("numpy\n")
    job(tmp_path, "none", "{venv: requirements.txt}")
    refused = stoker("farm", "tasks.txt", "--job", "job.yaml", code=2).err
    assert "is no virtual environment, which a farm needs (job.yaml:3:21)\n" in refused
    assert f"  try: python3 -m venv .venv && .venv/bin/pip install -r {tmp_path}/requirements.txt\n" in refused
    job(tmp_path, "none", "{}", "stage: {copy: [requirements.txt]}\n")
    refused = stoker("farm", "tasks.txt", "--job", "job.yaml", code=2).err
    assert refused == "stage.copy: not supported in a farm (job.yaml:4:15)\n"
    assert stoker("farm", "tasks.txt", "--set", "name=x", code=2).err.startswith("--set: no job file (--job)\n")
    assert not (tmp_path / "tasks.farm").exists()
