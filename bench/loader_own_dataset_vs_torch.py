"""Somebody's own dataset: torchvision's ImageFolder over CIFAR-10 with a transform in pure Python, which holds the interpreter's
lock, through stoker.DataLoader (which chooses processes by itself, and says why) and torch's DataLoader with a worker per core."""

import sys

from loader_python import IMPORT_TORCHVISION, build, cifar10, run
from measure import conclude, in_turns, ratio_interval

CODE = (
    IMPORT_TORCHVISION
    + """
import os, sys, time, stoker
def transform(image):
    levels = [max(0, min(255, value + 10)) for value in image.convert("RGB").tobytes()]
    return torch.tensor(levels, dtype=torch.uint8).view(32, 32, 3).permute(2, 0, 1).float().div(255)
data = torchvision.datasets.ImageFolder(sys.argv[1], transform)
data.samples = data.samples[:: max(1, len(data.samples) // 6000)]
if sys.argv[2] == "ours":
    loader = stoker.DataLoader(data, 64, shuffle=True, quiet=True)
    print(loader.plan().replace(" ", "_"))
else:
    loader = torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=os.cpu_count(), persistent_workers=True)
    print("-")
def epoch():
    return sum(len(labels) for _, labels in loader)
epoch()
started = time.perf_counter()
samples = epoch()
print(samples / (time.perf_counter() - started))
"""
)


def main() -> None:
    build()
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    plans: set[str] = set()

    def rate(images: object, who: str) -> float:
        plan, found = run(CODE, images, who)
        plans.add(plan.replace("_", " "))
        return float(found)

    with cifar10() as (images, _):
        found = in_turns(lambda: rate(images / "train", "torch"), lambda: rate(images / "train", "ours"), pairs)
    for plan in sorted(plans - {"-"}):
        print(f"       {plan}")
    print(f"       ours {found[0][1]:.0f}/s, torch's DataLoader {found[0][0]:.0f}/s")
    conclude("samples per second, torch / ours", ratio_interval(found), limit=1.0)


if __name__ == "__main__":
    main()
