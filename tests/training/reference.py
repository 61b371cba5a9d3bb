"""Reference for Stoker's models and training: the same in Python, one rank per process.

    python reference.py shapes MODEL,MODEL... CLASSES SEED FOLDER       (FOLDER: has <model>.batches and <model>.ours,
                        whose state is loaded strictly; writes <model>.theirs with initial weights and logits)
    python reference.py train  MODEL CLASSES SEED BATCHES OUT [WORD]...   (words of several trainings behind each other,
                                                                       with "and" between them, write OUT, OUT-1, ...)
    python reference.py recipe MODEL CLASSES SEED BATCHES OUT [bf16|variants]
    python reference.py cost   MODEL CLASSES SEED BATCHES OUT [STEPS]
    python reference.py pace   MODEL CLASSES SEED BATCHES OUT [STEPS]
    python reference.py first-step MODEL CLASSES SEED BATCHES OUT       (writes the time of day at its end to OUT-<rank>)
    python reference.py serve       (reads lines of JSON: [[{VARIABLE: VALUE, ...}, [WORD, ...]], ...], for each rank its
                                     environment and arguments as above; answers with their exit codes)

Uses the arguments and files of tests/programs/torch_steps.cc.
"""

import contextlib
import itertools
import json
import os
import sys
import time
import traceback
import types
from pathlib import Path

import torch
import torch.distributed
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F  # noqa: N812  (its name everywhere)

# torchvision's wheel expects the CUDA build of torch: with the CPU build its operators are not declared.
if torch.version.cuda is None:
    _library = torch.library.Library("torchvision", "DEF")
    _library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


class CifarBlock(nn.Module):
    drop, chance = 0.0, None  # drop probability and its random generator

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
        if self.drop:
            mask = torch.empty(len(x), 1, 1, 1).bernoulli_(1 - self.drop, generator=self.chance)
            out = out * mask.div_(1 - self.drop)
        if self.grown or self.stride != 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.grown, self.grown))
        return F.relu(out.add_(x), inplace=True)


