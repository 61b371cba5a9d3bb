"""The trainer on a GPU. script/gpu-check runs these tests where there is one."""

import math
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from gpu_training import BIN, Trained, Trainer

pytestmark = pytest.mark.needs("gpu")

STEPS = 20  # two epochs of 500 images, 50 per step


@pytest.fixture
def port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def close(found: Trained, expected: Trained, relative: float) -> bool:
    pairs = zip(found.losses(), expected.losses(), strict=True)
    return all(math.isclose(a, b, rel_tol=relative) for a, b in pairs)


# With a small rate, differences of rounding stay small over all steps.
SMALL_RATE = "train.optimizer.lr=0.001"


def test_trains_and_validates_as_on_the_cpu(trainer: Trainer) -> None:
    gpu = trainer("train.deterministic=true", SMALL_RATE)
    cpu = trainer("train.device=cpu", "train.deterministic=true", SMALL_RATE)
    assert "training on cuda:0 (NVIDIA" in gpu.out
    assert len(gpu.losses()) == STEPS
    assert math.isclose(gpu.losses()[0], cpu.losses()[0], rel_tol=1e-5)
    assert close(gpu, cpu, 1e-3)
    assert abs(gpu.epochs()[1]["val_loss"] - cpu.epochs()[1]["val_loss"]) < 0.05 * cpu.epochs()[1]["val_loss"]
    assert gpu.epochs()[1]["train_loss"] < gpu.epochs()[0]["train_loss"]


def test_deterministic_trainings_are_equal_in_every_bit(trainer: Trainer) -> None:
    assert (
        trainer("train.deterministic=true").rows()[-1]["loss"] == trainer("train.deterministic=true").rows()[-1]["loss"]
    )


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("train.precision=bf16", "train.channels_last=true"),
        ("train.precision=fp16", "train.channels_last=true"),
        ("train.ema=0.9", "train.clip_norm=1", "train.label_smoothing=0.1"),
        ("train.optimizer.kind=adamw", "train.optimizer.lr=0.001", "train.clip_norm=1"),
        ("train.schedule.kind=one-cycle", "train.schedule.cycle_momentum=true"),
        ("train.optimizer.exclude_bias_and_norm=true", "train.schedule.kind=cosine"),
    ],
    ids=lambda settings: " ".join(settings) or "plain",
)
def test_a_captured_step_computes_what_an_eager_one_does(trainer: Trainer, settings: tuple[str, ...]) -> None:
    graph = trainer(SMALL_RATE, *settings)
    eager = trainer(SMALL_RATE, *settings, "train.cuda_graph=never")
    assert "not captured" not in graph.out
    assert len(graph.losses()) == STEPS
    assert close(graph, eager, 5e-3), [graph.losses(), eager.losses()]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("train.optimizer.kind=lamb", "train.optimizer.lr=0.005"), "train.optimizer.kind"),
        (("train.optimizer.kind=lars", "train.optimizer.lr=1"), "train.optimizer.kind"),
        (("train.precision=fp16", "train.schedule.kind=one-cycle", "train.schedule.cycle_momentum=true"), "momentum"),
    ],
)
def test_steps_that_cannot_be_captured_run_without(trainer: Trainer, settings: tuple[str, ...], reason: str) -> None:
    trained = trainer(*settings)
    assert len(trained.losses()) == STEPS
    assert "steps are not captured as a CUDA graph" in trained.out
    assert reason in trained.out
    assert trained.losses()[-1] < trained.losses()[0]


@pytest.mark.parametrize(
    "settings",
    [
        ("train.accumulate=5",),
        ("train.mixup=0.2", "train.cutmix=1"),
        ("train.heads=2",),
        ("train.stochastic_depth=0.2",),
    ],
)
def test_random_choices_are_the_same_as_on_the_cpu(trainer: Trainer, settings: tuple[str, ...]) -> None:
    gpu = trainer(*settings, "train.steps=4", "train.deterministic=true")
    cpu = trainer(*settings, "train.steps=4", "train.device=cpu")
    assert close(gpu, cpu, 1e-2)


