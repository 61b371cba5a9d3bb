"""Trains a small residual network on a folder of images with PyTorch's DistributedDataParallel.

An ordinary script: it does not depend on Stoker, only on the variables that every PyTorch launcher sets.

    python examples/pytorch/train.py --data images --epochs 2               one process
    torchrun --nproc-per-node 2 examples/pytorch/train.py --data images     two
    stoker run examples/pytorch/job.yaml                                    two, recorded and supervised

DATA holds train/<class>/*.jpg and test/<class>/*.jpg, 32x32 pixels each.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from PIL import Image
from torch import nn
from torch.nn import functional as F  # noqa: N812  (its name everywhere)
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
DEVIATION = torch.tensor([0.2470, 0.2435, 0.2616]).view(3, 1, 1)


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.grown = (channels - channels_in) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.stride != 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.grown, self.grown))
        return F.relu(out + x)


class ResNet20(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks, channels = [], 16
        for width, stride in [(16, 1)] * 3 + [(32, 2)] + [(32, 1)] * 2 + [(64, 2)] + [(64, 1)] * 2:
            blocks.append(Block(channels, width, stride))
            channels = width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def read_images(folder: Path) -> tuple[TensorDataset, int]:
    """All images of a class-per-folder tree, in memory as bytes."""
    classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    images, labels = [], []
    for label, name in enumerate(classes):
        for file in sorted((folder / name).glob("*.jpg")):
            with Image.open(file) as image:
                pixels = torch.frombuffer(bytearray(image.convert("RGB").tobytes()), dtype=torch.uint8)
                images.append(pixels.view(image.height, image.width, 3).permute(2, 0, 1))
            labels.append(label)
    return TensorDataset(torch.stack(images), torch.tensor(labels)), len(classes)


def to_floats(images: torch.Tensor, augment: bool) -> torch.Tensor:
    x = (images / 255 - MEAN) / DEVIATION
    if not augment:
        return x
    x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    padded = F.pad(x, (4, 4, 4, 4))
    rows, columns = torch.randint(0, 9, (2, len(x))).tolist()
    return torch.stack(
        [padded[i, :, r : r + 32, c : c + 32] for i, (r, c) in enumerate(zip(rows, columns, strict=True))]
    )


@torch.no_grad()
def accuracy(model: nn.Module, images: TensorDataset, rank: int, world: int) -> float:
    """Share of correctly classified images; each rank evaluates its part."""
    model.eval()
    counts = torch.zeros(2, dtype=torch.float64)
    for batch, labels in DataLoader(torch.utils.data.Subset(images, range(rank, len(images), world)), batch_size=250):
        counts[0] += (model(to_floats(batch, augment=False)).argmax(1) == labels).sum()
        counts[1] += len(labels)
    model.train()
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images per process and step")
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--steps", type=int, default=0, help="end after this many steps; 0: all epochs")
    parser.add_argument("--save", type=Path, help="write the weights here when done")
    options = parser.parse_args()

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(1)

    train, classes = read_images(options.data / "train")
    test, _ = read_images(options.data / "test")
    sampler = DistributedSampler(train, seed=1)
    loader = DataLoader(train, batch_size=options.batch, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(ResNet20(classes))
    torch.manual_seed(1 + rank)  # each rank augments differently
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.lr, epochs=options.epochs, steps_per_epoch=len(loader)
    )

    step = 0
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        started, total = time.monotonic(), 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(to_floats(images, augment=True)), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            step += 1
            if rank == 0 and (step == 1 or step % 20 == 0):
                print(f"epoch {epoch + 1} step {step} loss {loss.item():.3f}", flush=True)
            if step == options.steps:
                break
        right = accuracy(model.module, test, rank, world)
        if rank == 0:
            print(
                f"epoch {epoch + 1}: loss {total / len(loader):.3f}, test accuracy {right:.1%}, "
                f"{time.monotonic() - started:.1f} s",
                flush=True,
            )
        if step == options.steps:
            break
    if rank == 0 and options.save:
        torch.save(model.module.state_dict(), options.save)
    dist.barrier()  # let gloo's threads release their tensors: a late release would abort the process
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
