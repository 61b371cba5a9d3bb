"""`stoker farm` on a real cluster: all nodes of an allocation, submitted allocations, the end of their time, a dead node."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from labs import BIN
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")


def status(runs: Runs) -> dict:
    return json.loads(runs.stoker("farm", "tasks.txt", "--status", "--json", code=None).out)


def write_tasks(runs: Runs, *lines: str) -> None:
    (runs.folder / "tasks.txt").write_text("".join(f"{line}\n" for line in lines))


def wait_for_empty_queue(runs: Runs) -> None:
    wait_until(lambda: runs.lab.run("squeue", "--noheader").out == "", "the queue is empty")


def numbers(log: Path) -> list[int]:
    return sorted(int(line) for line in log.read_text().split())


def test_a_batch_script_uses_all_nodes_of_its_allocation(runs: Runs):
    write_tasks(runs, *(f"sleep 0.2; echo {n} $SLURMD_NODENAME" for n in range(40)))
    script = (
        f"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --cpus-per-task=1\n#SBATCH --time=10\n{BIN}/stoker farm tasks.txt\n"
    )
    (runs.folder / "farm.sbatch").write_text(script)
    runs.lab.run("sbatch", "--output=farm.log", "farm.sbatch", cwd=runs.folder)
    wait_for_empty_queue(runs)
    assert "tasks.farm: 40 done" in (runs.folder / "farm.log").read_text()
    lines = runs.stoker("farm", "tasks.txt", "--output").out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(40))
    assert len({line.split()[1] for line in lines}) == 2
    assert len(list((runs.folder / "tasks.farm/ledger").iterdir())) == 2


def test_submitted_allocations_share_the_tasks(runs: Runs):
    write_tasks(runs, *(f"sleep 0.1; echo {n} >> log" for n in range(50)))
    words = ("farm", "tasks.txt", "--time", "10m", "--cpus-per-node", "1", "--allocations", "2", "--json")
    sent = json.loads(runs.stoker(*words).out)
    assert (sent["tasks"], sent["allocations"]) == (50, 2)
    refused = runs.stoker("farm", "tasks.txt", "--time", "10m", "--cpus-per-node", "1", code=None)
    assert refused.code == 1 or status(runs)["done"] == 50
    wait_for_empty_queue(runs)
    assert status(runs)["done"] == 50
    assert numbers(runs.folder / "log") == list(range(50))
    assert json.loads(runs.stoker(*words).out)["tasks"] == 0
    assert len(list((runs.folder / "tasks.farm/ledger").iterdir())) <= 2


@pytest.mark.soak
def test_tasks_get_a_signal_before_the_end_and_continue_in_the_next_allocation(runs: Runs):
    trap = "trap 'echo saved >> log; exit 1' USR1; test -e again || { touch on; sleep 600 & wait; }"
    write_tasks(runs, trap, "sleep 0.1")
    words = ("farm", "tasks.txt", "--time", "1m", "--signal-before", "40s", "--signal", "USR1", "--cpus-per-node", "1")
    runs.stoker(*words)
    wait_for_empty_queue(runs)
    assert (runs.folder / "log").read_text() == "saved\n"
    assert status(runs)["waiting"] >= 1
    log = next((runs.folder / "tasks.farm/jobs").glob("*.log")).read_text()
    assert re.search(r"\d waiting", log), log
    (runs.folder / "again").touch()
    runs.stoker(*words)
    wait_for_empty_queue(runs)
    assert status(runs)["done"] == 2


def workers(runs: Runs) -> list[int]:
    """The process of each worker that started."""
    ledgers = (runs.folder / "tasks.farm/ledger").glob("*.log")
    return [int(ledger.read_text().split()[4]) for ledger in ledgers]


@pytest.mark.soak
def test_tasks_of_a_killed_worker_run_on_all_nodes_again(runs: Runs):
    write_tasks(runs, *(f"sleep 0.5; echo {n} >> log" for n in range(40)))
    runs.stoker("farm", "tasks.txt", "--time", "10m", "--nodes", "2", "--cpus-per-node", "1")
    wait_until(lambda: status(runs)["done"] > 5 and len(workers(runs)) == 2, "both nodes work")
    os.kill(workers(runs)[1], signal.SIGKILL)
    wait_for_empty_queue(runs)
    assert status(runs)["done"] == 40
    assert set(numbers(runs.folder / "log")) == set(range(40))
    # Only its one running task may have run twice.
    assert len(numbers(runs.folder / "log")) <= 41
    log = next((runs.folder / "tasks.farm/jobs").glob("*.log")).read_text()
    assert "tasks.farm: 40 done" in log, log


def test_tasks_of_a_step_are_workers(runs: Runs):
    write_tasks(runs, *(f"sleep 0.1; echo {n} >> log" for n in range(20)))
    runs.lab.run("srun", "--ntasks=2", "--nodes=2", f"{BIN}/stoker", "farm", "tasks.txt", code=None, cwd=runs.folder)
    assert status(runs)["done"] == 20
    assert numbers(runs.folder / "log") == list(range(20))
    assert len(workers(runs)) == 2
