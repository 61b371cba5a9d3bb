"""The module supports Python 3.10: mypy checks its names (tests/python/test_types.py), a Python 3.10 imports it."""

import subprocess
import sys
import tomllib
import traceback

import pytest
from conftest import MODULE, REPOSITORY

OLDEST = "3.10"

# The C++ part has to be built for each version, so stand-ins for it, numpy and torch are imported here.
IMPORT_ALL = """
import importlib, importlib.util, pathlib, sys, types

class StandIn(types.ModuleType):
    __path__ = []
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__class_getitem__": classmethod(lambda cls, item: cls)})

class Finder:
    def find_spec(self, name, path, target=None):
        is_absent = name == "stoker._core" or name.split(".")[0] in ("numpy", "torch")
        return importlib.util.spec_from_loader(name, self) if is_absent else None
    def create_module(self, spec):
        return StandIn(spec.name)
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Finder())
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
names = sorted(path.stem for path in pathlib.Path(sys.argv[1], "stoker").glob("*.py"))
for name in names:
    importlib.import_module("stoker" if name == "__init__" else f"stoker.{name}")
print(len(names))
"""


def settings():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_all_tools_check_the_module_for_the_oldest_python():
    found = settings()
    assert found["project"]["requires-python"] == f">={OLDEST}"
    assert found["tool"]["mypy"]["python_version"] == OLDEST
    assert found["tool"]["ruff"]["per-file-target-version"] == {"python/{stoker,hydra_plugins}/**": "py310"}
    assert f"find_package(Python {OLDEST} " in (REPOSITORY / "cmake/python.cmake").read_text()


@pytest.mark.needs("python3.10")
def test_python_3_10_imports_every_module():
    command = ["python3.10", "-c", IMPORT_ALL, REPOSITORY / "python"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(list((REPOSITORY / "python/stoker").glob("*.py")))


def raised(code: str) -> Exception:
    try:
        exec(code)
    except Exception as error:
        return error
    raise AssertionError("no exception")


@pytest.fixture
def errors():
    sys.path.insert(0, str(MODULE))
    from stoker import errors

    return errors


def test_python_3_10_shows_a_note_as_the_cause(errors):
    error = raised("[][3]")
    errors.chain_note(error, "in sample 42 of Fails")
    assert error.__notes__ == ["in sample 42 of Fails"]
    assert type(error.__cause__) is errors.Note
    shown = "".join(traceback.format_exception(error))
    assert shown.startswith("stoker.errors.Note: in sample 42 of Fails\n\nThe above exception was the direct cause of")
    assert "IndexError: list index out of range\n" in shown


def test_python_3_10_keeps_the_causes_below_a_note(errors):
    error = raised("try:\n  1 / 0\nexcept ZeroDivisionError as low:\n  raise ValueError('high') from low")
    errors.chain_note(error, "first")
    errors.chain_note(error, "second")
    assert error.__notes__ == ["first", "second"]
    assert type(error.__cause__) is ZeroDivisionError
    assert str(error.__cause__.__cause__) == "first"
    assert str(error.__cause__.__cause__.__cause__) == "second"


def test_a_note_is_added_as_python_does(errors):
    error = raised("[][3]")
    errors.add_note(error, "in sample 42 of Fails")
    assert error.__notes__ == ["in sample 42 of Fails"]
    assert error.__cause__ is None
