"""Ranks that exchange gradients through shared memory, when one of them is killed or stopped during training."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BIN
from ports import free_port
from running import Process, wait_for
from torch_ranks import write_batches

STEPS = BIN / "torch-steps"


@pytest.fixture
def ranks(tmp_path) -> Iterator[list[Process]]:
    """Two ranks in the middle of a long training."""
    batches = write_batches(tmp_path / "batches", 1, 4, 32, steps=1)
    environment = os.environ | {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
        "TRANSPORT": "shm",
    }
    processes = [
        Process(
            [STEPS, "cost", "cifar-resnet20", "10", "1", batches, tmp_path / f"out-{rank}", "1000000"],
            env=environment | {"RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in processes:
            wait_for(lambda process=process: has_met_the_other(process))
        begun = [switches(process) for process in processes]
        for process, count in zip(processes, begun, strict=True):
            wait_for(lambda process=process, count=count: switches(process) > count + 50)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def has_met_the_other(process: Process) -> bool:
    """Whether it has mapped the shared memory, which rank 0 shares when all have joined. Before, loading and polling wait too."""
    return "/memfd:stoker-ranks" in Path(f"/proc/{process.pid}/maps").read_text()


def switches(process: Process) -> int:
    """Number of voluntary context switches of its threads: in training, waits for its peer."""
    total = 0
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.MULTILINE)
        total += int(found[1]) if found else 0
    return total


def test_a_killed_rank_is_named_and_leaves_nothing_behind(ranks):
    ranks[1].kill()
    started = time.monotonic()
    _, output = ranks[0].communicate()
    assert ranks[0].returncode == 1
    assert re.search(rf"rank 0: .*: rank 1 left \(pid {ranks[1].pid} on .* has died; .* \d+ of \d+ B of \w+", output), (
        output
    )
    assert time.monotonic() - started < 100
    assert not [name for name in os.listdir("/dev/shm") if "stoker-ranks" in name]


def test_a_stopped_rank_is_named_with_its_process(ranks):
    ranks[1].send_signal(signal.SIGSTOP)
    _, output = ranks[0].communicate()
    assert ranks[0].returncode == 1
    assert re.search(rf"rank 0: .*: rank 1 is stopped \(pid {ranks[1].pid} on .*: by a signal, for 10 s;", output), (
        output
    )


def test_a_briefly_stopped_rank_has_no_lasting_effect(ranks):
    ranks[1].send_signal(signal.SIGSTOP)
    time.sleep(1)
    ranks[1].send_signal(signal.SIGCONT)
    count = switches(ranks[0])
    wait_for(lambda: switches(ranks[0]) > count + 50)
    assert [rank.poll() for rank in ranks] == [None, None]
