"""script/lib/check_tidy.py: when a source must be checked again."""

import json
from pathlib import Path

import check_tidy
import pytest


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("src/a").mkdir(parents=True)
    Path(".clang-tidy").write_text("Checks: x\n")
    Path("src/a/deep.h").write_text("int deep;\n")
    Path("src/a/near.h").write_text('#include "a/deep.h"\n')
    Path("src/a/main.cc").write_text('#include "a/near.h"\n')
    Path("src/a/other.h").write_text("int other;\n")


def key() -> str:
    check_tidy.included.cache_clear()
    return check_tidy.key(Path("src/a/main.cc"))


@pytest.mark.parametrize("changed", ["src/a/main.cc", "src/a/near.h", "src/a/deep.h", ".clang-tidy"])
def test_a_change_to_what_it_reads_makes_a_source_stale(changed):
    before = key()
    Path(changed).write_text(Path(changed).read_text() + "// more\n")
    assert key() != before


def test_a_change_elsewhere_does_not():
    before = key()
    Path("src/a/other.h").write_text("int changed;\n")
    assert key() == before


def test_only_own_sources_of_the_python_module_are_checked():
    for name in ("python/core/batch.cc", "python/core/batch.h", "elsewhere/src/theirs.cc", "bench/ours.cc"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text('#include "core/batch.h"\n#include "a/deep.h"\n')
    everything = ["src/a/main.cc", "src/gone.cc", "python/core/batch.cc", "elsewhere/src/theirs.cc", "bench/ours.cc"]
    commands = [{"directory": ".", "file": str(Path(name).absolute()), "command": ""} for name in everything]
    Path("build").mkdir()
    Path("build/compile_commands.json").write_text(json.dumps(commands))
    found = list(check_tidy.compiled_sources(Path("build")))
    assert found == [Path("src/a/main.cc"), Path("python/core/batch.cc")]
    check_tidy.included.cache_clear()
    assert check_tidy.included(found[1]) == {Path("python/core/batch.h"), Path("src/a/deep.h")}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("int none() { return missing; }", "use of undeclared identifier 'missing'"),
        ("void idle() { int unused = 3; }", "unused variable 'unused'"),
        ("int well() { return 3; }", ""),
    ],
)
def test_what_does_not_compile_without_a_warning_is_found(code, message):
    source = Path("src/a/main.cc")
    source.write_text(code + "\n")
    command = f"clang++-19 -std=c++20 -stdlib=libc++ -Wall -Werror -c {source.absolute()}"
    entry = {"directory": str(Path.cwd()), "file": str(source.absolute()), "command": command}
    Path("build").mkdir()
    Path("build/compile_commands.json").write_text(json.dumps([entry]))
    Path(".clang-tidy").write_text("Checks: '-*,modernize-use-override'\n")
    found = check_tidy.tidy(source, Path("build"))
    assert bool(found) == bool(message)
    assert not message or any(message in finding.text for finding in found)
