"""script/lib/check_rooms.py: edges between rooms, external libraries, names of sources and types."""

import re
from pathlib import Path

import check_rooms
import pytest

TABLE = """
# stoker_room(NAME ROOMS <rooms>)
function(stoker_room name)
  stoker_room(base ROOMS LIBRARIES stoker::fmt stoker::json)
  stoker_room(archive ROOMS LIBRARIES stoker::json)
  stoker_room(pack ROOMS archive
              TESTS train
              LIBRARIES stoker::jpeg)
  stoker_room(train LIBTORCH ROOMS pack LIBRARIES libtorch::libtorch)
"""


@pytest.fixture
def findings(tmp_path, monkeypatch):
    """findings({"src/a/b.cc": text}) -> the findings of the check for these files."""
    monkeypatch.chdir(tmp_path)

    def check(sources: dict[str, str], table: str = TABLE) -> list[str]:
        Path("rooms.cmake").write_text(table)
        for name, text in sources.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        return [str(finding) for finding in check_rooms.check(map(Path, sources), Path("rooms.cmake"))]

    return check


def test_the_real_table_is_read_completely():
    cmake = Path(__file__).parents[2] / "cmake/rooms.cmake"
    rooms = check_rooms.parse_table(cmake.read_text())
    declared = len(re.findall(r"^ +stoker_room\(\w", cmake.read_text(), re.MULTILINE))
    assert len(rooms) == declared > 10
    assert {"base", "config"} - rooms["job"].may_include == {"base"}
    assert "jpeg" in rooms["image"].libraries
    assert rooms["config"].may_include == set()
    assert rooms["train"].has_libtorch and not rooms["job"].has_libtorch


def test_allowed_edges_have_no_findings(findings):
    sources = {
        "src/base/text.h": "",
        "src/base/text.cc": "#include <fmt/format.h>\n#include <string>\n",
        "src/archive/tar.h": '#include "base/status.h"\n',
        "src/archive/tar.cc": '#include "base/json/json.h"\n#include "archive/tar.h"\n',
        "src/base/json/json.h": "#include <nlohmann/json.hpp>\n",
        "src/pack/pack.h": "",
        "src/pack/pack.cc": '#include "archive/tar.h"\n#include <jpeglib.h>\n',
        "src/pack/pack_test.cc": '#include <gtest/gtest.h>\n#include "train/ddp.h"\n',
    }
    assert findings(sources) == []


@pytest.mark.parametrize(
    ("path", "include", "output"),
    [
        (
            "src/archive/tar.cc",
            '"pack/pack.h"',
            "room 'archive' may not include 'pack/pack.h' (beside base: nothing else)",
        ),
        ("src/pack/pack.cc", '"train/ddp.h"', "room 'pack' may not include 'train/ddp.h' (beside base: archive)"),
        ("src/pack/pack.cc", '"pack.h"', 'include "pack.h" by its full path from src/'),
        ("src/pack/pack.cc", "<re2/re2.h>", "room 'pack' does not link 're2' (<re2/re2.h>; see cmake/rooms.cmake)"),
        ("src/pack/pack.cc", "<fmt/format.h>", "fmt is used in src/base/text.cc alone: use base's format()"),
        ("src/pack/pack.cc", "<gtest/gtest.h>", "<gtest/gtest.h> belongs in tests"),
        (
            "src/pack/pack.cc",
            "<torch/torch.h>",
            "room 'pack' does not link 'libtorch' (<torch/torch.h>; see cmake/rooms.cmake)",
        ),
        (
            "src/archive/tar.cc",
            "<nlohmann/json.hpp>",
            '<nlohmann/json.hpp> is compiled once, behind "base/json/json.h": include that',
        ),
        ("src/attic/old.cc", "<string>", "'attic' is no room of rooms.cmake"),
        ("src/train/ddp.h", "<torch/torch.h>", "<torch/torch.h> in a header costs every file that includes it seconds"),
    ],
)
def test_a_forbidden_include_is_reported_with_the_allowed_ones(findings, path, include, output):
    expected_line = 1 if "attic" in path else 2
    sources = {path: f"\n#include {include}\n"} | ({path.replace(".cc", ".h"): ""} if path.endswith(".cc") else {})
    if "attic" in path:
        sources = {path.replace(".cc", ".h"): ""}
        assert findings(sources) == [f"{path.replace('.cc', '.h')}:{expected_line}: {output}"]
    else:
        assert findings(sources) == [f"{path}:{expected_line}: {output}"]


