"""The state of a small training, and a bitwise comparison of two states."""

import math

import numpy
import torch


def bits(tensor):
    return tensor.resolve_conj().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def same(a, b):
    """Whether type and value are identical to the last bit."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)
    if isinstance(a, numpy.ndarray):
        return isinstance(b, numpy.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


def training(steps=3, width=400):
    """A model with batch norm, its optimizer and scheduler after some steps."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.BatchNorm1d(width), torch.nn.Linear(width, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.8, 0.9))
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()
        schedule.step()
    return model, optimizer, schedule


def state_of(model, optimizer, schedule, **others):
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        **others,
    }
