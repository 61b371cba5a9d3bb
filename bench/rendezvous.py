"""Time from the command to the rendezvous of ranks on two nodes: `stoker run` with its network check, compared with srun and
variables set by hand. Both start tests/programs/rendezvous.cc, without PyTorch.

Then the same with PyTorch, for information: from the command to the end of the first all-reduce over gloo, by hand, by
`stoker run` and by `stoker run` with torchrun on each node."""

import itertools
import os
import subprocess
import time
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, conclude, in_turns, median_interval
from two_nodes import by_hand, in_an_allocation, write_job

LIMIT_S = 0.1
PAIRS = 20
TORCH_ROUNDS = 3

_ports = itertools.count(21000 + os.getpid() % 5000)

ALL_REDUCE = """\
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
open(f"{sys.argv[1]}-{os.environ['RANK']}", "w").write(str(time.time()))
dist.barrier()  # the first rank to exit would end the store of its peer
dist.destroy_process_group()
"""


def until_met(command: list[str | Path], mark: Path) -> float:
    """Seconds from the start of the command until the last rank has left its mark."""
    marks = [Path(f"{mark}-{rank}") for rank in range(2)]
    for file in marks:
        file.unlink(missing_ok=True)
    started = time.time()
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return max(float(file.read_text()) for file in marks) - started


def measure(folder: Path) -> None:
    subprocess.run(["c++", "-O1", "-o", folder / "rendezvous", REPOSITORY / "tests/programs/rendezvous.cc"], check=True)
    (folder / "rank.sh").write_text(f"{folder}/rendezvous && date +%s.%N > {folder}/done-$RANK\n")
    job = write_job(folder, "rendezvous", f"bash {folder}/rank.sh")
    program = ["bash", f"{folder}/rank.sh"]
    pairs = in_turns(
        lambda: until_met([BIN / "stoker", "run", job], folder / "met"),
        lambda: until_met(by_hand(program, next(_ports)), folder / "met"),
        PAIRS,
    )
    own, hand = (median_interval([pair[column] for pair in pairs]) for column in (0, 1))
    print(f"       stoker run {own} s, srun with variables {hand} s")
    added = median_interval([first - second for first, second in pairs])

    (folder / "reduce.py").write_text(ALL_REDUCE)
    script = [str(PYTHON), f"{folder}/reduce.py", f"{folder}/reduced"]
    ways = {
        "srun with variables": lambda: by_hand(script, next(_ports)),
        "stoker run": lambda: [BIN / "stoker", "run", write_job(folder, "reduce", " ".join(script))],
        "stoker run, torchrun": lambda: [
            BIN / "stoker", "run", write_job(folder, "torchrun", " ".join(script), "torchrun")
        ],
    }  # fmt: skip
    for name, command in ways.items():
        took = [until_met(command(), folder / "reduced") for _ in range(TORCH_ROUNDS)]
        print(f"       PyTorch's first all-reduce, {name}: {sorted(took)[TORCH_ROUNDS // 2]:.2f} s")
    conclude("ranks of two nodes have met, over srun with variables", added, limit=LIMIT_S, unit="s")


if __name__ == "__main__":
    in_an_allocation(measure)
