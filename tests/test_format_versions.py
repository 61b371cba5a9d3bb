"""Every page of docs/formats ends with the versions that this Stoker reads, and the numbers are the constants of the sources."""

import re

import pytest
from conftest import REPOSITORY

PAGES = sorted((REPOSITORY / "docs/formats").glob("*.md"))
SECTION = re.compile(r"^## Versions\n\n(Read by Stoker 0\.1 and later: .+ Refused: .+\.)\n\Z", re.MULTILINE)

# A constant: its source, the pattern of its definition, and the pages with their words for its value.
CONSTANTS = [
    ("src/dataset/manifest.cc", r"kFormatVersion = (\d+);", {"manifest": "`format_version` {}", "dataset": "`format_version` {}"}),
    ("src/dataset/side_index_layout.h", r"kVersion = (\d+);", {"index": "version {},", "dataset": "version {} of [`index.bin`]"}),
    ("src/checkpoint/manifest.cc", r"kManifestVersion = (\d+);", {"checkpoint": "`version` {} of `manifest.json`"}),
    ("src/launch/state/array_file.cc", r"kVersion = (\d+);", {"array": "`version` {} of `array.json`"}),
    ("src/record/run_folder.cc", r"kRunVersion = (\d+);", {"run": "`version` {} of `run.json`"}),
    ("src/record/beacon.cc", r"kVersion = (\d+);", {"run": "version {} of the beacon"}),
    ("src/record/hello/hello.cc", r'integer_of\(object, "version"\) != (\d+)', {"run": "`version` {} of `hello.json`"}),
    ("src/stage/cache/cache_folder.cc", r"kVersion = (\d+);", {"cache": "`format` {} of `stoker-cache.json`"}),
    ("src/transfer/copy_marker.cc", r"kFormat = (\d+);", {"copy-marker": "`format` {}."}),
    ("src/sweep/study/definition.h", r"kStudyFormat = (\d+);", {"study": "`version` {} of `study.json`"}),
    ("src/track/run/track_state.cc", r"kVersion = (\d+);", {"track": "`version` {}."}),
    ("src/record/trace/flight.cc", r"kVersion = (\d+);", {"flight": "version {}."}),
    ("src/archive/streams/stream_index.cc", r"kVersion = (\d+);", {"mds-litdata": "version {} of MDS"}),
    ("src/net/message.cc", r'kMagic = "(\w+)";', {"messages": "begin with `{}`"}),
    ("src/net/secure_channel.cc", r'kHelloMagic = "(\w+)";', {"broadcast": "begin with `{}`"}),
    ("src/stage/broadcast/tree_list.cc", r'kListMark = "(\w+)";', {"broadcast": "lists that begin with `{}`"}),
    ("src/parquet/writer.cc", r'kCreator = "(stoker version \d+)";', {"parquet": "`{}`"}),
]  # fmt: skip
# Versions of other formats, which their own pages or standards describe.
ELSEWHERE = {
    "src/arrays/samples/hdf5_blocks.cc",  # of a message of HDF5
    "src/arrays/samples/zip_writer.cc",  # of zip
    "src/report/json.cc",  # docs/commands/report.md
    "src/report/compare/print.cc",  # docs/commands/compare.md
    "src/profile/print/json.cc",  # docs/commands/profile.md
}


def versions(page) -> str:
    """The line of a page's last section."""
    found = SECTION.search(page.read_text())
    assert found, (
        f"{page.name} does not end with '## Versions' and a line 'Read by Stoker 0.1 and later: ... Refused: ...'"
    )
    return found[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_format_names_the_versions_that_read_it(page):
    assert len(versions(page)) < 400


@pytest.mark.parametrize(("source", "pattern", "pages"), CONSTANTS, ids=lambda value: value if "/" in value else "")
def test_the_pages_have_the_numbers_of_the_sources(source, pattern, pages):
    (value,) = set(re.findall(pattern, (REPOSITORY / source).read_text()))
    for page, words in pages.items():
        assert words.format(value) in versions(REPOSITORY / f"docs/formats/{page}.md")


def test_the_pages_name_the_incompatible_features_of_the_sources():
    text = (REPOSITORY / "src/dataset/manifest.cc").read_text()
    block = re.search(r"// Incompatible features\.\n((?:constexpr .*\n)+)", text)[1]
    features = re.findall(r'"([\w-]+)"', block)
    assert features
    shown = re.findall(r"`([\w-]+)`", versions(REPOSITORY / "docs/formats/manifest.md"))
    assert sorted(set(shown) - {"format_version"}) == sorted(features)
    index = (REPOSITORY / "src/dataset/side_index.cc").read_text()
    assert "load<std::uint32_t>(bytes, 12); features != 0" in index
    assert "no bit of the incompatible features" in versions(REPOSITORY / "docs/formats/index.md")


def test_every_version_constant_has_its_page():
    sources = {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "src").rglob("*")
        if path.suffix in (".cc", ".h")
        and not path.stem.endswith("_test")
        and re.search(r"constexpr [\w:]+ k(?:Format|Manifest|Run)?Version = ", path.read_text())
    }
    assert sources - ELSEWHERE <= {source for source, _, _ in CONSTANTS}
