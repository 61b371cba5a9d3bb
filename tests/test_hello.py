"""`stoker hello` on this machine: what is well, what is not and how it is reported, who disturbs, and that nothing is left."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Stoker
from running import wait_for

MARK = "HELLO_TEST_MARK"


@pytest.fixture
def helper(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """helper(text) is an environment in which each rank, on telling its place, runs this shell text as nvidia-smi;
    its parent is the rank, its place is in STOKER_PLACE."""

    def make(text: str) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "nvidia-smi").write_text(f"#!/bin/bash\n{text}\n")
        (folder / "nvidia-smi").chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", MARK: str(tmp_path)}

    return make


def processes(mark: Path) -> list[int]:
    """Live processes of this test's hello."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if f"{MARK}={mark}\0".encode() in (entry / "environ").read_bytes() and not is_zombie:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def listening_ports(pids: list[int]) -> list[int]:
    """Ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:
            continue
        inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
    ports = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            ports.append(int(fields[1].split(":")[1], 16))
    return ports


def rules(output: str) -> list[str]:
    return [finding["rule"] for finding in json.loads(output)["findings"]]


def test_two_ranks_on_this_machine(stoker: Stoker):
    output = stoker("hello", code=0).out
    host = socket.gethostname().split(".")[0]
    assert output.startswith(
        f"hello from 2 ranks on {host}\n  start       2 ranks started\n  names       1 name on 2 ranks"
    )
    assert "\n  connect     2 of 2 connections between 2 ranks\n" in output
    assert "\n  all-reduce  exact over stoker's own TCP, ranks: 2\n" in output
    assert re.search(r"\nRANK   HOST +CORES +GPU +GLOO +NCCL\n +0   ", output)
    assert re.search(r"\nall-reduce +1 KiB +\d+ us +", output)
    assert "fails" not in output


def test_the_same_as_json(stoker: Stoker):
    done = stoker("hello", "--ranks-per-node", "3", "--json", code=0)
    output = json.loads(done.out)
    assert output["ready"] and output["job"] is None
    assert [step["name"] for step in output["checks"]] == [
        "start",
        "names",
        "ranks",
        "connect",
        "speed",
        "all-reduce",
        "torch",
    ]
    assert {step["state"] for step in output["checks"][:-1]} == {"passed"}
    assert sorted((way["from"], way["to"]) for way in output["connections"]) == [
        (a, b) for a in range(3) for b in range(3) if a != b
    ]
    assert all(way["error"] == "" and way["round_trip_s"] > 0 for way in output["connections"])
    assert all(speed["bytes_per_s"] > 0 for speed in output["speeds"])
    assert {timing["operation"] for timing in output["timings"]} == {
        "all-reduce",
        "reduce-scatter",
        "all-gather",
        "broadcast",
    }
    assert all(timing["seconds"] > 0 and timing["bound_s"] > 0 for timing in output["timings"])
    assert [rank["rank"] for rank in output["ranks"]] == [0, 1, 2]


def test_the_job_s_ranks_and_variables_count(stoker: Stoker, tmp_path: Path):
    (tmp_path / "job.yaml").write_text(
        "name: own\nrun: python3 train.py\nresources: {ranks_per_node: 1}\n"
        "environment: {variables: {NCCL_DEBUG: INFO}}\n"
    )
    output = json.loads(stoker("hello", "job.yaml", "--no-speed", "--json", code=0).out)
    assert [rank["variables"] for rank in output["ranks"]] == [{"NCCL_DEBUG": "INFO"}]
    assert [(step["name"], step["state"]) for step in output["checks"]][3:6] == [
        ("connect", "skipped"),
        ("speed", "skipped"),
        ("all-reduce", "skipped"),
    ]


def test_an_interface_that_is_not_there_is_named_with_the_variable(stoker: Stoker):
    done = stoker("hello", "--no-speed", code=1, env={"GLOO_SOCKET_IFNAME": "nosuch"})
    assert re.search(
        r"^GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up \(\S+; there are: .*lo.*\)\n"
        r"  try: (unset GLOO_SOCKET_IFNAME|environment: \{variables: \{GLOO_SOCKET_IFNAME: \S+\}\} .*)\n"
        r"1 would lose the job, after ",
        done.out,
        re.MULTILINE,
    )


def test_port_in_use_is_reported_with_its_process_and_a_free_port(stoker: Stoker):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = stoker("hello", "--no-speed", code=1, env={"MASTER_PORT": str(port)})
    assert re.search(
        rf"^MASTER_PORT on \S+: port {port}: in use by another program on this host: .+ \(process {os.getpid()}\)\n"
        r"  try: unset MASTER_PORT      \(`stoker run` chooses a free port; or: MASTER_PORT=\d+\)\n",
        done.out,
        re.MULTILINE,
    )
    done = stoker("hello", "--no-speed", "--json", code=1, env={"MASTER_PORT": "port"})
    assert json.loads(done.out)["findings"][0]["what"].endswith(": 'port' is not a port")


def as_python(folder: Path, text: str) -> Path:
    """A program to take for Python's."""
    program = folder / "python"
    program.write_text(f"#!/bin/bash\n{text}\n")
    program.chmod(0o755)
    return program


