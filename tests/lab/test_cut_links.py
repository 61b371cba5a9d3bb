"""A training whose network breaks under it: who is cut off is named soon, and why."""

import re
import time

import pytest
from lab_jobs import fault
from running import wait_until
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm", "namespaces"), pytest.mark.timeout(300)]

# Ranks pass a number around a ring, for ever: what a training's all-reduce is to the network.
RING = """\
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = socket.gethostbyname(os.environ["SLURMD_NODENAME"])
server = socket.create_server((address, 0))
open(f"address-{rank}.new", "w").write(f"{address} {server.getsockname()[1]}")
os.rename(f"address-{rank}.new", f"address-{rank}")
after = f"address-{(rank + 1) % size}"
while not os.path.exists(after):
    time.sleep(0.05)
host, port = open(after).read().split()
out = socket.create_connection((host, int(port)))
into, _ = server.accept()
number = 0
while True:
    out.sendall(number.to_bytes(8, "big"))
    number = int.from_bytes(into.recv(8, socket.MSG_WAITALL), "big") + 1
    if rank == 0 and number > 50:
        open("turns", "w").write(str(number))
    time.sleep(0.01)
"""


@pytest.fixture
def ring(runs: Runs) -> Runs:
    """A run on n1, n2 and n3 whose ranks send to each other all the time."""
    (runs.folder / "ring.py").write_text(RING)
    runs.job("exec python3 ring.py", "nodes: 3", "restart: {node_failed: 0}\n")
    runs.submit()
    wait_until(lambda: (runs.folder / "turns").exists(), "the ranks send to each other")
    return runs


def since(runs: Runs, began: float, pattern: str) -> tuple[re.Match, float]:
    """The line of the run's log that matches, and how long after `began` it was there."""
    found = wait_until(lambda: re.search(pattern, runs.batch_log(), re.MULTILINE), f"the log has {pattern}", 60)
    return found, time.monotonic() - began


def test_a_link_cut_between_two_ranks_is_named_within_ten_seconds(ring: Runs, firewall):
    # The run is on n1, which receives heartbeats of both ranks.
    firewall("n3", "n2")
    began = time.monotonic()
    found, took = since(
        ring,
        began,
        r"^rank (\d) \((n\d)\) has been blocked for \d\.\d s: rank (\d) \((n\d)\) acknowledges none of its packets, "
        r"the link between them is cut or blocked\n"
        r"  try: stoker hello      \(in the same allocation: lists every broken link\)$",
    )
    assert {found[2], found[4]} == {"n2", "n3"}
    assert took < 10
    assert ring.status()["state"] == "running"  # named; what ends it is timeouts.stall
    ring.stoker("cancel", "--last")
    ring.stoker("wait", code=None)


def test_a_node_that_is_cut_off_is_named_within_ten_seconds_and_ends_the_run(ring: Runs):
    fault(ring.lab, "cut", "n3")
    began = time.monotonic()
    _, took = since(
        ring,
        began,
        r"^rank 2 \(n3\) sent no heartbeat for [89]\.\d s, and its host acknowledges no packets: the node or its link is down$",
    )
    assert took < 12  # gave up at 8 s
    assert "failed (rank 2 (n3) sent no heartbeat for" in ring.stoker("wait", code=1).out
