"""Inputs as strangers have them: tests/strangers/NAME/ has the input, what to run, what the output must contain, and where such a
case was reported in public. A new find is a new folder; script/soak strangers runs them alone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import BIN

CASES = Path(__file__).parent / "strangers"
KEYS = {"reported", "what", "make", "run", "code", "shows", "never"}


def case_names() -> list[str]:
    return sorted(folder.name for folder in CASES.iterdir() if folder.is_dir())


@pytest.mark.parametrize("name", case_names())
def test_a_stranger_s_input_is_handled(name, tmp_path, monkeypatch):
    case = yaml.safe_load((CASES / name / "case.yaml").read_text())
    assert set(case) <= KEYS and {"reported", "what", "run", "code"} <= set(case), sorted(case)
    assert case["reported"].startswith("https://")
    assert case.get("shows") or case.get("never")
    folder = tmp_path / "here"
    shutil.copytree(CASES / name, folder)
    (folder / "case.yaml").unlink()
    monkeypatch.setenv("PATH", f"{BIN}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    if "make" in case:
        subprocess.run([sys.executable, "-c", case["make"]], cwd=folder, check=True)
    done = subprocess.run(["bash", "-c", case["run"]], cwd=folder, capture_output=True, text=True, timeout=240)
    output = done.stdout + done.stderr
    assert done.returncode == case["code"], output
    for text in case.get("shows", []):
        assert text in output, output
    for text in case.get("never", []):
        assert text not in output, output
