"""The module finds the command that belongs to it before another one in PATH."""

import subprocess
import sys

from conftest import MODULE
from stoker import command

PRINT = "from stoker import command; print(command.find())"


def program(folder):
    folder.mkdir(parents=True)
    path = folder / "stoker"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def found(modules, tmp_path):
    environment = {
        "PATH": f"{tmp_path / 'other'}:/usr/bin:/bin",
        "PYTHONPATH": str(modules),
        "HOME": str(tmp_path / "home"),
    }
    done = subprocess.run([sys.executable, "-c", PRINT], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def installed(modules):
    modules.mkdir(parents=True, exist_ok=True)
    (modules / "stoker").symlink_to(MODULE / "stoker")
    return modules


def test_the_build_tree_comes_before_path(tmp_path):
    program(tmp_path / "other")
    own = program(tmp_path / "build/bin")
    assert found(installed(tmp_path / "build/python"), tmp_path) == str(own)


def test_a_target_folder_comes_before_path(tmp_path):
    program(tmp_path / "other")
    own = program(tmp_path / "target/bin")
    assert found(installed(tmp_path / "target"), tmp_path) == str(own)


def test_a_user_installation_comes_before_path(tmp_path):
    program(tmp_path / "other")
    own = program(tmp_path / "home/.local/bin")
    assert found(installed(tmp_path / "elsewhere"), tmp_path) == str(own)


def test_path_is_last(tmp_path):
    other = program(tmp_path / "other")
    assert found(installed(tmp_path / "elsewhere"), tmp_path) == str(other)


def test_warnings_of_the_command_are_passed_on(tmp_path, monkeypatch):
    path = program(tmp_path / "bin")
    path.write_text("#!/bin/sh\necho 'slow: --time: not set' >&2\necho '{\"job\": \"7\"}'\n")
    monkeypatch.setattr(command, "find", lambda: str(path))
    notes: list[str] = []
    assert command.run_json("submit", "a.sh", notes=notes.append) == {"job": "7"}
    assert notes == ["slow: --time: not set"]
