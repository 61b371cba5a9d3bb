"""script/lib/check_tidy.py: when a source must be looked at again."""

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