@pytest.mark.parametrize("model", ["vit-s16", "resnet18"])
def test_larger_models_train(trainer: Trainer, model: str) -> None:
    trained = trainer(
        f"train.model={model}", "train.image.size=64", "train.precision=bf16", "train.steps=8", "train.batch=20"
    )
    assert len(trained.losses()) == 8
    assert all(map(math.isfinite, trained.losses()))


def test_a_checkpoint_of_a_gpu_resumes_there_exactly(trainer: Trainer) -> None:
    exact = ("train.deterministic=true", "train.ema=0.9")
    whole = trainer(*exact, "checkpoint.every=8 steps")
    resumed = trainer(*exact, STOKER_RESUME=str(whole.folder / "step-8"))
    assert resumed.losses() == whole.losses()[8:]


def test_checkpoints_move_between_gpu_and_cpu(trainer: Trainer) -> None:
    gpu = trainer("checkpoint.every=8 steps", "train.channels_last=true")
    on_cpu = trainer("train.device=cpu", "checkpoint.every=12 steps", STOKER_RESUME=str(gpu.folder / "step-8"))
    assert on_cpu.losses()[0] == pytest.approx(gpu.losses()[8], rel=1e-3)
    back = trainer(STOKER_RESUME=str(on_cpu.folder / "step-12"))
    assert back.losses()[0] == pytest.approx(on_cpu.losses()[4], rel=1e-3)


def test_fp16_scale_is_in_the_checkpoint(trainer: Trainer) -> None:
    whole = trainer("train.precision=fp16", "checkpoint.every=10 steps")
    resumed = trainer("train.precision=fp16", STOKER_RESUME=str(whole.folder / "step-10"))
    assert resumed.losses()[0] == pytest.approx(whole.losses()[10], rel=1e-2)


def test_two_ranks_share_a_gpu_through_host_memory(trainer: Trainer, port: int) -> None:
    settings = ("train.batch=25", "train.steps=6", "train.deterministic=true", SMALL_RATE)
    shared = trainer.ranks(2, port, *settings)
    assert "ranks share a GPU: gradients travel through host memory" in shared[0].out
    cpu = trainer.ranks(2, port, *settings, "train.device=cpu")
    for rank in range(2):
        pairs = zip(shared[0].losses(rank), cpu[0].losses(rank), strict=True)
        assert all(math.isclose(a, b, rel_tol=1e-3) for a, b in pairs)


def test_two_ranks_synchronize_batch_norm_on_a_gpu(trainer: Trainer, port: int) -> None:
    settings = ("train.batch=25", "train.steps=4", "train.sync_batch_norm=true", SMALL_RATE)
    shared = trainer.ranks(2, port, *settings)
    cpu = trainer.ranks(2, port, *settings, "train.device=cpu")
    assert shared[0].losses()[0] == pytest.approx(cpu[0].losses()[0], rel=1e-4)
    assert shared[0].losses()[3] == pytest.approx(cpu[0].losses()[3], rel=1e-3)


def test_nccl_refuses_a_shared_gpu_before_the_first_collective(trainer: Trainer, port: int) -> None:
    for trained in trainer.ranks(2, port, "train.backend=nccl", code=2):
        assert "train.backend: nccl: ranks 0 and 1 use the same GPU, which NCCL refuses" in trained.out
        assert "resources.gpus_per_rank: 1" in trained.out


@pytest.mark.parametrize("graph", ["auto", "never"])
def test_a_world_of_one_trains_over_nccl(trainer: Trainer, port: int, graph: str) -> None:
    settings = ("train.precision=bf16", "train.channels_last=true", f"train.cuda_graph={graph}", SMALL_RATE)
    with_nccl = trainer(*settings, "train.backend=nccl", port=port)
    alone = trainer(*settings)
    assert "not captured" not in with_nccl.out
    assert close(with_nccl, alone, 5e-3), [with_nccl.losses(), alone.losses()]


