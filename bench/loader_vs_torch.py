"""Samples per second and CPU time per sample of the loader, compared with torch's DataLoader: CIFAR-10 images, batches of 128, random
crop with padding, flip, normalization, one thread and one worker process. DataLoader reads the folder of JPEG files (torchvision's
ImageFolder), and our shards too if webdataset is installed. Uses the whole CIFAR-10 if STOKER_TEST_DATA has it, otherwise the
shipped tenth."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, conclude, in_turns, ratio_interval

TORCH = """
import glob, os, sys, time, torch
# torchvision's wheel is built for the CUDA torch and expects these operators, which are not called here.
operators = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    operators.define(name + "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
import torchvision
from torchvision import transforms as T
torch.set_num_threads(1)
kind, where = sys.argv[1:]
transform = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor(),
                       T.Normalize((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))])
if kind == "folder":
    data = torchvision.datasets.ImageFolder(where, transform)
    loader = torch.utils.data.DataLoader(data, 128, shuffle=True, num_workers=1, persistent_workers=True)
else:
    import webdataset
    shards = sorted(glob.glob(os.path.join(where, "train-*.tar")))
    data = webdataset.WebDataset(shards, shardshuffle=False).shuffle(1000).decode("pil").to_tuple("jpg")
    data = data.map(lambda sample: transform(sample[0].convert("RGB")))
    loader = torch.utils.data.DataLoader(data, 128, num_workers=1, persistent_workers=True)
def epoch():
    return sum(len(batch[0] if kind == "folder" else batch) for batch in loader)
epoch()
started, cpu = time.perf_counter(), time.process_time()
samples = epoch()
seconds, own = time.perf_counter() - started, time.process_time() - cpu
worker = sum(int(f) for f in open(f"/proc/{loader._iterator._workers[0].pid}/stat").read().rsplit(")", 1)[1].split()[11:13])
# The worker also ran the first epoch: half of its time belongs to the measured one.
print(samples / seconds, 1e6 * (own + worker / 100 / 2) / samples)
"""


def ours(dataset: Path) -> tuple[float, float]:
    """Samples per second, CPU milliseconds per 1000 samples."""
    command = [BIN / "loader_bench", "--benchmark_filter=^decoding/1/", "--benchmark_format=json"]
    command += ["--benchmark_min_time=1"]
    environment = os.environ | {"STOKER_BENCH_DATASET": str(dataset)}
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    found = json.loads(text)["benchmarks"][0]
    return found["samples/s"], found["cpu_ms/1000"]


def theirs(kind: str, where: Path) -> tuple[float, float]:
    done = subprocess.run([PYTHON, "-c", TORCH, kind, where], stdout=subprocess.PIPE, check=True, text=True)
    rate, cpu = done.stdout.split()
    return float(rate), float(cpu)


def compare(kind: str, where: Path, dataset: Path, pairs: int) -> tuple[list, list]:
    """(theirs, ours) pairs of CPU per sample, and (ours, theirs) pairs of samples per second."""
    seen: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}

    def run(who: str) -> float:
        seen[who].append(ours(dataset) if who == "ours" else theirs(kind, where))
        return 0.0

    in_turns(lambda: run("ours"), lambda: run("theirs"), pairs)
    both = list(zip(seen["ours"][1:], seen["theirs"][1:], strict=True))  # the first round is not measured
    return [(o[0], t[0]) for o, t in both], [(o[1], t[1]) for o, t in both]


def main() -> None:
    subprocess.run([REPOSITORY / "script/build", "loader_bench"], check=True, stdout=subprocess.DEVNULL)
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    test_data = os.environ.get("STOKER_TEST_DATA")
    whole = Path(test_data) / "cifar10.tar" if test_data else None
    archive = whole if whole and whole.exists() else REPOSITORY / "examples/cifar10/cifar10-6000.tar"
    with tempfile.TemporaryDirectory() as folder:
        images, dataset = Path(folder) / "images", Path(folder) / "packed"
        images.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", images], check=True)
        subprocess.run([BIN / "stoker", "data", "pack", images, dataset], check=True, capture_output=True)
        if importlib.util.find_spec("webdataset"):
            rates, cpus = compare("shards", dataset, dataset, pairs)
            print(f"       DataLoader over webdataset: ours is {ratio_interval(rates)} times as fast, ", end="")
            print(f"with {ratio_interval(cpus)} of the CPU per sample")
        rates, cpus = compare("folder", images / "train", dataset, pairs)
        print(f"       {archive.name}: ours {rates[0][0]:.0f}/s, DataLoader over a folder {rates[0][1]:.0f}/s")
        print(f"       CPU per 1000 samples: ours {cpus[0][0]:.1f} ms, DataLoader {cpus[0][1]:.1f} ms")
        print(f"       ours is {ratio_interval(rates)} times as fast")
        conclude("CPU per sample, ours / DataLoader", ratio_interval(cpus), limit=0.2)


if __name__ == "__main__":
    main()