class CifarResNet(nn.Module):
    """ "Deep Residual Learning", section 4.2, with shortcuts that have no parameters."""

    def __init__(self, blocks: int, num_classes: int, heads: int = 1):
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
        classifiers = [nn.Linear(channels, num_classes) for _ in range(heads)]
        self.fc = classifiers[0] if heads == 1 else nn.ModuleList(classifiers)
        self.head = None  # index of the used head
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer3(self.layer2(self.layer1(x)))
        classifier = self.fc if self.head is None else self.fc[self.head]
        return classifier(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Gpt(nn.Module):
    """A language model of torchvision's transformer blocks with a causal mask."""

    def __init__(self, vocabulary: int, layers: int = 2, heads: int = 2, width: int = 16, length: int = 12):
        from torchvision.models.vision_transformer import EncoderBlock

        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(EncoderBlock(heads, width, 4 * width, 0.0, 0.0) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for block in self.blocks:
            y = block.ln_1(x)
            x = x + block.self_attention(y, y, y, need_weights=False, attn_mask=mask, is_causal=True)[0]
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.ln_f(x))


def make_model(name: str, classes: int, size: int = 32) -> nn.Module:
    if name.startswith("cifar-resnet"):
        return CifarResNet((int(name.removeprefix("cifar-resnet")) - 2) // 6, classes)
    if name == "gpt":
        return Gpt(classes)
    if name == "mlp":
        sizes = [3 * size * size, 24, 16, classes]
        layers = [layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])
    import torchvision.models

    if name == "vit-s16":
        return torchvision.models.VisionTransformer(size, 16, 12, 6, 384, 1536, num_classes=classes)
    return getattr(torchvision.models, name)(weights=None, num_classes=classes)


def read_batches(path: str | Path) -> list[tuple[torch.Tensor, torch.Tensor]]:
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


def read_tensors(path: str | Path) -> dict[str, dict[str, bytes]]:
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


def model_input(name: str, images: torch.Tensor, classes: int) -> torch.Tensor:
    if name == "mlp":
        return images.flatten(1)
    if name == "gpt":
        return (images.flatten(1)[:, :12].abs() * 1000).to(torch.int64) % classes
    return images


def shapes(names: str, classes: int, seed: int, folder: Path) -> None:
    torch.backends.mha.set_fastpath_enabled(False)
    for name in names.split(","):
        images, _ = read_batches(folder / f"{name}.batches")[0]
        torch.manual_seed(seed)
        model = make_model(name, classes, images.shape[-1])
        with open(folder / f"{name}.theirs", "wb") as out:
            state = model.state_dict()
            write(out, "initial", state.items())
            for key, payload in read_tensors(folder / f"{name}.ours")["state"].items():
                state[key] = torch.frombuffer(bytearray(payload), dtype=state[key].dtype).reshape(state[key].shape)
            model.load_state_dict(state, strict=True)
            model.eval()
            with torch.no_grad():
                write(out, "logits", [("logits", model(model_input(name, images, classes)))])


def rounded_to_bfloat16(group, bucket: torch.distributed.GradBucket):
    """bf16_compress_hook under a different name: PyTorch accepts the original only on GPUs."""
    return default_hooks.bf16_compress_hook(group, bucket)


def wrapped(model: nn.Module, words: list[str]) -> nn.parallel.DistributedDataParallel:
    parallel = nn.parallel.DistributedDataParallel(
        model,
        gradient_as_bucket_view="bucketed" in words,
        find_unused_parameters="search" in words,
        static_graph="fixed" in words,
    )
    if "float16" in words:
        parallel.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if "bfloat16" in words:
        parallel.register_comm_hook(None, rounded_to_bfloat16)
    return parallel


def train(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    parallel = wrapped(model, arguments.words)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    for step, (images, labels) in enumerate(read_batches(arguments.batches)):
        sgd.zero_grad()
        if "accumulate" in arguments.words:
            half = len(images) // 2
            with parallel.no_sync():
                F.cross_entropy(parallel(images[:half]), labels[:half]).backward()
            images, labels = images[half:], labels[half:]
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


def drop_blocks(model: CifarResNet, drop: float, chance: torch.Generator) -> None:
    blocks = [module for module in model.modules() if isinstance(module, CifarBlock)]
    for number, block in enumerate(blocks, 1):
        block.drop, block.chance = drop * number / len(blocks), chance


def recipe(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    torch.distributed.init_process_group("gloo")
    varies, chance = arguments.extra == "variants", torch.Generator()
    if varies:
        drop_blocks(model, 0.5, chance)
    parallel = nn.parallel.DistributedDataParallel(model, find_unused_parameters=varies)
    adamw = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.05, foreach=False)
    ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    batches = read_batches(arguments.batches)
    for step in range(len(batches) // 2):
        adamw.zero_grad()
        for i, (images, labels) in enumerate(batches[2 * step : 2 * step + 2]):
            if varies:
                model.head = step % 2
                chance.manual_seed(1000 * step + 10 * i + torch.distributed.get_rank())
            with parallel.no_sync() if i == 0 else contextlib.nullcontext():
                with torch.autocast("cpu", torch.bfloat16, enabled=arguments.extra == "bf16"):
                    logits = parallel(images)
                (F.cross_entropy(logits.float(), labels, label_smoothing=0.1) / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        write(out, str(step), ((name, p.grad) for name, p in model.named_parameters() if p.grad is not None))
        adamw.step()
        ema.update_parameters(model)
    write(out, "state", model.state_dict().items())
    for name, p in model.named_parameters():
        state = adamw.state[p]
        write(out, "optimizer", ((f"state.{name}.{key}", state[key]) for key in ("step", "exp_avg", "exp_avg_sq")))
    write(out, "ema", ((f"ema.{name}", p) for name, p in ema.module.named_parameters()))
    torch.distributed.barrier()


def cost(model: nn.Module, arguments: types.SimpleNamespace, out, clock=time.process_time) -> None:
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    images, labels = read_batches(arguments.batches)[0]
    steps = int(arguments.extra or 50)

    def five_steps() -> float:
        started = clock()
        for _ in range(5):
            parallel.zero_grad()
            F.cross_entropy(parallel(images), labels).backward()
        if clock is time.perf_counter:
            torch.distributed.barrier()
        return clock() - started

    five_steps()
    for _ in range(steps // 5):
        with_s = five_steps()
        with parallel.no_sync():
            without_s = five_steps()
        out.write(f"{with_s / 5} {without_s / 5}\n".encode())
    torch.distributed.barrier()


def pace(model: nn.Module, arguments: types.SimpleNamespace, out) -> None:
    cost(model, arguments, out, time.perf_counter)


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


def start(environment: dict[str, str], words: list[str]) -> int:
    """Runs main in a forked process; returns its pid."""
    if process := os.fork():
        return process
    code = 1
    try:
        os.environ.update(environment)
        main(*words)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def serve() -> None:
    """Ranks that share one import, which takes ten times as long as five steps of a small model."""
    import torch._dynamo  # noqa: F401  (imported by the first DistributedDataParallel)
    import torchvision.models  # noqa: F401

    for line in sys.stdin:
        ranks = [start(*rank) for rank in json.loads(line)]
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]), flush=True)


def main(mode: str, name: str = "", classes: str = "0", seed: str = "0", *rest: str) -> None:
    if mode == "serve":
        serve()
        return
    if mode == "shapes":
        shapes(name, int(classes), int(seed), Path(rest[0]))
        return
    arguments = types.SimpleNamespace(batches=rest[0], words=rest[2:], extra=rest[2] if len(rest) > 2 else "")
    torch.manual_seed(int(seed))
    model = CifarResNet(3, int(classes), 2) if arguments.extra == "variants" else make_model(name, int(classes))
    target = rest[1]
    if mode == "train":
        torch.distributed.init_process_group("gloo")
        ways = " ".join(arguments.words).split("and")
        for number, way in enumerate(ways):
            arguments.words = way.split()
            torch.manual_seed(int(seed))
            with open(target + (f"-{number}" if number else ""), "wb") as out:
                train(make_model(name, int(classes)), arguments, out)
        return
    if mode == "first-step":
        target += f"-{os.environ['RANK']}"
    modes = {"recipe": recipe, "cost": cost, "pace": pace, "first-step": first_step}
    with open(target, "wb") as out:
        modes[mode](model, arguments, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
