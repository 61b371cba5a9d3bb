"""stoker.checkpoint: a state saved on any number of ranks is loaded on any other number, value by value."""

import itertools
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from running import Process

PROGRAM = Path(__file__).parents[1] / "programs/elastic_ranks.py"
KINDS = ("plain", "replicas", "rows", "optimizer", "objects")
WAYS = ("new tensors", "background, in place", "retention, a part")
RANKS = 4
COMBINATIONS = 240


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_240_combinations_of_saving_and_loading_worlds_are_equal(tmp_path, module_environment):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {"WORLD_SIZE": RANKS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    started = [
        Process(
            [sys.executable, PROGRAM, tmp_path],
            env=module_environment | {name: str(value) for name, value in (place | {"RANK": rank}).items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    outputs = [process.communicate(timeout=1500) for process in started]
    assert [process.returncode for process in started] == [0] * RANKS, "\n".join(err for _, err in outputs)
    wanted = [list(row) for row in itertools.product(KINDS, WAYS, range(1, RANKS + 1), range(1, RANKS + 1))]
    assert len(wanted) == COMBINATIONS
    for rank, (out, _) in enumerate(outputs):
        assert json.loads(out) == [row for row in wanted if rank < row[-1]]