def test_torch_is_asked_where_a_python_is_named(stoker: Stoker, tmp_path: Path):
    python = as_python(
        tmp_path, '[ "$MASTER_ADDR" = 127.0.0.1 ] && echo "exact by torch 2.13.0, rank $RANK of $WORLD_SIZE"'
    )
    assert (
        "  torch       exact by torch 2.13.0, rank 1 of 2\n"
        in stoker("hello", "--no-speed", "--python", python, code=0).out
    )
    python = as_python(tmp_path, "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1")
    output = stoker("hello", "--no-speed", "--python", python, code=0).out
    assert f"  torch       {python} has no torch (not tried)\n" in output


def test_torch_error_is_reported(stoker: Stoker, tmp_path: Path):
    python = as_python(
        tmp_path,
        '[ $RANK = 0 ] && echo "RuntimeError: Unable to find address for: nosuch" >&2 && exit 1\n'
        'echo "RuntimeError: Connection closed by peer [127.0.0.1]:4000" >&2; exit 1',
    )
    output = stoker("hello", "--no-speed", "--python", python, code=1).out
    assert re.search(
        r"^torch.distributed: rank 0 \(\S+\): RuntimeError: Unable to find address for: nosuch$", output, re.MULTILINE
    )


@pytest.mark.soak
def test_the_job_s_own_torch_all_reduces(stoker: Stoker):
    output = stoker("hello", "--no-speed", "--python", sys.executable, code=0).out
    assert re.search(r"^  torch       exact by torch \S+ over (gloo|nccl), 1 MiB in \S+ ms$", output, re.MULTILINE)


def test_what_makes_no_sense_is_refused(stoker: Stoker, tmp_path: Path):
    assert stoker("hello", "--nodes", "0", code=2).err == "hello: --nodes: 0 (1 to 65536)\n"
    assert stoker("hello", "--nodes", "2", code=2, env={"PATH": str(tmp_path)}).err == (
        "hello: 2 nodes requested, but there is no Slurm allocation and no srun\n"
        "  try: stoker hello --nodes 1      (or: stoker lab up)\n"
    )
    assert stoker("hello", "--set", "a=b", code=2).err == ("hello: --set needs a job file\n")
    assert stoker("rank", "--hello", code=2).err == (
        "rank: there is no run to join (STOKER_WORLD)\n  try: stoker run JOB      (starts the ranks)\n"
    )


