"""A farm on a shared filesystem whose clients see changes of other clients up to a minute late."""

import json
import os
import signal
from collections import Counter

import pytest
from running import wait_until
from stale_mounts import stale_mounts

pytestmark = [pytest.mark.needs("fuse", "bindfs"), pytest.mark.soak, pytest.mark.timeout(900)]

TASKS = 300


def ends(server) -> list[list[str]]:
    lines = [
        line for ledger in (server / "tasks.farm/ledger").glob("*.log") for line in ledger.read_text().splitlines()
    ]
    return [line.split() for line in lines if line.startswith("end ")]


def test_workers_on_two_clients_record_each_task_once(stoker, tmp_path):
    with stale_mounts() as mounts:
        server = mounts[0].parent / "server"
        lines = (f"sleep 0.05; echo {n} >> {tmp_path}/log\n" for n in range(TASKS))
        (server / "tasks.txt").write_text("".join(lines))
        workers = [stoker.start("farm", "tasks.txt", "--at-once", "2", cwd=mounts[n % 2]) for n in range(4)]
        wait_until(lambda: (server / "tasks.farm/ledger").exists() and len(ends(server)) > 50, "tasks end")
        os.kill(workers[0].pid, signal.SIGKILL)
        workers[0].wait()
        for worker in workers[1:]:
            assert worker.wait(timeout=400) in (0, 1)
        again = ("farm", "tasks.txt", "--json")
        wait_until(
            lambda: json.loads(stoker(*again, cwd=mounts[1], code=None, timeout=400).out)["done"] == TASKS,
            "all tasks are done",
            timeout=240,
            every=1,
        )
        done = Counter(int(words[1]) for words in ends(server) if words[4] == "done")
        assert done == Counter(range(TASKS))
        ran = [int(line) for line in (tmp_path / "log").read_text().split()]
        assert sorted(set(ran)) == list(range(TASKS))
        assert len(ran) <= TASKS + 2  # only tasks of the killed worker ran twice
