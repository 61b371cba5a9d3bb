"""Effect of saving 1 GB in the background on a training of two ranks, compared with async_save of torch's distributed checkpoint:
how long the loop is blocked, and how much slower its steps are until the save is complete. A step is a matrix product on one
thread. Both tools save the same tensors from the same two processes, alternating."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import BIN, PYTHON, Interval, check_limit, median_interval

BYTES = 10**9
TENSORS = 240
ROUNDS = 5
STALL_LIMIT, SLOWER_LIMIT = 0.08, 1.2


def rank_main(box: Path) -> None:
    """One rank: prints "<tool> <stall> <slowdown> <seconds>" for every save."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from stoker import checkpoint

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = BYTES // TENSORS // 4 // 512
    state = {"model": {f"layer{i}.weight": torch.ones(rows, 512) for i in range(TENSORS)}}
    matrix = torch.randn(512, 512)

    def step() -> float:
        started = time.perf_counter()
        torch.mm(matrix, matrix)
        return time.perf_counter() - started

    def stoker(turn: int):
        saving = checkpoint.async_save(state, box / "stoker", step=turn, keep_last=1)
        return saving.done, saving.wait

    def by_dcp(turn: int):
        future = dcp.async_save(state, checkpoint_id=str(box / f"dcp-{turn % 2}"))
        return future.done, future.result

    checkpoint.reserve(state, box / "stoker", keep_last=1)
    for turn in range(ROUNDS):
        for name, save in (("stoker", stoker), ("dcp", by_dcp)):
            if dist.get_rank() == 0:
                shutil.rmtree(box / f"dcp-{turn % 2}", ignore_errors=True)
            dist.barrier()
            quiet = statistics.fmean(step() for _ in range(300))
            dist.barrier()
            started = time.perf_counter()
            done, wait = save(turn)
            stall = time.perf_counter() - started
            steps = []
            while not done():
                steps.append(step())
            wait()
            took = time.perf_counter() - started
            slower = statistics.fmean(steps) / quiet if steps else 1.0
            print(f"{name} {stall:.6f} {slower:.6f} {took:.6f}", flush=True)
            dist.barrier()
    checkpoint.close()
    dist.destroy_process_group()


def main() -> None:
    figures: dict[str, list[list[float]]] = {"stoker": [], "dcp": []}
    with tempfile.TemporaryDirectory() as box:
        ranks = []
        for rank in range(2):
            place = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29581}
            environment = os.environ | {name: str(value) for name, value in place.items()}
            environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(BIN.parent / "python")}
            command = [PYTHON, __file__, box]
            ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        outputs = [rank.communicate()[0].splitlines() for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit("a rank failed")
    for lines in zip(*outputs, strict=True):
        words = [line.split() for line in lines]
        figures[words[0][0]].append([max(float(word[i]) for word in words) for i in (1, 2, 3)])
    for name, rounds in figures.items():
        first, stall = rounds[0][0], median_interval([figure[0] for figure in rounds[1:]])
        slower, took = (median_interval([figure[i] for figure in rounds]) for i in (1, 2))
        print(f"       {name}: stands still {first:.3f} s at first, then {stall} s; steps x {slower} for {took} s")
    ours = figures["stoker"]
    first = Interval(ours[0][0], ours[0][0], ours[0][0])
    met = check_limit("stall of the first save", first, STALL_LIMIT, "s")
    met &= check_limit("stall of the later ones", median_interval([figure[0] for figure in ours[1:]]), STALL_LIMIT, "s")
    met &= check_limit("steps while saving / before", median_interval([figure[1] for figure in ours]), SLOWER_LIMIT)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank_main(Path(sys.argv[1]))
    else:
        main()
