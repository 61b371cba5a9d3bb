"""Trains the same models on the same images with stoker-train and with PyTorch, and compares the loss of every step and
the final weights: float32 without TF32, deterministic algorithms.

    python bench/gpu/parity.py data FOLDER    write random images (PNG) and pack them
    python bench/gpu/parity.py run FOLDER [--device cuda] [--models MODEL,...] [--set KEY=VALUE]...

`run` prints one JSON line per model, writes PyTorch's losses and sums of weights to FOLDER/MODEL.reference.json, and
exits with 1 if a limit is missed. It needs no module of Stoker: the images are lossless, and the order of the samples is
that of DistributedSampler."""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainer import BIN, on, tensors_of, train

CLASSES, SEED, STEPS, EPOCHS = 10, 1, 20, 2
LR, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 5e-4
# Roundings of the first step, and what 20 steps make of them; equal operations give 0 for both.
FIRST_LIMIT, ALL_LIMIT = 1e-5, 1e-3
MEAN = {32: (0.4914, 0.4822, 0.4465), 224: (0.485, 0.456, 0.406)}
DEVIATION = {32: (0.247, 0.2435, 0.2616), 224: (0.229, 0.224, 0.225)}


@dataclass(frozen=True)
class Case:
    model: str
    batch: int
    size: int
    block: int  # images are random blocks of this size: PNG packs them well

    @property
    def images(self) -> int:
        return self.batch * STEPS // EPOCHS


CASES = {case.model: case for case in (Case("resnet18", 16, 224, 8), Case("cifar-resnet20", 128, 32, 2))}

JOB = """\
name: parity
train:
  model: {case.model}
  epochs: {epochs}
  batch: {case.batch}
  seed: {seed}
  deterministic: true
  optimizer: {{lr: {lr}, momentum: {momentum}, nesterov: true, weight_decay: {weight_decay}}}
  schedule: {{kind: constant}}
  image: {{size: {case.size}, validation_resize: {case.size}, crop: none, flip: false, mean: {mean},
          standard_deviation: {deviation}}}
data:
  train: {{source: {dataset}}}
checkpoint: {{every: {steps} steps, keep_last: 1}}
"""


def png(rows_of_pixels: list[bytes]) -> bytes:
    """An RGB image."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">2I5B", len(rows_of_pixels[0]) // 3, len(rows_of_pixels), 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows_of_pixels), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def image(case: Case, index: int) -> bytes:
    chance = random.Random(f"{case.model} {index}")
    pixels = []
    for _ in range(case.size // case.block):
        row = b"".join(chance.randbytes(3) * case.block for _ in range(case.size // case.block))
        pixels += [row] * case.block
    return png(pixels)


def write_data(folder: Path) -> None:
    for case in CASES.values():
        if (folder / case.model / "manifest.json").exists():
            continue
        with tempfile.TemporaryDirectory() as images:
            for index in range(case.images):
                path = Path(images) / f"class{index % CLASSES}" / f"{index // CLASSES:04}.png"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(image(case, index))
            command = [BIN / "stoker", "data", "pack", images, folder / case.model, "--format", "tar"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def read_images(case: Case, folder: Path):
    """All images as the trainer sees them, in the order of the dataset, and their labels."""
    import numpy
    import torch
    from PIL import Image

    found, numbers = [], []
    for shard in sorted((folder / case.model).glob("*.tar")):
        with tarfile.open(shard) as archive:
            for member in archive:
                if member.name.endswith(".png"):
                    found.append(numpy.asarray(Image.open(archive.extractfile(member)).convert("RGB")))
                    numbers.append(int(Path(member.name).parent.name.removeprefix("class")))
    pixels = torch.from_numpy(numpy.stack(found))
    mean, deviation = (torch.tensor(value[case.size]).view(3, 1, 1) for value in (MEAN, DEVIATION))
    images = (pixels.permute(0, 3, 1, 2).float().div(255) - mean) / deviation
    return images.contiguous(), torch.tensor(numbers)


def batches(case: Case, folder: Path) -> Iterator[tuple]:
    from torch.utils.data import DistributedSampler

    images, labels = read_images(case, folder)
    sampler: DistributedSampler = DistributedSampler(range(len(labels)), num_replicas=1, rank=0, seed=SEED)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        order = list(sampler)
        for first in range(0, len(order), case.batch):
            samples = order[first : first + case.batch]
            yield images[samples], labels[samples]


def train_reference(case: Case, folder: Path, device: str) -> tuple[list[float], dict]:
    """PyTorch's loss of each step, and its final state."""
    import torch
    from reference import make_model

    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(SEED)
    model = make_model(case.model, CLASSES, case.size).to(device)
    sgd = torch.optim.SGD(
        model.parameters(), LR, MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True, fused=device == "cuda"
    )
    losses = []
    for images, labels in batches(case, folder):
        sgd.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses, {name: tensor.cpu() for name, tensor in model.state_dict().items()}


