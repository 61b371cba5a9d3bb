"""script/lib/check_rooms.py: the edges between rooms, and where external libraries may be seen."""

import re
from pathlib import Path

import check_rooms
import pytest

TABLE = """
# stoker_room(NAME ROOMS <rooms>)
function(stoker_room name)
  stoker_room(base LIBRARIES stoker::fmt stoker::json)
  stoker_room(format ROOMS LIBRARIES stoker::json)
  stoker_room(data ROOMS format
              LIBRARIES stoker::jpeg)
  stoker_room(torch ROOMS data LIBRARIES libtorch::libtorch)
"""


@pytest.fixture
def findings(tmp_path, monkeypatch):
    """findings({"src/a/b.cc": text}) -> what the check says about these files."""
    monkeypatch.chdir(tmp_path)

    def check(sources: dict[str, str], table: str = TABLE) -> list[str]:
        Path("rooms.cmake").write_text(table)
        for name, text in sources.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        return [str(finding) for finding in check_rooms.check(map(Path, sources), Path("rooms.cmake"))]

    return check


def test_the_real_table_is_read_whole():
    cmake = Path(__file__).parents[2] / "cmake/rooms.cmake"
    rooms = check_rooms.parse_table(cmake.read_text())
    declared = len(re.findall(r"^ +stoker_room\(\w", cmake.read_text(), re.MULTILINE))
    assert len(rooms) == declared > 10
    assert rooms["data"].may_include == {"config", "format"}
    assert "jpeg" in rooms["data"].libraries
    assert rooms["config"].may_include == set()


def test_allowed_edges_are_silent(findings):
    sources = {
        "src/base/text.cc": "#include <fmt/format.h>\n#include <string>\n",
        "src/format/tar.h": '#include "base/status.h"\n',
        "src/format/tar.cc": '#include "base/json/json.h"\n#include "format/tar.h"\n',
        "src/base/json/json.h": "#include <nlohmann/json.hpp>\n",
        "src/data/pack.cc": '#include "format/tar.h"\n#include <jpeglib.h>\n',
        "src/data/pack_test.cc": "#include <gtest/gtest.h>\n",
    }
    assert findings(sources) == []


@pytest.mark.parametrize(
    ("path", "include", "said"),
    [
        (
            "src/format/tar.cc",
            '"data/pack.h"',
            "room 'format' may not include 'data/pack.h' (beside base: nothing else)",
        ),
        ("src/data/pack.cc", '"torch/ddp.h"', "room 'data' may not include 'torch/ddp.h' (beside base: format)"),
        ("src/data/pack.cc", '"pack.h"', 'include "pack.h" by its full path from src/'),
        ("src/data/pack.cc", "<re2/re2.h>", "room 'data' does not link 're2' (<re2/re2.h>; see cmake/rooms.cmake)"),
        ("src/data/pack.cc", "<fmt/format.h>", "fmt is used in src/base/text.cc alone: use base's format()"),
        ("src/data/pack.cc", "<gtest/gtest.h>", "<gtest/gtest.h> belongs in tests"),
        (
            "src/data/pack.cc",
            "<torch/torch.h>",
            "room 'data' does not link 'libtorch' (<torch/torch.h>; see cmake/rooms.cmake)",
        ),
        (
            "src/format/tar.cc",
            "<nlohmann/json.hpp>",
            '<nlohmann/json.hpp> is compiled once, behind "base/json/json.h": include that',
        ),
        ("src/attic/old.cc", "<string>", "'attic' is no room of rooms.cmake"),
        ("src/torch/ddp.h", "<torch/torch.h>", "<torch/torch.h> in a header costs every file that includes it seconds"),
    ],
)
def test_a_forbidden_include_is_named_with_what_is_allowed(findings, path, include, said):
    expected_line = 1 if "attic" in path else 2
    assert findings({path: f"\n#include {include}\n"}) == [f"{path}:{expected_line}: {said}"]


def test_an_external_library_may_not_show_in_a_header_that_others_include(findings):
    header = {"src/format/json.h": '#include "base/json/json.h"\n'}
    private = header | {"src/format/tar.cc": '#include "format/json.h"\n'}
    through_header = private | {"src/format/tar.h": '#include "format/json.h"\n'}
    from_another_room = private | {"src/data/pack.cc": '#include "format/json.h"\n'}
    said = "src/format/json.h:1: \"base/json/json.h\" may not stand in a header that others include: keep 'json' in the .cc file"
    assert findings(private) == []
    assert findings(through_header) == [said]
    assert findings(from_another_room) == [said]


def test_rooms_that_include_each_other_are_refused(findings):
    table = "stoker_room(a ROOMS b)\nstoker_room(b ROOMS c)\nstoker_room(c ROOMS a)\n"
    assert findings({}, table) == ["rooms.cmake:1: rooms include each other: a -> b -> c -> a"]


def test_more_than_25_sources_with_libtorch_are_refused(findings):
    header = {"src/torch/model.h": "#include <ATen/core/Tensor.h>\n"}
    sources = {f"src/torch/part{n}.cc": '#include "torch/model.h"\n' for n in range(26)}
    assert findings(header | sources) == ["src/torch:1: 26 sources see libtorch (at most 25)"]
    without = {"src/torch/part0.cc": "", "src/torch/a_test.cc": '#include "torch/model.h"\n'}
    assert findings(header | sources | without) == []
