"""Type hints: mypy accepts the module, and checks programs that use it."""

import subprocess
import sys

import pytest
from conftest import REPOSITORY

PROGRAM = """
import stoker

loader = stoker.Loader("data", batch_size=3, num_workers="auto", transform=["Flip", ("Resize", {"size": 3})])
for batch in loader:
    reveal_type(batch)
reveal_type(len(loader))
reveal_type(loader.state_dict())
reveal_type(stoker.DataLoader([1, 2], 1, quiet=True).plan())
stoker.Loader("data", num_workers="many")
stoker.Loader("data", bathc_size=3)
"""


def mypy(*arguments, folder):
    cache = REPOSITORY / "build/mypy"
    command = [sys.executable, "-m", "mypy", "--config-file", REPOSITORY / "pyproject.toml", "--cache-dir", cache]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_the_module_passes_mypy():
    assert mypy("--package", "stoker", folder=REPOSITORY).startswith("Success: no issues found in ")


@pytest.mark.timeout(600)
def test_programs_get_the_type_hints(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    output = mypy("program.py", folder=tmp_path).splitlines()
    revealed = [line.partition('type is "')[2].rstrip('"') for line in output if "Revealed type" in line]
    assert revealed == ["dict[str, Any]", "int", "dict[str, Any]", "str"]
    errors = [line.partition("error: ")[2] for line in output if "error:" in line]
    assert len(errors) == 2
    assert errors[0].startswith('Argument "num_workers" to "Loader" has incompatible type')
    assert errors[1].startswith('Unexpected keyword argument "bathc_size" for "Loader"; did you mean "batch_size"?')
