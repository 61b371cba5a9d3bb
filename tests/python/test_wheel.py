"""`pip wheel` and `pip install` without network, with the packages of script/bootstrap: a fresh environment works."""

import subprocess
import sys
import zipfile

import pytest
from conftest import REPOSITORY

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

PROGRAM = """
import importlib.util, sys, stoker
assert importlib.util.find_spec("numpy") is None and importlib.util.find_spec("torch") is None
assert stoker.__file__.startswith(sys.prefix), stoker.__file__
with stoker.Loader(sys.argv[1], transform="cifar-train") as loader:
    batch = next(iter(loader))
print(stoker.__version__, memoryview(batch["image"]).shape, len(batch["key"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", folder]
    done = subprocess.run([*command, REPOSITORY], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("stoker-*.whl"))


def test_a_fresh_environment_needs_only_the_wheel(wheel, example_dataset, tmp_path):
    environment = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", wheel], check=True)
    done = subprocess.run(
        [python, "-c", PROGRAM, example_dataset], cwd=tmp_path, capture_output=True, text=True, env={"PATH": "/usr/bin"}
    )
    assert done.returncode == 0, done.stderr
    version = (REPOSITORY / "VERSION").read_text().strip()
    assert done.stdout == f"{version} (64, 3, 32, 32) 64\n"
    subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "stoker"], check=True)
    assert list(environment.glob("lib/*/site-packages/stoker*")) == []


def test_the_wheel_has_type_hints_and_license_and_does_not_link_torch(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        library = next(name for name in names if name.startswith("stoker/_core.") and name.endswith(".so"))
        content.extract(library, tmp_path)
    assert {"stoker/py.typed", "stoker/_core.pyi", "hydra_plugins/stoker_launcher.py"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.endswith(("_test.py", ".cc")) for name in names)
    needed = subprocess.run(["ldd", tmp_path / library], capture_output=True, text=True, check=True).stdout
    assert "not found" not in needed and "torch" not in needed
