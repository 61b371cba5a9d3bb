"""Gradient exchange: keys of the job file, their effects, and the timeline."""

import json
from array import array
from itertools import pairwise
from pathlib import Path

import pytest
import trained


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def trained_with(stoker, job: Path, name: str, *settings: str) -> Path:
    stoker("run", job, *(word for text in settings for word in ("--set", text)), code=0)
    return trained.the_run(stoker.folder).rename(stoker.folder / name)


def values(run: Path, step: int, name: str, kind: str = "f") -> array:
    (data,) = [data for path, data in trained.tensors(run, step).items() if path.endswith(f"safetensors/{name}")]
    return array(kind, data)


def distance(one: array, other: array) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) / max(abs(a) for a in one)


def timeline(run: Path, rank: int) -> list[dict]:
    return json.loads((run / f"attempts/1/trace-000{rank}.json").read_text())


def exchanges_by_step(events: list[dict]) -> list[int]:
    """Number of gradient exchanges started in each step's backward pass."""
    backward = [event for event in events if event.get("name") == "backward"]
    began = [event["ts"] for event in events if event.get("cat") == "exchange" and event["ph"] == "b"]
    return [sum(phase["ts"] <= ts <= phase["ts"] + phase["dur"] for ts in began) for phase in backward]


def test_a_timeline_has_steps_phases_and_exchanges(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    run = trained_with(stoker, job, "traced", "record.trace=6", "train.bucket=256KiB")
    for rank in range(2):
        events = timeline(run, rank)
        steps = [event for event in events if event.get("cat") == "step"]
        assert [event["name"] for event in steps] == [f"step {n}" for n in range(1, 7)]
        for one, other in pairwise(steps):
            assert one["ts"] + one["dur"] <= other["ts"] + 1
        for step in steps:
            inside = [
                event["name"]
                for event in events
                if event.get("cat") == "phase" and step["ts"] <= event["ts"] < step["ts"] + step["dur"]
            ]
            assert inside[:4] == ["data", "forward", "backward", "optimizer"]
        begun = {event["id"]: event for event in events if event.get("cat") == "exchange" and event["ph"] == "b"}
        ended = {event["id"]: event for event in events if event.get("cat") == "exchange" and event["ph"] == "e"}
        assert begun.keys() >= ended.keys() and len(ended) >= 6
        assert all(event["ts"] >= begun[number]["ts"] for number, event in ended.items())
        assert {event["pid"] for event in events} == {rank}
    # Smaller buckets give more exchanges from the second step on, when buckets have been rebuilt.
    small = exchanges_by_step(timeline(run, 0))[2:]
    run = trained_with(stoker, job, "plain", "record.trace=6")
    large = exchanges_by_step(timeline(run, 0))[2:]
    assert max(large) < min(small)


def test_compressed_gradients_train_nearly_the_same_model(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "1 epochs")
    plain = trained_with(stoker, job, "plain")
    for kind in ("bf16", "fp16"):
        rounded = trained_with(stoker, job, kind, f"train.compress_gradients={kind}")
        found = distance(values(plain, 10, "fc.weight"), values(rounded, 10, "fc.weight"))
        assert 0 < found < 0.2, kind


def test_sync_batch_norm_matches_one_rank_with_the_whole_batch(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "1 epochs")
    # One step: rounding differences grow a hundredfold with each further step.
    common = ["train.steps=1", "train.image.crop=none", "train.image.flip=false"]
    one = trained_with(stoker, job, "one", *common, "train.batch=32", "resources.ranks_per_node=1")
    both = trained_with(stoker, job, "both", *common, "train.sync_batch_norm=true")
    apart = trained_with(stoker, job, "apart", *common)
    for name in ("bn1.running_mean", "layer1.0.bn1.running_mean", "layer3.2.bn2.running_var"):
        expected = values(one, 1, name)
        assert distance(expected, values(both, 1, name)) < 1e-5
        assert distance(expected, values(apart, 1, name)) > 1e-3


def test_float16_scales_the_loss_and_resumes_the_scale(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "2 steps")
    (stoker.folder / "job.yaml").write_text(job.read_text().replace("batch: 16", "batch: 8"))
    half = trained_with(stoker, job, "half", "train.precision=fp16", "train.steps=4")
    (scale,) = values(half, 4, "scaler.scale")
    (good,) = values(half, 4, "scaler.good_steps", "i")
    assert scale == 65536 / 2 ** (4 - good)  # every skipped step halves it and restarts the count
    assert all(abs(value) < 100 for value in values(half, 4, "fc.weight"))


def test_a_resume_may_change_the_precision(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "1 steps", "validate_every: 0")
    (stoker.folder / "job.yaml").write_text(job.read_text().replace("batch: 16", "batch: 8"))
    trained.stop_after(stoker, job, 2)
    done = stoker("resume", "last", "--set", "train.precision=fp16", "--set", "train.steps=12", code=0)
    assert "\ndifferences from the checkpoint: precision fp32 → fp16, loss scale reset\n" in done.out
    (scale,) = values(trained.the_run(stoker.folder), 12, "scaler.scale")
    assert 1 <= scale <= 65536


def test_settings_without_effect_on_one_rank_are_reported(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    alone = ["--set", "resources.ranks_per_node=1", "--set", "train.steps=1"]
    keys = ["--set", "train.compress_gradients=bf16", "--set", "train.sync_batch_norm=true"]
    done = stoker("run", job, *alone, *keys, code=0)
    assert "train.compress_gradients: no effect with one rank\n" in done.out
    assert "train.sync_batch_norm: no effect with one rank\n" in done.out


def test_a_resume_reports_changed_settings(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 3, more="validate_every: 0")
    trained.stop_after(stoker, job, 2)
    changes = ["train.optimizer.lr=0.01", "resources.ranks_per_node=1", "train.steps=30"]
    done = stoker("resume", "last", *(word for text in changes for word in ("--set", text)), code=0)
    assert "changed: train.optimizer.lr: 0.05 → 0.01 (--set train.optimizer.lr)\n" in done.err
    assert "changed: ranks: 2 → 1\n" in done.err
    assert "\ndifferences from the checkpoint: world size 2 → 1, lr 0.05 → 0.01\n" in done.out
    report = json.loads(stoker("report", "last", "--json", code=0).out)
    changed = report["runs"][0]["attempts"][1]["changes"]
    assert {"key": "train.optimizer.lr", "before": "0.05", "after": "0.01"} in changed
    text = stoker("report", "last", "--format", "text", code=0).out
    assert "changed settings (attempts/*/job.yaml)\n" in text
