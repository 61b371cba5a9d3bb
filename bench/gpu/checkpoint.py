"""Saving 1 GB of GPU memory in the background of a training: how long the loop is blocked, and how slow its steps are until
the save is complete. async_save of torch's distributed checkpoint, plain and with pinned asynchronous staging, and
stoker.checkpoint alternate in one process.

    python bench/gpu/checkpoint.py [--folder FOLDER] [--rounds 4] [--device cuda]

The first round is reported separately: buffers are allocated in it. stoker.checkpoint needs the module (PYTHONPATH)."""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from windows import first_line, print_line, print_machine, wait_for

BYTES, TENSORS, QUIET_STEPS = 10**9, 240, 300
MATRIX = {"cuda": 6144, "cpu": 512}

Wait = Callable[[], object]
Done = Callable[[], bool]


class Loop:
    """Steps of a matrix product each, and the state to save."""

    def __init__(self, device: str):
        self.device = device
        columns = BYTES // TENSORS // 4 // 512
        self.state = {"model": {f"layer{i}.weight": torch.ones(512, columns, device=device) for i in range(TENSORS)}}
        self.matrix = torch.randn(MATRIX[device], MATRIX[device], device=device)

    def step(self) -> float:
        started = time.perf_counter()
        torch.mm(self.matrix, self.matrix)
        wait_for(self.device)
        return time.perf_counter() - started


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(0.99 * len(seconds)))] if seconds else 0.0


def plain_dcp(loop: Loop, folder: Path, turn: int) -> tuple[Done, Wait]:
    future = dcp.async_save(loop.state, checkpoint_id=str(folder / f"dcp-{turn}"))
    return future.done, future.result


class StagedDcp:
    """Copies to pinned memory on a thread. The loop may not change the state before the copy is complete: that is
    part of the stall."""

    def __init__(self) -> None:
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        self.stager = DefaultStager(StagingOptions(use_shared_memory=False))

    def __call__(self, loop: Loop, folder: Path, turn: int) -> tuple[Done, Wait]:
        response = dcp.async_save(loop.state, checkpoint_id=str(folder / f"staged-{turn}"), async_stager=self.stager)
        response.staging_completion.result()
        return response.upload_completion.done, response.upload_completion.result


class StokerCheckpoint:
    def __init__(self, loop: Loop, folder: Path) -> None:
        from stoker import checkpoint

        self.checkpoint = checkpoint
        checkpoint.reserve(loop.state, folder / "stoker", keep_last=1)

    def __call__(self, loop: Loop, folder: Path, turn: int) -> tuple[Done, Wait]:
        saving = self.checkpoint.async_save(loop.state, folder / "stoker", step=turn, keep_last=1)
        return saving.done, saving.wait


Save = Callable[[Loop, Path, int], tuple[Done, Wait]]
WHO = {"dcp": "python", "dcp-staged": "python", "async_save": "stoker"}


def ways(loop: Loop, folder: Path) -> dict[str, Save]:
    """The ways that work here; prints the errors of the remaining ones."""
    found: dict[str, Save] = {"dcp": plain_dcp}
    makers: dict[str, Callable[[], Save]] = {
        "dcp-staged": StagedDcp,
        "async_save": lambda: StokerCheckpoint(loop, folder),
    }
    for mode, make in makers.items():
        try:
            found[mode] = make()
        except Exception as error:
            print_line(workload="checkpoint-1gb", who=WHO[mode], mode=mode, failed=first_line(error))
    return found


def save_once(save: Save, loop: Loop, folder: Path, turn: int) -> dict[str, float]:
    quiet = [loop.step() for _ in range(QUIET_STEPS)]
    started = time.perf_counter()
    is_done, wait = save(loop, folder, turn)
    stall = time.perf_counter() - started
    steps = []
    while not is_done():
        steps.append(loop.step())
    wait()
    return {
        "stall_s": stall,
        "quiet_p99_s": p99(quiet),
        "p99_s": p99(steps),
        "seconds": time.perf_counter() - started,
    }


def measure(loop: Loop, folder: Path, rounds: int) -> None:
    found = ways(loop, folder)
    results: dict[str, list[dict[str, float]]] = {mode: [] for mode in found}
    for turn in range(rounds):
        for mode in list(found):
            try:
                results[mode].append(save_once(found[mode], loop, folder, turn))
            except Exception as error:
                print_line(workload="checkpoint-1gb", who=WHO[mode], mode=mode, failed=first_line(error))
                del found[mode], results[mode]
            for old in [*folder.glob("dcp-*"), *folder.glob("staged-*")]:
                shutil.rmtree(old, ignore_errors=True)
    for mode, saves in results.items():
        fields = {key: round(statistics.median(save[key] for save in saves[1:] or saves), 5) for key in saves[0]}
        first = round(saves[0]["stall_s"], 5)
        print_line(workload="checkpoint-1gb", who=WHO[mode], mode=mode, first_stall_s=first, **fields)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where checkpoints are written (default: a temporary folder)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    print_machine(options.device)
    os.environ.update(RANK="0", WORLD_SIZE="1")
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        dist.init_process_group("gloo", init_method=f"file://{work}/rendezvous", rank=0, world_size=1)
        measure(Loop(options.device), Path(work), options.rounds)
        dist.destroy_process_group()
    os._exit(0)  # the stager's threads do not end by themselves


if __name__ == "__main__":
    main()