def test_too_little_memory_names_the_batch_to_try(trainer: Trainer) -> None:
    trained = trainer(
        "train.model=resnet152", "train.image.size=1024", "train.batch=500", "train.cuda_graph=never", code=1
    )
    assert "epoch 1, step 1: out of memory on cuda:0 with 500 samples per rank (train.batch): " in trained.out
    assert re.search(r"[\d.]+ GiB more requested, [\d.]+ [GM]iB of [\d.]+ GiB free", trained.out)
    assert "try: train: {batch: 250, accumulate: 2} (as many samples per step), or find what fits" in trained.out


def test_without_a_visible_gpu_the_reason_is_given(trainer: Trainer) -> None:
    refused = trainer(code=1, CUDA_VISIBLE_DEVICES="")
    assert "train.device: cuda: no GPU can be used: CUDA_VISIBLE_DEVICES is empty" in refused.out
    on_cpu = trainer("train.device=auto", "train.steps=1", CUDA_VISIBLE_DEVICES="")
    assert "training on the CPU: CUDA_VISIBLE_DEVICES is empty" in on_cpu.out
    wrong = trainer(code=1, CUDA_VISIBLE_DEVICES="7")
    assert "train.device: cuda: no GPU can be used" in wrong.out


def test_not_finite_loss_is_found_with_its_step(trainer: Trainer) -> None:
    trained = trainer("train.optimizer.lr=1000", "train.epochs=100", code=2)
    assert re.search(r"loss is (nan|inf) at epoch \d+, step \d+", trained.out)


def test_an_assertion_on_the_gpu_is_reported_with_its_step(trainer: Trainer, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Bad(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3 * 32 * 32, 10)
            self.table = torch.nn.Embedding(10, 10)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            index = torch.full((images.size(0),), 99, dtype=torch.long, device=images.device)
            return self.linear(images.flatten(1)) + self.table(index)

    torch.jit.script(Bad()).save(str(tmp_path / "bad.pt"))
    trained = trainer(
        "train.model=torchscript",
        f"train.file={tmp_path / 'bad.pt'}",
        "train.image.size=32",
        "train.classes=10",
        code=1,
    )
    assert "epoch 1, step 1 or one of the 2 before it: forward pass: CUDA error: device-side assert" in trained.out


def test_a_killed_rank_is_named_by_its_peer(trainer: Trainer, port: int) -> None:
    run = trainer.new_run()
    settings = ("train.batch=25", "train.epochs=1000", "timeouts.communication=20s", "timeouts.stopped=5s")
    first, _ = trainer.start(*settings, rank=0, world=2, port=port, run=run)
    second, _ = trainer.start(*settings, rank=1, world=2, port=port, run=run)
    wait_for_steps(run / "attempt/1/metrics-0001.csv", 5)
    second.send_signal(signal.SIGKILL)
    out, _ = first.communicate(timeout=60)
    second.communicate()
    assert first.returncode != 0
    assert "rank 1" in out


def wait_for_steps(file: Path, steps: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and file.read_text().count("\n") > steps:
            return
        time.sleep(0.1)
    raise AssertionError(f"{file}: fewer than {steps} steps within 60 s")


def test_find_batch_measures_the_memory_of_the_gpu(trainer: Trainer) -> None:
    run = trainer.new_run()
    command = [BIN / "stoker-train", "--find-batch", "--job", run / "job.yaml", "--set", "train.model=resnet18"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^batch +64 .* GB$", done.stdout, re.M), done.stdout
    assert "fastest: train: {batch: " in done.stdout


def test_steps_of_the_bench_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [BIN / "gpu-steps", "cifar-resnet20-128", "--steps", "5"], capture_output=True, text=True, check=True
    )
    assert '"mode": "graph"' in done.stdout
    assert '"mode": "nccl"' in done.stdout
