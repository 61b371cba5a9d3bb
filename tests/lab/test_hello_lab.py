"""`stoker hello` between nodes: healthy, and each way in which a network breaks is named."""

import json
import re
import subprocess
import time
from collections.abc import Callable

import pytest
from conftest import BIN
from lab_jobs import fault, submit
from labs import Lab
from links import node
from running import Process, wait_until

pytestmark = [pytest.mark.needs("slurm", "namespaces"), pytest.mark.timeout(300)]


@pytest.fixture
def helper(lab: Lab) -> Callable[[str], dict[str, str]]:
    """helper(text) is an environment in which each rank, on telling its place, runs this shell text as nvidia-smi."""

    def make(text: str) -> dict[str, str]:
        folder = lab.shared / "bin"
        folder.mkdir()
        (folder / "nvidia-smi").write_text(f"#!/bin/bash\n{text}\n")
        (folder / "nvidia-smi").chmod(0o755)
        return {"PATH": f"{folder}:{lab.env['PATH']}"}

    return make


def hello(lab: Lab, *words: str, code: int = 0, **options) -> dict:
    output = lab.stoker("hello", "--nodes", "3", "--json", *words, code=code, **options)
    return json.loads(output.out) | {"notes": output.err}


def job_findings(output: dict) -> list[dict]:
    return [finding for finding in output["findings"] if finding["level"] == "job"]


def test_hello_passes_on_three_healthy_nodes_from_a_login_node(lab: Lab):
    output = hello(lab)
    assert output["ready"] and output["hosts"] == ["n1", "n2", "n3"]
    assert {step["state"] for step in output["checks"][:-1]} == {"passed"}, output["checks"]
    assert [rank["gloo"]["name"] for rank in output["ranks"]] == ["eth0"] * 3
    assert [rank["gloo"]["address"] for rank in output["ranks"]] == [node(lab, f"n{i}")["address"] for i in (1, 2, 3)]
    assert sorted((way["from"], way["to"]) for way in output["connections"] if way["first"]) == [
        (a, b) for a in range(3) for b in range(3) if a != b
    ]
    assert len(output["speeds"]) == 6
    assert {timing["operation"] for timing in output["timings"]} == {
        "all-reduce",
        "reduce-scatter",
        "all-gather",
        "broadcast",
    }
    wait_until(lambda: lab.run("squeue", "-h").out == "", "the allocation is gone")


def test_inside_an_allocation_all_of_its_nodes_take_part(lab: Lab):
    job = submit(
        lab, f"{BIN}/stoker hello --ranks-per-node 2 --no-speed", "--nodes=2", "--ntasks-per-node=2", "--nodelist=n2,n3"
    )
    job.wait("COMPLETED")
    log = job.read("log")
    assert f"hello from 4 ranks on 2 nodes of Slurm job {job.id}\n" in log
    assert "  connect     2 of 2 connections between 2 nodes\n" in log
    assert "  all-reduce  exact over stoker's own TCP, ranks: 4\n" in log


def test_a_pair_that_is_cut_is_named(lab: Lab, firewall):
    firewall("n3", "n2")
    output = hello(lab, code=1)
    (finding,) = job_findings(output)
    assert finding["rule"] == "broken-pair"
    assert finding["what"] == "n2 and n3 cannot reach each other"
    assert finding["evidence"] == [
        f"n2 to n3 at {node(lab, 'n3')['address']} (eth0): no answer within 5.0 s",
        f"n3 to n2 at {node(lab, 'n2')['address']} (eth0): no answer within 5.0 s",
    ]
    assert finding["cure"] == 'slurm: {extra: ["--exclude=n3"]}      (sbatch --exclude=n3)'
    assert output["seconds"] < 60


@pytest.mark.soak
def test_a_direction_that_is_blocked_is_named(lab: Lab, firewall):
    firewall("n3", "n2", new_only=True)
    (finding,) = job_findings(hello(lab, code=1))
    assert finding["what"] == "n2 cannot reach n3, though n3 reaches n2: new connections are blocked in that direction"
    assert finding["evidence"] == [f"n2 to n3 at {node(lab, 'n3')['address']} (eth0): no answer within 5.0 s"]


def test_a_wrong_interface_and_a_taken_port_are_named(lab: Lab):
    job = submit(
        lab,
        "exec 3<>/dev/null; python3 -c \"import socket, time; s = socket.create_server(('', 29555)); open('up', 'w'); time.sleep(600)\"",
        "--nodes=1",
        "--nodelist=n1",
        "--ntasks=1",
    )
    wait_until(lambda: job.has("up"), "somebody listens on n1")
    output = hello(lab, "--no-speed", code=1, env={"GLOO_SOCKET_IFNAME": "nosuch", "MASTER_PORT": "29555"})
    port, interface = job_findings(output)
    assert re.fullmatch(
        r"MASTER_PORT on n1: port 29555: in use by another program on this host: python3\S* \(process \d+\)",
        port["what"],
    )
    assert re.fullmatch(
        r"unset MASTER_PORT      \(`stoker run` chooses a free port; or: MASTER_PORT=\d+\)", port["cure"]
    )
    assert interface["what"] == (
        "GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up (n1, n2, n3; there are: lo, eth0)"
    )
    assert interface["cure"] == (
        "environment: {variables: {GLOO_SOCKET_IFNAME: eth0}}      (export GLOO_SOCKET_IFNAME=eth0)"
    )


