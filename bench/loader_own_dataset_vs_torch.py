"""A custom dataset: torchvision's ImageFolder over CIFAR-10 with a transform in pure Python, which holds the GIL, through
stoker.DataLoader (which chooses processes automatically) and torch's DataLoader with one worker per core."""

import sys

from loader_python import IMPORT_TORCHVISION, Program, beside, build, cifar10, run
from measure import conclude, ratio_interval

CODE = (
    IMPORT_TORCHVISION
    + """
import os, sys, stoker
def transform(image):
    levels = [max(0, min(255, value + 10)) for value in image.convert("RGB").tobytes()]
    return torch.tensor(levels, dtype=torch.uint8).view(32, 32, 3).permute(2, 0, 1).float().div(255)
data = torchvision.datasets.ImageFolder(sys.argv[1], transform)
data.samples = data.samples[:: max(1, len(data.samples) // 6000)]
if sys.argv[2] == "ours":
    loader = stoker.DataLoader(data, 64, shuffle=True, quiet=True)
else:
    loader = torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=os.cpu_count(), persistent_workers=True)
def epoch():
    return sum(len(labels) for _, labels in loader)
"""
)


def main() -> None:
    build()
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with cifar10() as (images, _):
        train = images / "train"
        print(f"       {' '.join(run(CODE + 'print(loader.plan())', train, 'ours'))}")
        found = beside(Program(CODE, train, "torch"), Program(CODE, train, "ours"), pairs)
    print(f"       ours {found[0][1]:.0f}/s, torch's DataLoader {found[0][0]:.0f}/s")
    conclude("samples per second, torch / ours", ratio_interval(found), limit=1.0)


if __name__ == "__main__":
    main()
