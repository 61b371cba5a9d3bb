"""Dependencies of the stoker program, and its help, version and errors for unknown commands."""

import platform
import re
import subprocess
from pathlib import Path

import pytest
from conftest import BIN, REPOSITORY

RUNTIME = {"linux-vdso", "ld-linux-x86-64", "libc", "libm", "libstdc++", "libgcc_s"}


def shared_libraries(program: Path) -> set[str]:
    """Names, without path and version, of all shared libraries that a program loads when it starts."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return {Path(name).name.partition(".so")[0] for name in re.findall(r"^\s+(\S+)", listed, re.MULTILINE)}


def test_needs_few_shared_libraries_and_neither_libtorch_nor_python(stoker):
    libraries = shared_libraries(stoker.path)
    assert {"libc", "libm"} <= libraries  # the output of ldd was parsed
    assert len(libraries - RUNTIME) <= 10
    assert not [name for name in libraries if re.match(r"libtorch|libc10|libpython|libarrow|libhdf5|libcurl", name)]


def test_the_trainer_needs_libtorch_but_no_python(stoker):
    libraries = shared_libraries(stoker.train_path)
    assert "libtorch_cpu" in libraries
    assert not [name for name in libraries if name.startswith("libpython")]


BUILD = re.compile(
    r"(?:commit ([0-9a-f]{12,})(?:-dirty)?, )?(\w+), (?:gcc|clang) \d+ lib(?:stdc|c)\+\+, glibc ≥ 2\.\d+"
)


def test_version_names_the_file_version_and_the_build(stoker):
    version = (REPOSITORY / "VERSION").read_text().strip()
    shown = stoker("--version", code=0).out
    match = re.fullmatch(rf"stoker {re.escape(version)} \((.+)\)\n", shown)
    assert match, shown
    build = BUILD.fullmatch(match[1])
    assert build, shown
    assert build[2] == platform.machine()
    if (REPOSITORY / ".git").exists():
        kind = subprocess.run(["git", "cat-file", "-t", build[1]], cwd=REPOSITORY, capture_output=True, text=True)
        assert kind.stdout == "commit\n"


def commit_of(folder, **variables):
    """The commit that the build script finds for the sources in a folder."""
    source = folder / "commit.cc"
    settings = [f"-D{name}={value}" for name, value in ({"SOURCES": folder, "SOURCE": source} | variables).items()]
    subprocess.run(["cmake", *settings, "-P", REPOSITORY / "cmake/commit.cmake"], check=True)
    return re.search(r'return "(.*)";', source.read_text())[1]


def test_the_commit_comes_from_the_variable_git_or_the_source_archive(tmp_path):
    (tmp_path / "cmake").mkdir()
    written = tmp_path / "cmake/commit.txt"
    written.write_text((REPOSITORY / "cmake/commit.txt").read_text())
    assert commit_of(tmp_path) == ""
    written.write_text("1a2b3c4d5e6f78901a2b3c4d5e6f78901a2b3c4d\n")
    assert commit_of(tmp_path) == "1a2b3c4d5e6f"
    assert commit_of(tmp_path, COMMIT="c0ffee-packaged") == "c0ffee-packaged"
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "cmake"], ["commit", "-q", "-m", "one"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert commit_of(tmp_path) == head[:12]
    written.write_text("changed\n")
    assert commit_of(tmp_path) == f"{head[:12]}-dirty"


def test_the_same_commit_leaves_its_source_untouched(tmp_path):
    commit_of(tmp_path, COMMIT="c0ffee")
    before = (tmp_path / "commit.cc").stat().st_mtime_ns
    commit_of(tmp_path, COMMIT="c0ffee")
    assert (tmp_path / "commit.cc").stat().st_mtime_ns == before
    assert commit_of(tmp_path, COMMIT="decaf") == "decaf"


def test_no_command_shows_the_overview(stoker):
    shown = stoker(code=2)
    assert "Usage: stoker COMMAND" in shown.out + shown.err
    assert stoker("--help", code=0).out.splitlines()[0] == shown.out.splitlines()[0]


def test_an_unknown_command_is_refused_with_a_suggestion(stoker):
    refused = stoker("statsu")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err == "unknown command 'statsu'; did you mean 'status'?\n  try: stoker --help\n"


@pytest.mark.parametrize("words", [["data", "--help"], ["data", "-h"], ["help", "data"]])
def test_a_noun_shows_its_own_commands(stoker, words):
    shown = stoker(*words, code=0).out
    assert shown.startswith("Usage: stoker data COMMAND\n\n  data pack ")
    assert set(re.findall(r"^  ([a-z]+) ", shown, re.MULTILINE)) == {"data"}
    assert stoker("data", code=2).out == shown


def test_help_prints_the_help_of_a_command(stoker):
    assert stoker("help", "data", "pack", code=0).out == stoker("data", "pack", "--help", code=0).out


def test_an_unknown_command_of_a_noun_is_refused_with_a_suggestion(stoker):
    refused = stoker("data", "pakc", "x")
    assert refused.code == 2
    assert refused.err == "data: unknown command 'pakc'; did you mean 'pack'?\n  try: stoker data --help\n"


def test_every_command_refuses_an_unknown_flag(stoker):
    names = re.findall(r"^  ([a-z-]+(?: [a-z]+)?)  ", stoker("--help").out, re.MULTILINE)
    assert names
    for name in names:
        refused = stoker(*name.split(), "--no-such-flag")
        assert (refused.code, refused.out) == (2, ""), name
        assert "--no-such-flag" in refused.err, name


def test_output_to_a_closed_pipe_does_not_crash(stoker):
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{BIN}/stoker --help | true"], capture_output=True, text=True
    )
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_output_is_complete_without_home_or_terminal(stoker, arguments):
    assert stoker(*arguments, env={"HOME": None, "TERM": None, "PATH": None}, code=0).out
