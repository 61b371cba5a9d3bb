"""python/stoker/smoke.py, the smoke test of an installation, passes with the built command and module, and fails clearly."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BIN, MODULE, REPOSITORY, Completed

SCRIPT = REPOSITORY / "python/stoker/smoke.py"
WITH_MODULE = ["version", "pack", "verify", "load", "run", "explain", "resume", "checkpoints", "report"]
COMMAND_ONLY = ["version", "pack", "verify", "run", "explain", "resume", "report"]


@pytest.fixture
def smoke(tmp_path):
    """smoke(*arguments, module=True) runs the script as a stranger would; its folders are in the test's own."""

    def run(*arguments: str | Path, module: bool = True, program: tuple[str, ...] = (str(SCRIPT),)) -> Completed:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"TMPDIR": str(tmp_path), "PATH": f"{BIN}:{environment['PATH']}"}
        if module:
            environment["PYTHONPATH"] = str(MODULE)
        command = [sys.executable, *program, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180)
        return Completed(done.returncode, done.stdout, done.stderr, command)

    return run


def steps(done: Completed) -> list[str]:
    return [line.split()[0] for line in done.out.splitlines()[:-1]]


def test_all_steps_pass_with_the_built_command_and_module(smoke, tmp_path):
    done = smoke()
    assert (done.code, done.err) == (0, "")
    assert steps(done) == WITH_MODULE
    assert done.out.splitlines()[-1] == "smoke test passed"
    assert list(tmp_path.iterdir()) == []


def test_the_installed_module_runs_it_too_and_prints_json(smoke):
    done = smoke("--json", program=("-m", "stoker.smoke"))
    assert done.code == 0, done.out + done.err
    value = json.loads(done.out)
    assert (value["passed"], value["output"], value["folder"]) == (True, "", None)
    assert [step["name"] for step in value["steps"]] == WITH_MODULE
    assert all(step["passed"] and step["seconds"] >= 0 for step in value["steps"])


def test_a_tarball_needs_no_module(smoke):
    done = smoke("--command-only", "--stoker", BIN / "stoker", module=False)
    assert (done.code, done.err) == (0, "")
    assert steps(done) == COMMAND_ONLY
    assert done.out.splitlines()[-1] == "smoke test passed"


def test_it_trains_where_torch_is(smoke):
    done = smoke("--command-only", "--trainer", "--stoker", BIN / "stoker", module=False)
    assert (done.code, done.err) == (0, "")
    assert steps(done) == [*COMMAND_ONLY, "train"]


def test_a_missing_module_fails_the_step_that_imports_it(smoke):
    done = smoke("--timeout", "60", module=False)
    assert done.code == 1
    assert steps(done) == ["version", "pack", "verify", "load"]
    assert done.out.splitlines()[-1] == "smoke test failed: load"
    assert "load.py: exit code 1, expected 0\n" in done.err
    assert "ModuleNotFoundError: No module named 'stoker'\n" in done.err
    kept = Path(done.err.splitlines()[-1].removeprefix("files: "))
    assert (kept / "dataset/manifest.json").is_file()


def test_a_broken_command_fails_with_its_output(smoke, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho /lib64/libc.so.6: version GLIBC_2.99 not found >&2\nexit 1\n")
    broken.chmod(0o755)
    done = smoke("--stoker", broken, "--json")
    assert done.code == 1
    value = json.loads(done.out)
    assert value["passed"] is False
    assert [(step["name"], step["passed"]) for step in value["steps"]] == [("version", False)]
    assert value["output"] == (
        f"{broken} --version: exit code 1, expected 0\n/lib64/libc.so.6: version GLIBC_2.99 not found"
    )


def test_the_page_shows_the_steps():
    page = (REPOSITORY / "docs/install.md").read_text()
    block = re.search(r"^```text\n\$ python -m stoker\.smoke\n(.+?)```$", page, re.MULTILINE | re.DOTALL)[1]
    *lines, last = block.splitlines()
    assert [line.split()[0] for line in lines] == WITH_MODULE
    assert last == "smoke test passed"
