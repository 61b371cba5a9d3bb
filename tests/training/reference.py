"""What Stoker's models and training are compared with: the same in Python, one rank per process.

    python reference.py init   MODEL CLASSES SEED OUT
    python reference.py logits MODEL CLASSES SEED BATCHES OUT STATE     (STATE: as torch-steps wrote it, loaded strictly)
    python reference.py train  MODEL CLASSES SEED BATCHES OUT [bucketed]
    python reference.py cost   MODEL CLASSES SEED BATCHES OUT [STEPS]
    python reference.py first-step MODEL CLASSES SEED BATCHES OUT       (writes the time of day at its end to OUT-<rank>)

Arguments and files are those of tests/programs/torch_steps.cc.
"""

import os
import sys
import time
import types
from pathlib import Path

import torch
import torch.distributed
from torch import nn
from torch.nn import functional as F  # noqa: N812  (its name everywhere)

# torchvision's wheel expects the CUDA build of torch: beside the CPU one, its operators have no declaration.
_library = torch.library.Library("torchvision", "DEF")
_library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


class CifarBlock(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.grown = stride, (channels - channels_in) // 2

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        if self.grown or self.stride != 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.grown, self.grown))
        return F.relu(out.add_(x), inplace=True)


class CifarResNet(nn.Module):
    """ "Deep Residual Learning", section 4.2, with shortcuts that have no parameters."""

    def __init__(self, blocks: int, num_classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        channels = 16
        for stage in range(3):
            layers = []
            for i in range(blocks):
                width = 16 << stage
                layers.append(CifarBlock(channels, width, 2 if stage and not i else 1))
                channels = width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def make_model(name: str, classes: int) -> nn.Module:
    if name == "cifar-resnet20":
        return CifarResNet(3, classes)
    import torchvision.models

    return getattr(torchvision.models, name)(weights=None, num_classes=classes)


def read_batches(path: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    data = Path(path).read_bytes()
    steps, batch, size = torch.frombuffer(bytearray(data[:24]), dtype=torch.int64).tolist()
    batches, at = [], 24
    for _ in range(steps):
        images = torch.frombuffer(bytearray(data[at : at + batch * 3 * size * size * 4]), dtype=torch.float32)
        at += images.nbytes
        labels = torch.frombuffer(bytearray(data[at : at + batch * 8]), dtype=torch.int64)
        at += labels.nbytes
        batches.append((images.reshape(batch, 3, size, size), labels))
    return batches


def read_tensors(path: str) -> dict[str, dict[str, bytes]]:
    sections: dict[str, dict[str, bytes]] = {}
    data, at = Path(path).read_bytes(), 0
    while at < len(data):
        end = data.index(b"\n", at)
        section, name, size = data[at:end].decode().split(" ")
        sections.setdefault(section, {})[name] = data[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size)
    return sections


def write(out, section: str, tensors) -> None:
    for name, tensor in tensors:
        payload = tensor.detach().contiguous().numpy().tobytes()
        out.write(f"{section} {name} {len(payload)}\n".encode() + payload)


def logits(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    state = model.state_dict()
    for name, payload in read_tensors(arguments.extra)["state"].items():
        state[name] = torch.frombuffer(bytearray(payload), dtype=state[name].dtype).reshape(state[name].shape)
    model.load_state_dict(state, strict=True)
    model.eval()
    with torch.no_grad():
        write(out, "logits", [("logits", model(read_batches(arguments.batches)[0][0]))])


def train(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=bool(arguments.extra))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    for step, (images, labels) in enumerate(read_batches(arguments.batches)):
        sgd.zero_grad()
        F.cross_entropy(parallel(images), labels).backward()
        write(out, str(step), ((name, p.grad) for name, p in model.named_parameters()))
        sgd.step()
    write(out, "state", model.state_dict().items())
    write(
        out,
        "momentum",
        ((f"state.{name}.momentum_buffer", sgd.state[p]["momentum_buffer"]) for name, p in model.named_parameters()),
    )
    torch.distributed.barrier()


def cost(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    images, labels = read_batches(arguments.batches)[0]
    steps = int(arguments.extra or 50)

    def five_steps() -> float:
        started = time.process_time()
        for _ in range(5):
            parallel.zero_grad()
            F.cross_entropy(parallel(images), labels).backward()
        return time.process_time() - started

    five_steps()
    with_s = without_s = 0.0
    for _ in range(steps // 5):
        with_s += five_steps()
        with parallel.no_sync():
            without_s += five_steps()
    out.write(f"{with_s / steps} {without_s / steps}\n".encode())
    torch.distributed.barrier()


def first_step(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    """One step of training, and the time of day at its end."""
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    images, labels = read_batches(arguments.batches)[0]
    F.cross_entropy(parallel(images), labels).backward()
    sgd.step()
    out.write(f"{time.time()}\n".encode())
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main(mode: str, name: str, classes: str, seed: str, *rest: str) -> None:
    arguments = types.SimpleNamespace(batches=rest[0], extra=rest[2] if len(rest) > 2 else "")
    torch.manual_seed(int(seed))
    model = make_model(name, int(classes))
    target = rest[0] if mode == "init" else rest[1]
    if mode == "first-step":
        target += f"-{os.environ['RANK']}"
    with open(target, "wb") as out:
        if mode == "init":
            write(out, "state", model.state_dict().items())
        else:
            {"logits": logits, "train": train, "cost": cost, "first-step": first_step}[mode](model, arguments, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
