"""The workloads of the GPU benches: models, batch sizes and precisions, shared with bench/gpu_steps.cc by name."""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/training"))
from reference import make_model


@dataclass(frozen=True)
class Workload:
    name: str
    model: str
    batch: int
    size: int = 224
    classes: int = 1000
    bf16: bool = True

    @property
    def channels_last(self) -> bool:
        return self.bf16


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("resnet50-256", "resnet50", 256),
        Workload("resnet50-32", "resnet50", 32),
        Workload("resnet18-64", "resnet18", 64),
        Workload("cifar-resnet20-128", "cifar-resnet20", 128, 32, 10),
        Workload("cifar-resnet20-128-fp32", "cifar-resnet20", 128, 32, 10, bf16=False),
    )
}


def model_of(workload: Workload, device: str) -> nn.Module:
    """The model of the tests: Stoker's has the same operations and state."""
    model = make_model(workload.model, workload.classes).to(device)
    return model.to(memory_format=torch.channels_last) if workload.channels_last else model


def batch_of(workload: Workload, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Random images in the type that the convolutions compute in, and labels."""
    images = torch.randn(workload.batch, 3, workload.size, workload.size, device=device)
    if workload.bf16:
        images = images.to(torch.bfloat16)
    if workload.channels_last:
        images = images.contiguous(memory_format=torch.channels_last)
    return images, torch.randint(workload.classes, (workload.batch,), device=device)