def test_an_external_library_may_not_be_included_in_a_public_header(findings):
    header = {"src/archive/json.h": '#include "base/json/json.h"\n', "src/archive/tar.h": ""}
    private = header | {"src/archive/tar.cc": '#include "archive/json.h"\n'}
    through_header = private | {"src/archive/zip.h": '#include "archive/json.h"\n'}
    from_a_different_room = private | {"src/pack/pack.h": "", "src/pack/pack.cc": '#include "archive/json.h"\n'}
    output = (
        "src/archive/json.h:1: \"base/json/json.h\" may not be included in a public header: keep 'json' in the .cc file"
    )
    assert findings(private) == []
    assert findings(through_header) == [output]
    assert findings(from_a_different_room) == [output]


def test_rooms_that_include_each_other_are_refused(findings):
    table = "stoker_room(a LIBTORCH ROOMS b)\nstoker_room(b ROOMS c)\nstoker_room(c ROOMS a)\n"
    assert findings({}, table) == ["rooms.cmake:1: rooms include each other: a -> b -> c -> a"]


def test_more_than_40_sources_with_libtorch_are_refused(findings):
    header = {"src/train/model.h": "#include <ATen/core/Tensor.h>\n"}
    sources = {f"src/train/part{n}.cc": '#include "train/model.h"\n' for n in range(41)}
    headers = {f"src/train/part{n}.h": "" for n in range(41)}
    assert findings(header | headers | sources) == ["src/train:1: 41 sources include libtorch (at most 40)"]


def test_a_room_for_libtorch_without_libtorch_is_reported(findings):
    sources = {"src/train/model.h": "", "src/train/model.cc": ""}
    assert findings(sources) == ["src/train:1: no source includes libtorch: is this still the room for it?"]


def test_a_table_without_a_room_for_libtorch_is_reported(findings):
    assert findings({}, "stoker_room(a ROOMS)\n") == ["cmake/rooms.cmake:1: no room is marked LIBTORCH"]


def test_a_source_needs_a_header_of_its_name(findings):
    assert findings({"src/pack/pack.cc": ""}) == ["src/pack/pack.cc:1: has no header of its name (pack.h)"]
    assert findings({"src/pack/plan.cc": "", "src/pack/plan_internal.h": ""}) == []
    assert findings({"src/pack/rules/one.cc": "", "src/pack/tool_main.cc": ""}) == []


def test_two_types_may_not_share_a_name(findings):
    sources = {
        "src/archive/tar.h": "struct Entry {\n};\n",
        "src/pack/pack.h": "class Entry final : public Base {\n};\n",
    }
    assert findings(sources) == ["src/pack/pack.h:1: type 'Entry' is also defined in src/archive/tar.h"]


def test_parts_of_a_folder_may_not_include_each_other(findings):
    sources = {
        "src/pack/shard/shard.h": '#include "pack/plan.h"\n',
        "src/pack/plan.h": '#include "pack/shard/shard.h"\n',
    }
    assert findings(sources) == ["src/pack:1: parts of the folder include each other: headers -> shard/ -> headers"]


PUBLIC = """
  stoker_room(base PUBLIC status text ROOMS LIBRARIES stoker::fmt)
  stoker_room(loader PUBLIC loader ROOMS LIBRARIES)
  stoker_room(train LIBTORCH PUBLIC session ROOMS loader LIBRARIES libtorch::libtorch)
"""
FACE = {
    "include/stoker/status.h": '#include "stoker/text.h"\n',
    "include/stoker/text.h": "",
    "include/stoker/loader.h": '#include "stoker/status.h"\n',
    "include/stoker/session.h": '#include <ATen/core/Tensor.h>\n\n#include "stoker/loader.h"\n',
}


def test_public_headers_belong_to_rooms(findings):
    assert findings(FACE, PUBLIC) == []
    source = {"src/loader/loader.cc": '#include "stoker/loader.h"\n#include "stoker/session.h"\n'}
    assert findings(FACE | source, PUBLIC) == [
        "src/loader/loader.cc:2: room 'loader' may not include 'stoker/session.h' (beside base: nothing else)"
    ]


def test_a_public_header_includes_no_private_one(findings):
    assert findings(FACE | {"include/stoker/text.h": '#include "base/file.h"\n', "src/base/file.h": ""}, PUBLIC) == [
        "include/stoker/text.h:1: a public header may not include the private 'base/file.h'"
    ]


def test_public_headers_and_the_table_name_each_other(findings):
    extra = {"include/stoker/extra.h": ""}
    missing = {name: text for name, text in FACE.items() if "session" not in name}
    assert findings(FACE | extra, PUBLIC) == [
        "include/stoker/extra.h:1: is PUBLIC of no room of rooms.cmake",
        "include/stoker/extra.h:1: 'stoker' is no room of rooms.cmake",
    ]
    assert findings(missing, PUBLIC) == ["rooms.cmake:1: include/stoker/session.h does not exist"]