def job_of(case: Case, folder: Path) -> str:
    return JOB.format(
        case=case,
        epochs=EPOCHS,
        seed=SEED,
        lr=LR,
        momentum=MOMENTUM,
        weight_decay=WEIGHT_DECAY,
        mean=list(MEAN[case.size]),
        deviation=list(DEVIATION[case.size]),
        dataset=(folder / case.model).resolve(),
        steps=STEPS,
    )


def relative(first: float, second: float) -> float:
    return abs(first - second) / max(abs(first), abs(second), 1e-30)


def weight_difference(expected: dict, checkpoint: Path) -> float:
    """Norm of the difference of all weights and statistics, relative to their norm; batch counters are left out."""
    import torch

    saved = {name.rsplit("/", 1)[1]: data for name, data in tensors_of(checkpoint).items()}
    difference = norm = 0.0
    for name, tensor in expected.items():
        if tensor.is_floating_point():
            found = torch.frombuffer(bytearray(saved[name]), dtype=torch.float32).reshape(tensor.shape)
            difference += float((found - tensor).double().square().sum())
            norm += float(tensor.double().square().sum())
    return (difference / norm) ** 0.5


def compare(case: Case, folder: Path, options: argparse.Namespace) -> bool:
    losses, state = train_reference(case, folder, options.device)
    sums = {name: float(tensor.double().sum()) for name, tensor in state.items()}
    (folder / f"{case.model}.reference.json").write_text(json.dumps({"losses": losses, "sums": sums}, indent=1) + "\n")
    with tempfile.TemporaryDirectory() as work:
        steps = train(job_of(case, folder), Path(work), on(options.device) + options.set)
        found = [row["loss"] for row in steps]
        weights = weight_difference(state, Path(work) / f"step-{STEPS}")
    if len(found) != len(losses):
        sys.exit(f"{case.model}: {len(found)} steps of stoker-train, {len(losses)} of PyTorch")
    differences = [relative(a, b) for a, b in zip(found, losses, strict=True)]
    met = differences[0] <= FIRST_LIMIT and max(differences) <= ALL_LIMIT
    line = {
        "workload": f"parity-{case.model}",
        "settings": options.set,
        "steps": len(losses),
        "identical_losses": sum(a == b for a, b in zip(found, losses, strict=True)),
        "first_difference": differences[0],
        "largest_difference": max(differences),
        "weight_difference": weights,
        "limit": ALL_LIMIT,
        "met": met,
    }
    print(json.dumps(line), flush=True)
    return met


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    data = commands.add_parser("data")
    data.add_argument("folder", type=Path)
    run = commands.add_parser("run")
    run.add_argument("folder", type=Path)
    run.add_argument("--models", type=lambda text: text.split(","), default=list(CASES))
    run.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    run.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of stoker-train")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.command == "data":
        write_data(options.folder)
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before CUDA starts; stoker-train inherits it
    met = [compare(CASES[model], options.folder, options) for model in options.models]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
