"""`stoker farm` on a real cluster: all nodes of an allocation, submitted allocations, the end of their time, a dead node."""

import json
import os
import re
import signal
import sys
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


def test_a_cluster_with_small_arrays_gets_several(make_lab):
    lab = make_lab(f"b{os.getpid()}", "--nodes", "2", "--max-array-size", "3", "--mode", "processes")
    small = Runs(lab, lab.shared)
    write_tasks(small, *(f"echo {n} >> log" for n in range(4)))
    words = ("farm", "tasks.txt", "--time", "10m", "--cpus-per-node", "1", "--allocations", "5", "--json")
    sent = json.loads(small.stoker(*words).out)
    assert (sent["allocations"], len(sent["jobs"])) == (5, 3)
    wait_for_empty_queue(small)
    assert status(small)["done"] == 4
    assert len(list((small.folder / "tasks.farm/jobs").glob("*.log"))) == 5


JOB = """
name: settings
run: "false"
resources: {nodes: 1, ranks_per_node: 2, cpus_per_rank: 1, time: 7m}
slurm: {partition: low, extra: [--nice=7]}
environment: {venv: venv, modules: [flavour/1], variables: {SIZE: big}}
"""


def test_a_job_file_sets_the_allocation_and_the_environment(runs: Runs):
    (runs.folder / "modules/flavour").mkdir(parents=True)
    (runs.folder / "modules/flavour/1").write_text("#%Module\nsetenv FLAVOUR sweet\n")
    (runs.folder / "venv/bin").mkdir(parents=True)
    (runs.folder / "venv/bin/python").symlink_to(sys.executable)
    (runs.folder / "job.yaml").write_text(JOB)
    write_tasks(runs, "echo $FLAVOUR $SIZE $VIRTUAL_ENV $(command -v python)", "scontrol show job $SLURM_JOB_ID")
    environment = {"MODULEPATH": f"{runs.folder}/modules"}
    words = ("farm", "tasks.txt", "--job", "job.yaml", "--set", "resources.time=9m", "--json")
    assert json.loads(runs.stoker(*words, "--dry-run", env=environment).out)["allocations"] == 1
    runs.stoker(*words, env=environment)
    wait_for_empty_queue(runs)
    first, *job = runs.stoker("farm", "tasks.txt", "--output").out.splitlines()
    assert first == f"sweet big {runs.folder}/venv {runs.folder}/venv/bin/python"
    text = "\n".join(job)
    for setting in ("Partition=low", "TimeLimit=00:09:00", "NumCPUs=2", "Nice=7"):
        assert setting in text, text
    assert status(runs)["done"] == 2
    write_tasks(runs, "true 3")
    refused = runs.stoker("farm", "tasks.txt", "--job", "job.yaml", code=1)
    assert "environment.modules: 'flavour/1' cannot be loaded" in refused.err


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
