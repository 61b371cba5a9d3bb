"""`stoker completion`: bash, zsh and fish complete commands, options, values, files and runs with the printed script."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from help_texts import commands_of, flags_of

COLUMNS = 300


@pytest.fixture
def script(stoker, tmp_path):
    """script("bash") -> a file with the printed script, in a folder with a job file and two runs."""
    for run in ("2026-01-01_a", "2026-01-02_b"):
        (tmp_path / "runs" / run).mkdir(parents=True)
        (tmp_path / "runs" / run / "run.json").write_text("{}")
    (tmp_path / "runs/unfinished").mkdir()
    (tmp_path / "other/2025_z").mkdir(parents=True)
    (tmp_path / "other/2025_z/run.json").write_text("{}")
    (tmp_path / "job.yaml").write_text("")

    def make(shell: str) -> Path:
        file = tmp_path / f"completion.{shell}"
        file.write_text(stoker("completion", shell, code=0).out)
        return file

    return make


def complete_in_bash(script: Path, *words: str) -> list[str]:
    """The candidates for the last word, as bash's readline would receive them."""
    line = " ".join(shlex.quote(word) for word in ("stoker", *words))
    program = f"""
source {shlex.quote(str(script))}
COMP_WORDS=({line}) COMP_CWORD={len(words)}
_stoker
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", program], cwd=script.parent, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines() if done.stdout != "\n" else []


def test_bash_completes_commands_and_groups(stoker, script):
    file = script("bash")
    names = {name.split()[0] for name in commands_of(stoker)}
    assert set(complete_in_bash(file, "")) == names | {"--help", "--version"}
    assert complete_in_bash(file, "sub") == ["submit"]
    verbs = {name.split()[1] for name in commands_of(stoker) if name.startswith("data ")}
    assert set(complete_in_bash(file, "data", "")) == verbs | {"--help"}
    assert complete_in_bash(file, "data", "pa") == ["pack"]
    assert complete_in_bash(file, "no-such-command", "") == []


def test_bash_completes_every_option_of_every_command(stoker, script):
    file = script("bash")
    for command in commands_of(stoker):
        assert set(complete_in_bash(file, *command.split(), "-")) == flags_of(stoker, command), command


def test_bash_completes_a_group_that_is_a_command_itself(script):
    file = script("bash")
    assert {"run", "ask", "best"} < set(complete_in_bash(file, "sweep", ""))
    assert "job.yaml" in complete_in_bash(file, "sweep", "")
    assert complete_in_bash(file, "sweep", "lr.yaml", "--at") == ["--at-once"]
    assert complete_in_bash(file, "sweep", "best", "--rer") == ["--rerun"]


def test_bash_completes_fixed_values_of_options_and_arguments(script):
    file = script("bash")
    formats = ["auto", "tar", "tfrecord", "parquet", "hdf5", "zarr"]
    assert complete_in_bash(file, "data", "pack", "--format", "") == formats
    assert complete_in_bash(file, "data", "pack", "photos", "--format", "=", "t") == ["tar", "tfrecord"]
    assert complete_in_bash(file, "data", "pack", "--format", "=") == formats
    assert complete_in_bash(file, "report", "--format", "") == ["html", "text", "json"]
    assert complete_in_bash(file, "completion", "") == ["bash", "zsh", "fish"]
    assert complete_in_bash(file, "schema", "") == ["job"]
    assert complete_in_bash(file, "data", "convert", "--missing", "") == ["drop", "nan"]


def test_bash_completes_files_folders_and_runs(script):
    file = script("bash")
    assert complete_in_bash(file, "run", "jo") == ["job.yaml"]
    assert set(complete_in_bash(file, "status", "--runs", "")) == {"other", "runs"}
    assert complete_in_bash(file, "wait", "") == ["last", "2026-01-01_a", "2026-01-02_b"]
    assert complete_in_bash(file, "wait", "2026-01-02") == ["2026-01-02_b"]
    assert complete_in_bash(file, "wait", "--runs", "other", "") == ["last", "2025_z"]
    assert complete_in_bash(file, "logs", "--runs", "=", "other", "2") == ["2025_z"]
    runs, files = {"last", "2026-01-01_a", "2026-01-02_b"}, {"completion.bash", "job.yaml", "other", "runs"}
    assert set(complete_in_bash(file, "explain", "")) == runs | files


def test_bash_counts_arguments_without_the_values_of_options(script):
    file = script("bash")
    assert complete_in_bash(file, "lab", "fault", "--name", "lab1", "fre") == ["freeze"]
    assert complete_in_bash(file, "wait", "--timeout", "2h", "la") == ["last"]
    assert complete_in_bash(file, "wait", "--timeout", "") == []
    assert complete_in_bash(file, "wait", "--host", "login", ":", "dir", "la") == ["last"]


def test_completion_starts_no_program(script):
    file = script("bash")
    (file.parent / "stoker").write_text("#!/bin/sh\ntouch started\n")
    (file.parent / "stoker").chmod(0o755)
    env = os.environ | {"PATH": f"{file.parent}:{os.environ['PATH']}"}
    subprocess.run(
        ["bash", "--norc", "-c", f"source {file}; COMP_WORDS=(stoker wait '') COMP_CWORD=2; _stoker"],
        cwd=file.parent,
        env=env,
        check=True,
        timeout=30,
    )
    assert not (file.parent / "started").exists()


def press_tab_in_zsh(script: Path, line: str, until: str) -> str:
    """The terminal of an interactive zsh after the line and Tab, when it shows `until` (a regular expression)."""
    folder = script.parent
    (folder / ".zshrc").write_text(
        "PS1='> ' LISTMAX=0\nunsetopt beep list_beep\nautoload -Uz compinit\ncompinit -u -D\n"
        f"source {shlex.quote(str(script))}\nprint REA''DY\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-d", "-i"], os.environ | {"TERM": "xterm", "ZDOTDIR": str(folder)})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, COLUMNS, 0, 0))

    def read_until(pattern: str) -> str:
        text, end = "", time.monotonic() + 20
        while time.monotonic() < end and not re.search(pattern, text, re.DOTALL):
            if select.select([terminal], [], [], 0.2)[0]:
                raw = os.read(terminal, 65536).decode(errors="replace")
                text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", raw)
        assert re.search(pattern, text, re.DOTALL), text
        return text

    try:
        read_until("READY.*> ")
        os.write(terminal, f"{line}\t".encode())
        return read_until(until)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.needs("zsh")
def test_zsh_completes_commands_options_and_values_with_their_help(script):
    file = script("zsh")
    press_tab_in_zsh(file, "stoker ", r"data +-- pack, convert.*submit +-- Submit a job")
    press_tab_in_zsh(file, "stoker data ", "pack +-- Pack images into a dataset of shards")
    press_tab_in_zsh(file, "stoker data pack --str", "stoker data pack --strict ")
    press_tab_in_zsh(file, "stoker data pack --", "--strict +-- Fail if any file must be left out")
    press_tab_in_zsh(file, "stoker data pack --format tf", "tfrecord ")
    press_tab_in_zsh(file, "stoker data pack --hash=sh", "--hash=sha256 ")


@pytest.mark.needs("zsh")
def test_zsh_completes_files_and_runs(script):
    file = script("zsh")
    press_tab_in_zsh(file, "stoker run jo", "stoker run job.yaml ")
    press_tab_in_zsh(file, "stoker wait ", "2026-01-01_a +2026-01-02_b +last")
    press_tab_in_zsh(file, "stoker wait --runs other 2", "--runs other 2025_z ")


def complete_in_fish(script: Path, line: str) -> dict[str, str]:
    """The candidates with their descriptions."""
    home = script.parent / "home"
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {shlex.quote(str(script))}; complete -C {shlex.quote(line)}"],
        cwd=script.parent,
        env=os.environ | {"HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    rows = (row.partition("\t") for row in done.stdout.splitlines())
    return {word: description for word, _, description in rows}


@pytest.mark.needs("fish")
def test_fish_completes_commands_options_and_values_with_their_help(stoker, script):
    file = script("fish")
    words = complete_in_fish(file, "stoker ")
    assert set(words) == {name.split()[0] for name in commands_of(stoker)}
    assert words["submit"] == "Submit a job or a batch script to Slurm"
    assert complete_in_fish(file, "stoker data pa") == {"pack": "Pack images into a dataset of shards"}
    assert complete_in_fish(file, "stoker data pack --stri") == {"--strict": "Fail if any file must be left out"}
    assert set(complete_in_fish(file, "stoker data pack --format t")) == {"tar", "tfrecord"}


@pytest.mark.needs("fish")
def test_fish_completes_every_long_option_of_every_command(stoker, script):
    file = script("fish")
    for command in commands_of(stoker):
        long_flags = {flag for flag in flags_of(stoker, command) if flag.startswith("--")}
        assert set(complete_in_fish(file, f"stoker {command} --")) == long_flags, command


@pytest.mark.needs("fish")
def test_fish_completes_files_and_runs(script):
    file = script("fish")
    assert set(complete_in_fish(file, "stoker run jo")) == {"job.yaml"}
    assert set(complete_in_fish(file, "stoker wait 2")) == {"2026-01-01_a", "2026-01-02_b"}
    assert set(complete_in_fish(file, "stoker wait --runs other ")) == {"last", "2025_z"}


def test_json_has_the_script(stoker):
    value = json.loads(stoker("completion", "bash", "--json", code=0).out)
    assert value == {"shell": "bash", "script": stoker("completion", "bash", code=0).out}


def test_an_unknown_shell_is_refused_with_a_suggestion(stoker):
    refused = stoker("completion", "zhs", code=2)
    assert refused.err == "completion: SHELL: unknown value 'zhs'; did you mean 'zsh'?\n"