def test_what_would_be_started_is_shown(stoker: Stoker, tmp_path: Path):
    assert stoker("hello", "--dry-run", code=0).out == f"would start 2 ranks: {stoker.path.resolve()} rank --hello\n"
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    output = stoker("hello", "--nodes", "2", "--dry-run", "--json", code=0, env={"PATH": str(tmp_path)})
    assert json.loads(output.out)["command"][:3] == ["srun", "--job-name=stoker-hello", "--time=10"]


def test_a_rank_that_dies_is_named(stoker: Stoker, helper):
    environment = helper("[ ${STOKER_PLACE%%/*} = 1 ] && kill -9 $PPID; exit 0")
    done = stoker("hello", "--json", code=1, env=environment)
    (finding,) = json.loads(done.out)["findings"]
    assert finding["rule"] == "lost-rank"
    assert re.fullmatch(
        r"rank 1 \(\S+\) was lost \(answer\): its connection broke \(killed, or its node is gone\)", finding["what"]
    )


def test_a_rank_that_stands_still_is_named_soon_and_given_up_late(stoker: Stoker, helper, tmp_path: Path):
    environment = helper("[ ${STOKER_PLACE%%/*} = 1 ] && kill -STOP $PPID; exit 0")
    process = stoker.start("hello", "--limit", "8s", env=environment)
    first = process.stderr.readline()
    assert re.fullmatch(r"rank 1 \(\S+\) has sent no heartbeat for \d.* \(ranks\)\n", first)
    out, _ = process.communicate()
    assert process.returncode == 1
    assert re.search(
        r"^rank 1 \(\S+\) was lost \(ranks\): sent no heartbeat for [\d.]+ s \(--limit\), though its host "
        r"answers: its process hangs$",
        out,
        re.MULTILINE,
    )
    assert "  all-reduce  some ranks are missing (not tried)\n" in out
    wait_for(lambda: not processes(tmp_path))


def test_an_interrupt_ends_all_of_it(stoker: Stoker, helper, tmp_path: Path):
    process = stoker.start("hello", env=helper("exec sleep 600"))
    wait_for(lambda: len(processes(tmp_path)) >= 5)  # the session, two ranks, two helpers
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == "hello: stopped\n"
    wait_for(lambda: not processes(tmp_path))


def test_strangers_at_its_ports_disturb_nothing(stoker: Stoker, helper, tmp_path: Path):
    environment = helper(f"touch {tmp_path}/reported; until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    process = stoker.start("hello", "--json", env=environment)
    wait_for(lambda: (tmp_path / "reported").exists())
    ports = listening_ports(processes(tmp_path))
    assert ports, "the session listens"
    noise = [b"GET / HTTP/1.1\r\n\r\n", b"STK1\xff\xff\xff\xff", b"\x00" * 100_000, b"STK1\x05\x00\x00\x00hello", b""]
    held = []
    for port in ports:
        for text in noise * 5:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=10)
            held.append(stranger)
            with suppress(OSError):  # refused in the middle of it
                stranger.sendall(text)
    (tmp_path / "go").touch()
    out, err = process.communicate()
    for stranger in held:
        stranger.close()
    assert process.returncode == 0, err
    assert json.loads(out)["ready"] and err == ""


def test_the_ports_of_ranks_drop_strangers_too(stoker: Stoker, tmp_path: Path):
    process = stoker.start("hello", "--json", env={MARK: str(tmp_path)})
    sent = 0
    end = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < end:
        for port in listening_ports(processes(tmp_path)):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
                    stranger.sendall(b"STK1\x10\x00\x00\x00\x04\x00ping\x00\x00garbage")
                    sent += 1
            except OSError:
                continue
    out, err = process.communicate()
    assert sent > 0
    assert process.returncode == 0, err
    assert rules(out) == []


@pytest.mark.soak
def test_a_loaded_machine_is_no_failure(stoker: Stoker):
    load = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(8 * (os.cpu_count() or 2))]
    try:
        for _ in range(3):
            assert json.loads(stoker("hello", "--json", code=0, timeout=300).out)["ready"]
    finally:
        for process in load:
            process.kill()
            process.wait()