def test_a_slow_node_is_named_with_its_ways(lab: Lab):
    fault(lab, "slow", "n2", "--rate", "10mbit")
    output = hello(lab)
    (finding,) = [finding for finding in output["findings"] if finding["rule"].startswith("slow-")]
    assert re.fullmatch(r"n2 is slow to or from all peers \(other connections reach \S+ [MG]B/s\)", finding["what"])
    assert len(finding["evidence"]) == 4
    assert finding["cure"] == 'slurm: {extra: ["--exclude=n2"]}      (sbatch --exclude=n2)'


def test_a_node_whose_cable_breaks_on_the_way_is_named_within_ten_seconds_and_given_up(lab: Lab, helper):
    # The node cuts itself off: from then on no packet of it is acknowledged.
    environment = helper('[ "$SLURMD_NODENAME" = n3 ] && date +%s.%N > cut && ip link set dev eth0 down; exit 0')
    process = Process(
        [BIN / "stoker", "hello", "--nodes", "3", "--json"],
        env=lab.env | environment,
        cwd=lab.shared,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first = process.stderr.readline()
        named = time.time()
        out, err = process.communicate()
    finally:
        process.kill()
        subprocess.run(
            ["ip", "-netns", node(lab, "n3")["network_namespace"], "link", "set", "dev", "eth0", "up"], check=True
        )
    assert re.fullmatch(r"rank 2 \(n3\) has sent no heartbeat for \d.* \(ranks\)\n", first), first + err
    assert named - float((lab.shared / "cut").read_text()) < 10
    (finding,) = [f for f in job_findings(json.loads(out)) if f["rule"] == "lost-rank"]
    assert re.fullmatch(
        r"rank 2 \(n3\) was lost \(\w+\): (sent no heartbeat for .* s, and its host acknowledges no packets|its connection broke .*)",
        finding["what"],
    )
    assert finding["cure"] == 'slurm: {extra: ["--exclude=n3"]}      (sbatch --exclude=n3)'


@pytest.mark.soak
def test_a_node_that_is_cut_off_before_is_named(lab: Lab):
    job = submit(
        lab,
        f"touch up; until [ -e go ]; do sleep 0.1; done\n{BIN}/stoker hello --json --limit 15s > output.json; echo $? > code",
        "--nodes=3",
        "--ntasks-per-node=1",
        "--nodelist=n1,n2,n3",
    )
    wait_until(lambda: job.has("up"), "the job runs")
    fault(lab, "cut", "n3")
    (job.folder / "go").touch()
    wait_until(lambda: job.has("code"), "hello has ended", timeout=120)
    assert job.read("code") == "1\n"
    findings = job_findings(json.loads(job.read("output.json")))
    (finding,) = findings
    assert re.fullmatch(
        r"rank 2 \(n3\) did not join(: srun: error: .* n3: .*| within 15 s \(--limit\))", finding["what"]
    )
    assert finding["cure"] == 'slurm: {extra: ["--exclude=n3"]}      (sbatch --exclude=n3)'
    assert "still waiting for rank 2 (n3) (2 of 3 have joined)\n" in job.read("log")


def test_an_interrupt_gives_the_nodes_back(lab: Lab, helper):
    process = Process(
        [BIN / "stoker", "hello", "--nodes", "3"],
        env=lab.env | helper("date > $SLURMD_NODENAME; exec sleep 600"),
        cwd=lab.shared,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: all((lab.shared / f"n{i}").exists() for i in (1, 2, 3)), "all ranks are asked")
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.endswith("hello: stopped\n")
    wait_until(lambda: lab.run("squeue", "-h").out == "", "the allocation is gone")


def test_a_full_queue_is_waited_for_no_longer_than_asked(lab: Lab):
    holder = submit(lab, "touch up; sleep 600", "--nodes=4", "--exclusive")
    wait_until(lambda: holder.has("up"), "all nodes are taken")
    output = lab.stoker("hello", "--nodes", "3", "--queue", "2s", code=1)
    assert re.search(r"srun: job \d+ queued and waiting for resources\n", output.err)
    assert output.err.endswith("hello: the nodes were not granted within 2.0 s (--queue)\n")
    wait_until(lambda: lab.run("squeue", "-h", "-o", "%i").out == f"{holder.id}\n", "only the holder is left")


def test_slurm_errors_are_quoted(lab: Lab):
    (lab.shared / "job.yaml").write_text(
        "name: own\nrun: python3 train.py\nresources: {nodes: 2}\nslurm: {partition: nosuch}\n"
    )
    output = lab.stoker("hello", "job.yaml", code=3)
    assert output.err.splitlines()[-1] == (
        "hello: no rank joined: srun: error: Unable to allocate resources: Invalid partition name specified"
    )
