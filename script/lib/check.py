"""script/check: runs every check over the files that git knows or would take, and prints what they find."""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import check_messages
import check_phrases
import check_plurals
import check_prose
import check_rooms
import check_sizes
import check_text
import check_tidy
from findings import Finding

CPP = {".cc", ".h"}
# The tools of .venv take precedence over PATH.
TOOLS = Path(sys.executable).parent


def project_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := Path(name)).is_file()]


def scripts(files: Iterable[Path]) -> list[Path]:
    """Shell scripts, by their first line."""
    return [
        path
        for path in files
        if path.suffix in ("", ".sh") and path.read_bytes()[:64].startswith(b"#!/usr/bin/env bash")
    ]


def check_format(files: list[Path], fix: bool) -> Iterator[Finding]:
    if fix:
        subprocess.run(["clang-format-19", "-i", *map(str, files)], check=True)
    done = subprocess.run(["clang-format-19", "--dry-run", *map(str, files)], capture_output=True, text=True)
    for name in sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be", done.stderr, re.MULTILINE))):
        yield Finding(Path(name), 1, "not formatted (script/check --fix)")


def spelled_files(files: Iterable[Path]) -> list[Path]:
    """All English text but tests, which make typing errors on purpose."""
    tests = [path for path in files if path.stem.endswith("_test") or path.parts[0] == "tests"]
    return [path for path in files if path not in tests and path.suffix not in check_text.BINARY | {".po"}]


def run_tool(command: list[str], files: Iterable[Path] = ()) -> Iterator[Finding]:
    """A tool that prints its findings itself: they are shown, and count as one."""
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True)
    if done.returncode != 0:
        print((done.stdout + done.stderr).rstrip())
        yield Finding(Path(Path(command[0]).name), 0, "see above")


def checks(files: list[Path], fix: bool) -> dict[str, Callable[[], Iterator[Finding]]]:
    cpp = [path for path in files if path.suffix in CPP]
    ruff = str(TOOLS / "ruff")
    return {
        "format": lambda: check_format(cpp, fix) if cpp else iter(()),
        "python format": lambda: run_tool([ruff, "format", "--quiet", *([] if fix else ["--diff"]), "."]),
        "python": lambda: run_tool([ruff, "check", "--quiet", *(["--fix"] if fix else []), "."]),
        "shell": lambda: run_tool(["shellcheck"], scripts(files)),
        "spelling": lambda: run_tool(["codespell"], spelled_files(files)),
        "rooms": lambda: check_rooms.check(files, Path("cmake/rooms.cmake")),
        "sizes": lambda: check_sizes.check(files),
        "text": lambda: check_text.check(files),
        "messages": lambda: check_messages.check(files),
        "phrases": lambda: check_phrases.check(files),
        "prose": lambda: check_prose.check(files),
        "plurals": lambda: check_plurals.check(files),
        "tidy": check_tidy.check,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/check", description="Check the sources without running them.")
    parser.add_argument("--fix", action="store_true", help="apply the formatters")
    parser.add_argument("--only", metavar="NAME", help="run one check")
    parser.add_argument("--without", metavar="NAME", help="run all but one")
    options = parser.parse_args()
    os.chdir(Path(__file__).resolve().parents[2])
    chosen = checks(project_files(), options.fix)
    for name in (options.only, options.without):
        if name and name not in chosen:
            parser.error(f"no check '{name}' (available: {', '.join(chosen)})")
    if options.only:
        chosen = {options.only: chosen[options.only]}
    chosen.pop(options.without, None)
    failed = []
    for name, check in chosen.items():
        started = time.monotonic()
        findings = sorted(set(check()))
        for finding in findings:
            print(finding)
        if any(not finding.is_warning for finding in findings):
            failed.append(name)
        if (seconds := time.monotonic() - started) > 2:
            print(f"{name}: {seconds:.0f} s", file=sys.stderr)
    print(f"check: failed: {', '.join(failed)}" if failed else f"check: {len(chosen)} checks, all well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
