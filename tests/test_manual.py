"""`stoker manual`: man pages of all commands, without warnings of groff, with every option of --help."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY
from help_texts import commands_of, flags_of


def plain(page: str) -> str:
    """The text of a man page, without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", page)
    names = {"rs": "\\", "aq": "'", "ga": "`", "dq": '"', "ha": "^", "ti": "~"}
    text = re.sub(r"\\\((\w\w)", lambda match: names[match[1]], text)
    return (
        re.sub(r"\\\[u([0-9A-F]+)\]", lambda match: chr(int(match[1], 16)), text).replace("\\-", "-").replace("\\&", "")
    )


@pytest.fixture
def pages(stoker, tmp_path) -> dict[str, str]:
    """The pages that `--all` writes, by file name."""
    stoker("manual", "--all", "man", code=0)
    return {path.name: path.read_text() for path in (tmp_path / "man").iterdir()}


def test_all_writes_a_page_for_each_command(stoker, pages):
    names = commands_of(stoker)
    assert set(pages) == {"stoker.1"} | {f"stoker-{name.replace(' ', '-')}.1" for name in names}
    assert stoker("manual", "--all", "man", code=0).out == f"man: {len(pages)} man pages\n"


def test_pages_are_reproducible_ascii_with_the_version(stoker, pages):
    version = (REPOSITORY / "VERSION").read_text().strip()
    stoker("manual", "--all", "again", env={"LC_ALL": "fr_FR.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/nowhere"}, code=0)
    for name, page in pages.items():
        assert (stoker.folder / "again" / name).read_text() == page
        assert page.isascii(), name
        assert f'"Stoker {version}"' in page.splitlines()[0], name


def test_one_page_is_printed_like_the_written_one(stoker, pages):
    assert stoker("manual", code=0).out == pages["stoker.1"]
    assert stoker("manual", "data", "pack", code=0).out == pages["stoker-data-pack.1"]
    value = json.loads(stoker("manual", "data", "pack", "--json", code=0).out)
    assert value == {"command": "data pack", "page": pages["stoker-data-pack.1"]}


def test_every_command_and_option_of_help_is_in_the_manual(stoker, pages):
    overview = plain(pages["stoker.1"])
    for command in commands_of(stoker):
        assert f"\nstoker {command}\n" in overview
        page = plain(pages[f"stoker-{command.replace(' ', '-')}.1"])
        heads = re.findall(r"^\.TP\n(-.*)$", page, re.MULTILINE)
        shown = {flag for head in heads for flag in re.findall(r"(?:^|, )(--?[a-z][\w-]*)", head)}
        assert shown == flags_of(stoker, command), command


def test_exit_status_and_variables_match_the_docs(pages):
    page = plain(pages["stoker.1"])
    section = page.partition(".SH EXIT STATUS\n")[2].partition("\n.SH")[0]
    codes = re.findall(r"^\.TP\n(\d+)\n(.*)\.$", section, re.MULTILINE)
    table = re.findall(r"^\| (\d+) \| (.*) \|$", (REPOSITORY / "docs/exit-codes.md").read_text(), re.MULTILINE)
    assert codes == table
    first = (REPOSITORY / "docs/environment.md").read_text().partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", first, re.MULTILINE)
    variables = {name.replace("<NAME>", "NAME") for row in rows for name in re.findall(r"`(.+?)`", row)}
    section = page.partition(".SH ENVIRONMENT\n")[2].partition("\n.SH")[0]
    shown = {name for head in re.findall(r"^\.TP\n(.*)$", section, re.MULTILINE) for name in head.split(", ")}
    assert variables
    assert variables <= shown


@pytest.mark.needs("groff")
def test_groff_and_man_format_every_page_without_warnings(pages, tmp_path: Path):
    for name in pages:
        file = tmp_path / "man" / name
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", file], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert "NAME" in re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)


@pytest.mark.needs("man")
def test_man_shows_quotes_and_options_verbatim(pages, tmp_path: Path):
    shown = subprocess.run(
        ["man", "--warnings", "-l", tmp_path / "man/stoker-data-index.1"],
        env=os.environ | {"MANWIDTH": "400", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", shown.stdout)
    assert "--where CONDITION" in text
    assert "\"split = 'train' and width >= 224\"" in text


def test_an_unknown_command_is_refused_with_a_suggestion(stoker):
    refused = stoker("manual", "data", "pakc", code=2)
    assert refused.err == "manual: unknown command 'data pakc'; did you mean 'data pack'?\n  try: stoker --help\n"
    assert stoker("manual", "run", "--all", "man", code=2).err == "manual: --all writes the pages of all commands\n"


def test_a_folder_that_cannot_be_written_is_named(stoker, tmp_path: Path):
    (tmp_path / "file").write_text("")
    refused = stoker("manual", "--all", "file/man")
    assert refused.code != 0
    assert refused.err.startswith("file/man: ")
