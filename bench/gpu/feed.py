"""ResNets trained from JPEG photographs, as images per second: torchvision's ImageFolder and DataLoader, stoker.Loader
and stoker-train, beside the same steps on data that is already on the GPU.

    python bench/gpu/feed.py [PHOTOGRAPHS] [--models resnet50,resnet18] [--seconds 6] [--copies 10]

PHOTOGRAPHS is a folder of JPEG files; each is linked `--copies` times. Without one, 200 files of noise are generated.
The variants with Stoker need its module (PYTHONPATH) and STOKER_BIN; missing variants are reported."""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torchvision
from torch.nn import functional as F  # noqa: N812  (its name everywhere)
from trainer import BIN
from trainer import train as train_with
from windows import first_line, images_per_s, print_line, print_machine

BATCH, CLASSES, WARM_UP_S, WINDOWS = 128, 10, 3.0, 3
WORKERS = len(os.sched_getaffinity(0))
TRAINER_STEPS = {"resnet50": 300, "resnet18": 600}

JOB = """\
name: feed
train:
  model: {model}
  classes: {classes}
  epochs: 1000
  steps: {steps}
  batch: {batch}
  drop_last: true
  precision: bf16
  channels_last: true
  num_workers: {workers}
  print_every: 100
data:
  train: {{source: {dataset}}}
checkpoint: {{every: never}}
"""

Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


def generated_photographs(folder: Path, count: int = 200) -> Path:
    """JPEG files of 500 x 375 pixels and about 100 kB."""
    folder.mkdir()
    torch.manual_seed(0)
    for index in range(count):
        coarse = torch.randint(256, (1, 3, 94, 125), dtype=torch.float32)
        pixels = F.interpolate(coarse, (375, 500), mode="bilinear")[0].to(torch.uint8)
        torchvision.io.write_jpeg(pixels, str(folder / f"{index:04}.jpg"), quality=90)
    return folder


def link_copies(photographs: Path, folder: Path, copies: int) -> Path:
    files = sorted(path for path in photographs.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"{photographs}: no JPEG files")
    for copy in range(copies):
        for index, file in enumerate(files):
            target = folder / f"class{index % CLASSES}" / f"{copy:03}-{index:05}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file.resolve())
    return folder


def synthetic(_images: Path, _dataset: Path) -> Batches:
    images = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, (BATCH,), device="cuda")
    while True:
        yield images, labels


def torchvision_loader(images: Path, _dataset: Path) -> Batches:
    from torchvision import transforms

    transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    loader = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(str(images), transform),
        BATCH,
        shuffle=True,
        num_workers=WORKERS,
        pin_memory=True,
        drop_last=True,
        persistent_workers=True,
    )
    while True:
        for x, y in loader:
            x = x.cuda(non_blocking=True).contiguous(memory_format=torch.channels_last)
            yield x, y.cuda(non_blocking=True)


def stoker_loader(_images: Path, dataset: Path) -> Batches:
    import stoker

    loader = stoker.Loader(
        str(dataset),
        batch_size=BATCH,
        shuffle=True,
        transform="imagenet-train",
        num_workers=WORKERS,
        drop_last=True,
        dtype="bfloat16",
        channels_last=True,
        pin_memory=True,
        device="cuda",
    )
    while True:
        for batch in loader:
            x = batch["image"]
            yield x if x.shape[1] == 3 else x.permute(0, 3, 1, 2), batch["label"].long()


def train(model_name: str, batches: Batches, seconds: float) -> list[float]:
    """Steps per second in each window."""
    model = torchvision.models.get_model(model_name, num_classes=CLASSES).cuda().to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)

    def rate(duration: float) -> float:
        torch.cuda.synchronize()
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < duration:
            x, y = next(batches)
            sgd.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                logits = model(x)
            F.cross_entropy(logits.float(), y).backward()
            sgd.step()
            count += 1
        torch.cuda.synchronize()
        return count / (time.perf_counter() - started)

    rate(WARM_UP_S)
    return [rate(seconds / WINDOWS) for _ in range(WINDOWS)]


def train_with_stoker(model_name: str, dataset: Path) -> list[float]:
    """Steps per second of stoker-train in thirds of its steps, without the first tenth."""
    steps = TRAINER_STEPS[model_name]
    job = JOB.format(
        model=model_name, classes=CLASSES, steps=steps, batch=BATCH, workers=WORKERS, dataset=dataset.resolve()
    )
    with tempfile.TemporaryDirectory() as work:
        times = [row["time"] for row in train_with(job, Path(work), ["train.device=cuda"])][steps // 10 :]
    third = (len(times) - 1) // 3
    return [third / (times[(part + 1) * third] - times[part * third]) for part in range(3)]


LOADERS = {"synthetic": synthetic, "torchvision": torchvision_loader, "stoker.Loader": stoker_loader}


def measure(model: str, images: Path, dataset: Path, options: argparse.Namespace) -> None:
    for mode in options.modes:
        who = "stoker" if mode.startswith("stoker") else "python"
        try:
            if mode == "stoker-train":
                rates = train_with_stoker(model, dataset)
            else:
                rates = train(model, LOADERS[mode](images, dataset), options.seconds)
        except Exception as error:
            print_line(workload=f"feed-{model}", who=who, mode=mode, failed=first_line(error))
            continue
        print_line(workload=f"feed-{model}", who=who, mode=mode, **images_per_s(rates, BATCH))


def usable(modes: list[str]) -> list[str]:
    """Reports the modes that need something that is not here."""
    missing = {}
    if not (BIN / "stoker").exists():
        missing = dict.fromkeys(("stoker.Loader", "stoker-train"), f"{BIN}/stoker is missing")
    elif importlib.util.find_spec("stoker") is None:
        missing = {"stoker.Loader": "the module stoker is missing (PYTHONPATH)"}
    for mode in missing.keys() & set(modes):
        print_line(workload="feed", who="stoker", mode=mode, not_run=missing[mode])
    return [mode for mode in modes if mode not in missing]


def parse_arguments() -> argparse.Namespace:
    modes = [*LOADERS, "stoker-train"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", nargs="?", type=Path)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(TRAINER_STEPS))
    parser.add_argument("--modes", type=lambda text: text.split(","), default=modes)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of the measurement")
    parser.add_argument("--copies", type=int, default=10)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    torch.backends.cudnn.benchmark = True
    print_machine("cuda")
    options.modes = usable(options.modes)
    with tempfile.TemporaryDirectory() as work:
        photographs = options.photographs or generated_photographs(Path(work) / "generated")
        images = link_copies(photographs, Path(work) / "images", options.copies)
        dataset = Path(work) / "dataset"
        if any(mode.startswith("stoker") for mode in options.modes):
            subprocess.run([BIN / "stoker", "data", "pack", images, dataset], check=True, stdout=sys.stderr)
        for model in options.models:
            measure(model, images, dataset, options)


if __name__ == "__main__":
    main()
