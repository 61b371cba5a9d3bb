"""`stoker profile --tool`: perf and py-spy for real, torch.profiler by steps, and tools that are missing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MODULE
from running import wait_for

BUSY = """
import sys, time
def work():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
work()
sys.exit(7)
"""
LOOP = """
import torch, stoker
with stoker.profile() as p:
    for _ in p.steps(range(8)):
        with p.part("forward"):
            torch.ones(8, 8) @ torch.ones(8, 8)
"""


@pytest.fixture
def script(tmp_path) -> Path:
    (tmp_path / "busy.py").write_text(BUSY)
    # Of two ranks the first to fail stops the other, whose tool may then write nothing.
    (tmp_path / "fine.py").write_text(BUSY.replace("exit(7)", "exit(0)"))
    return tmp_path / "busy.py"


def path_with(*folders: Path | str) -> dict[str, str]:
    return {"PATH": os.pathsep.join(map(str, folders))}


@pytest.mark.needs("perf")
def test_perf_records_the_chosen_rank_of_a_run(stoker, script, tmp_path):
    (tmp_path / "job.yaml").write_text(
        f"name: p\nrun: {stoker.path} profile --tool perf --ranks 1 -- {sys.executable} fine.py\n"
        "resources: {ranks_per_node: 2}\n"
    )
    stoker("run", "job.yaml", code=0)
    files = {file.name for file in tmp_path.glob("runs/*/attempts/1/*") if "perf" in file.name}
    assert files == {"perf-0001.data"}


@pytest.mark.needs("perf")
def test_perf_records_samples_and_keeps_the_exit_code(stoker, script, tmp_path):
    assert stoker("profile", "--tool", "perf", "--", sys.executable, script, code=7).out == ""
    text = subprocess.run(
        ["perf", "report", "-i", "perf-0000.data", "--stdio"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "python" in text.stdout


def test_py_spy_records_the_functions_and_keeps_the_exit_code(stoker, script, tmp_path):
    environment = path_with(Path(sys.executable).parent, "/usr/bin", "/bin")
    done = stoker("profile", "--tool", "py-spy", "--", sys.executable, script, env=environment)
    assert done.code == 7, done.err
    assert "work (busy.py" in (tmp_path / "py-spy-0000.svg").read_text()


def test_a_signal_reaches_the_command_under_py_spy(stoker, tmp_path):
    code = "import time, pathlib; pathlib.Path('up').touch(); time.sleep(600)"
    environment = path_with(Path(sys.executable).parent, "/usr/bin", "/bin")
    process = stoker.start("profile", "--tool", "py-spy", "--", sys.executable, "-c", code, env=environment)
    wait_for((tmp_path / "up").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_a_missing_tool_is_reported_and_leaves_no_files(stoker, script, tmp_path):
    before = set(tmp_path.iterdir())
    for tool in ("nsys", "ncu", "perf", "py-spy"):
        failed = stoker("profile", "--tool", tool, "--", sys.executable, script, env=path_with("/nowhere"), code=3)
        assert f"profile: rank 0: {tool} is not installed on this node (--tool)\n  try: " in failed.err
    assert set(tmp_path.iterdir()) == before
    # Other ranks need no tool.
    stoker("profile", "--tool", "nsys", "--", sys.executable, script, env=path_with("/nowhere") | {"RANK": "1"}, code=7)


def test_wrong_tools_ranks_and_steps_are_refused(stoker):
    for words, message in (
        (("--tool", "pref", "--", "true"), "unknown tool 'pref'; did you mean 'perf'? (--tool)"),
        (("--tool", "perf", "--ranks", "x", "--", "true"), "'x' is no list of ranks, such as 0,3 (--ranks)"),
        (("--tool", "perf", "--steps", "1..2", "--", "true"), "perf records the whole command, not steps (--steps)"),
        (("--tool", "torch", "--steps", "1..", "--", "true"), "needs the first and the last step"),
        (("--tool", "perf"), "--tool needs a command"),
        (("--", "true"), "a command needs a tool (--tool)"),
        (("last", "--tool", "perf", "--", "true"), "takes a command after --, not 'last'"),
    ):
        assert message in stoker("profile", *words, code=2).err


def test_nsys_and_ncu_are_called_with_one_file_for_the_rank(stoker, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("nsys", "ncu"):
        (tools / tool).write_text('#!/bin/sh\necho "$0 $@ $STOKER_PROFILE_TOOL $STOKER_PROFILE_STEPS"\n')
        (tools / tool).chmod(0o755)
    environment = path_with(tools, "/usr/bin", "/bin") | {"RANK": "2", "STOKER_ATTEMPT_DIR": "/a"}
    words = ("--ranks", "0,2", "--steps", "10..20", "--", "true", "-x")
    nsys = stoker("profile", "--tool", "nsys", *words, env=environment, code=0).out
    assert nsys == (
        f"{tools}/nsys profile --trace=cuda,nvtx,osrt --force-overwrite=true --output=/a/nsys-0002.nsys-rep "
        "--capture-range=cudaProfilerApi --capture-range-end=stop true -x nsys 10..20\n"
    )
    ncu = stoker("profile", "--tool", "ncu", *words, env=environment, code=0).out
    assert ncu == (
        f"{tools}/ncu --target-processes=all --force-overwrite --export=/a/ncu-0002.ncu-rep --profile-from-start=off "
        "true -x ncu 10..20\n"
    )


def test_torch_traces_the_chosen_steps_of_stoker_profile(stoker, tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "job.yaml").write_text(
        f"name: t\nrun: {stoker.path} profile --tool torch --steps 3..5 -- {sys.executable} loop.py\n"
        f"environment: {{variables: {{PYTHONPATH: {MODULE}}}}}\n"
    )
    stoker("run", "job.yaml", code=0)
    (trace,) = tmp_path.glob("runs/*/attempts/1/torch-0000.json.gz")
    found = json.loads(stoker("profile", trace, "--json", code=0).out)
    assert found["ranks"][0]["steps"] == 3
    assert found["seconds"]["forward"] > 0
    records = json.loads(stoker("profile", "--json", code=0).out)
    assert (records["source"], records["notes"][-1].partition(":")[0]) == ("program", "traces of these steps")
    next(tmp_path.glob("runs/*/attempts/1/profile-0000.csv")).unlink()
    assert json.loads(stoker("profile", "--json", code=0).out)["source"] == "trace"


def test_check_finds_a_missing_tool_and_judges_the_command_behind_it(stoker, script, tmp_path):
    job = "name: p\nrun: PROGRAM fine.py\nprofile: {tool: nsys}\n"
    (tmp_path / "job.yaml").write_text(job.replace("PROGRAM", sys.executable))
    found = stoker("check", "job.yaml", env=path_with("/nowhere"), code=1).out
    assert "profile.tool: 'nsys' was not found in PATH" in found
    (tmp_path / "job.yaml").write_text(job.replace("PROGRAM", "no-such-program").replace("nsys", "torch"))
    assert "run: 'no-such-program' was not found in PATH" in stoker("check", "job.yaml", code=1).out
    (tmp_path / "job.yaml").write_text(job.replace("PROGRAM fine.py", "python3 absent.py").replace("nsys", "torch"))
    assert "absent.py: no such file in " in stoker("check", "job.yaml", code=1).out


def test_the_job_file_names_the_tool(stoker, script, tmp_path):
    job = f"name: p\nrun: {sys.executable} fine.py\nresources: {{ranks_per_node: 2}}\nprofile: {{tool: TOOL, ranks: [1]}}\n"
    environment = path_with(Path(sys.executable).parent, "/usr/bin", "/bin")
    (tmp_path / "job.yaml").write_text(job.replace("TOOL", "py-spy"))
    stoker("run", "job.yaml", env=environment, code=0)
    assert [file.name for file in tmp_path.glob("runs/*/attempts/1/*py-spy*")] == ["py-spy-0001.svg"]
    (tmp_path / "job.yaml").write_text(job.replace("TOOL", "nsys").replace("[1]", "[0]"))
    failed = stoker("run", "job.yaml", "--set", "record.directory=missing", env=environment, code=3)
    assert "nsys is not installed on this node" in failed.err
    assert not list(tmp_path.glob("missing/*/attempts/1/*nsys*"))
    refused = stoker("run", "job.yaml", "--set", "profile.ranks=[5]", code=2).err
    assert "profile.ranks: 5 is no rank of this job (0 to 1)" in refused
