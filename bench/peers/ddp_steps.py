"""The same training steps in plain PyTorch: a CIFAR ResNet-20 on made-up images, DistributedDataParallel over gloo, or
alone. Started by torchrun or by a bench; writes what it saw as one JSON object when done.

    ddp_steps.py STEPS OUT [--alone]          OUT gets the process's rank appended
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F  # noqa: N812  (its name everywhere)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/training"))
from reference import make_model


def main(steps: int, out: str, is_alone: bool) -> None:
    rank = int(os.environ.get("RANK", 0))
    torch.manual_seed(1)
    model = make_model("cifar-resnet20", 10)
    if not is_alone:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    images, labels = torch.randn(64, 3, 32, 32), torch.arange(64) % 10
    first = 0.0
    for _ in range(steps):
        sgd.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        sgd.step()
        first = first or time.time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    Path(f"{out}{rank}").write_text(json.dumps({"first_step": first, "peak_bytes": peak}))
    if not is_alone:
        torch.distributed.barrier()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], "--alone" in sys.argv)
