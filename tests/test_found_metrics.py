"""Metrics of unchanged scripts: found in their output and in the files that they write for TensorBoard, W&B, MLflow and with
Lightning's CSV logger."""

import json
import re
import struct
import sys
import textwrap
import zlib
from pathlib import Path

import pytest
from crc import crc32c
from running import Job


def run(stoker, folder: Path, text: str, ranks: int = 1, more: str = "", **options) -> Job:
    (folder / "train.py").write_text(textwrap.dedent(text))
    job = Job(folder, f"{sys.executable} train.py", ranks=ranks, more=more)
    stoker("run", "job.yaml", code=0, **options)
    return job


def curves(stoker) -> dict[str, dict[int, float]]:
    """The points of the last run's metrics by step."""
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    return {each["name"]: dict(zip(each["step"], each["mean"], strict=True)) for each in report["metrics"]}


# As Hugging Face's Trainer prints them: bars on standard error, dicts on standard output.
TRAINER = r"""
import sys, time
for step in range(0, 101, 10):
    sys.stderr.write(f"\r{step:3}%|{'█' * (step // 10):10}| {step}/100 [00:01<00:01,  9.5it/s]")
    sys.stderr.flush()
    time.sleep(0.02)
    if step in (50, 100):
        print({"loss": 1 / step, "grad_norm": 1.5, "learning_rate": 5e-05, "epoch": step / 50}, flush=True)
        time.sleep(0.02)
print({"eval_loss": float("nan"), "epoch": 2.0})
print('{"level": "info", "port": 8080}')
"""


def test_dict_lines_have_the_step_of_the_progress_bar(stoker, tmp_path):
    job = run(stoker, tmp_path, TRAINER)
    found = curves(stoker)
    assert found["loss"] == {50: 0.02, 100: 0.01}
    assert found["epoch"] == {50: 1, 100: 2}
    assert found["eval_loss"] == {100: None}
    assert "port" not in found
    status = json.loads(stoker("status", "last", "--json", code=0).out)["runs"][0]
    assert (status["step"], status["metrics"]["loss"]["mean"]) == (100, 0.01)
    assert b"\r100%" in job.log(0), "the log is unchanged"
    assert (job.run_folder() / "attempts/1/points-0000-log.csv").exists()


KERAS = r"""
for epoch in (1, 2):
    print(f"Epoch {epoch}/2")
    print(f"10/10 - 2s - 15ms/step - loss: 0.{epoch} - val_accuracy: 9.{epoch}e-01", flush=True)
"""


def test_lines_of_all_ranks_are_combined(stoker, tmp_path):
    run(stoker, tmp_path, KERAS, ranks=2)
    assert curves(stoker) == {"loss": {10: 0.1, 20: 0.2}, "val_accuracy": {10: 0.91, 20: 0.92}}


OWN_FORMAT = r"""
for step in (100, 200):
    print(f"Epoch [1/5], Step [{step}/500], Loss: {step / 1000}", flush=True)
print({"loss": 7, "step": 1})
"""
REGEX = r"record: {metrics_from: {regex: 'Step \[(?P<step>\d+)/\d+\], Loss: (?P<loss>\S+)'}}" + "\n"


def test_an_expression_of_the_job_file_replaces_the_known_formats(stoker, tmp_path):
    run(stoker, tmp_path, OWN_FORMAT, more=REGEX)
    assert curves(stoker) == {"loss": {100: 0.1, 200: 0.2}}


def test_nothing_is_collected_on_request(stoker, tmp_path):
    job = run(stoker, tmp_path, OWN_FORMAT, more="record: {metrics_from: none}\n")
    assert curves(stoker) == {}
    assert not list(job.run_folder().glob("attempts/1/points-*"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{regex: 'loss (?P<loss>'}", "record.metrics_from.regex: missing ): loss (?P<loss> at 'loss (?P<loss>'"),
        (
            "{regex: 'loss (.*)'}",
            "record.metrics_from.regex: no named group for a metric, such as 'loss: (?P<loss>\\S+)'",
        ),
        ("everything", "record.metrics_from: unknown value 'everything' (one of: auto, none)"),
    ],
)
def test_a_bad_value_is_an_error_of_the_job_file(stoker, tmp_path, value, message):
    Job(tmp_path, "true", more=f"record: {{metrics_from: {value}}}\n")
    refused = stoker("run", "job.yaml", code=2).err
    assert re.fullmatch(r"job.yaml:\d+:\d+: (.*)", refused.splitlines()[0])[1] == message


def test_logged_values_take_precedence_over_the_same_lines(stoker, tmp_path):
    text = """
    import os
    path = os.environ["STOKER_ATTEMPT_DIR"] + "/points-0000-own.csv"
    open(path, "w").write(",1,0.25,loss\\n")
    print({"loss": 0.5, "lr": 0.1, "step": 9})
    """
    run(stoker, tmp_path, text)
    assert curves(stoker) == {"loss": {1: 0.25}, "lr": {9: 0.1}}


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def event(step: int, tag: str, value: float) -> bytes:
    """A scalar, byte by byte as TensorBoard's writer frames it."""
    name = tag.encode()
    entry = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(entry)]) + entry
    text = (
        b"\x09" + struct.pack("<d", 1763719411.5) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary
    )
    head = struct.pack("<Q", len(text))
    return head + masked(head) + text + masked(text)


WRITES_EVENTS = """
import os, sys, time
folder = os.environ["STOKER_TENSORBOARD_DIR"] if {in_folder} else "somewhere/deep/in/train"
os.makedirs(folder, exist_ok=True)
name = f"{{folder}}/events.out.tfevents.1763719411.{{os.uname().nodename.split('.')[0]}}.{{os.getpid()}}.0"
with open(name, "wb") as file:
    for line in open("events.txt"):
        file.write(bytes.fromhex(line)); file.flush()
    if {waits}:
        while not os.path.exists(os.environ["STOKER_ATTEMPT_DIR"] + "/points-0000-tensorboard.csv"): time.sleep(0.02)
        file.write(bytes.fromhex(open("late.txt").read()))
"""


def test_event_files_are_followed_while_they_are_open(stoker, tmp_path):
    (tmp_path / "events.txt").write_text("\n".join(event(step, "loss", step / 8).hex() for step in (1, 2)))
    (tmp_path / "late.txt").write_text((event(3, "loss", 0.5) + event(4, "loss", 0.5)[:-9]).hex())
    job = run(stoker, tmp_path, WRITES_EVENTS.format(in_folder=False, waits=True))
    assert curves(stoker) == {"train/loss": {1: 0.125, 2: 0.25, 3: 0.5}}
    assert job.log(0) == b""


def test_event_files_of_a_short_program_are_found_at_its_end(stoker, tmp_path):
    (tmp_path / "events.txt").write_text(event(7, "loss", 0.5).hex())
    job = run(stoker, tmp_path, WRITES_EVENTS.format(in_folder=True, waits=False))
    assert curves(stoker) == {"loss": {7: 0.5}}
    (file,) = (job.run_folder() / "tensorboard").iterdir()
    assert file.name.startswith("events.out.tfevents.")


def test_a_damaged_event_file_is_reported_once(stoker, tmp_path):
    damaged = bytearray(event(2, "loss", 0.5))
    damaged[20] ^= 1
    (tmp_path / "events.txt").write_text(
        f"{event(1, 'loss', 0.5).hex()}\n{bytes(damaged).hex()}\n{event(3, 'loss', 0.5).hex()}"
    )
    (tmp_path / "train.py").write_text(WRITES_EVENTS.format(in_folder=True, waits=False))
    job = Job(tmp_path, f"{sys.executable} train.py", ranks=1)
    stoker("run", "job.yaml", code=0)
    message = r"stoker: events\.out\.tfevents\.\S+: a record at byte 42 is damaged; its later metrics are not shown\n"
    assert re.fullmatch(message, job.log(0).decode())
    assert curves(stoker) == {"loss": {1: 0.5}}


def wandb_file(rows: list[dict]) -> bytes:
    """A .wandb file with the rows of wandb.log(), byte by byte as W&B frames it."""

    def part(number: int, data: bytes) -> bytes:
        assert len(data) < 128
        tag = number << 3 | 2
        return (bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])) + bytes([len(data)]) + data

    file = b":W&B\xe1\xbe\0"
    for row in rows:
        items = [part(1, part(1, key.encode()) + part(16, json.dumps(value).encode())) for key, value in row.items()]
        checked = b"\1" + part(2, b"".join(items))
        file += struct.pack("<IH", zlib.crc32(checked), len(checked) - 1) + checked
    return file


def test_wandb_files_of_the_run_are_read(stoker, tmp_path):
    rows = [{"_step": step, "loss": 1 / (step + 1), "note": "x"} for step in (0, 1, 3)]
    (tmp_path / "run.wandb").write_bytes(wandb_file(rows)[:-3])
    text = """
    import os, pathlib
    run = os.environ["WANDB_RUN_ID"]
    folder = pathlib.Path(os.environ["WANDB_DIR"], "wandb", f"offline-run-20261127_153346-{run}")
    folder.mkdir(parents=True)
    (folder / f"run-{run}.wandb").write_bytes(open("run.wandb", "rb").read())
    """
    run(stoker, tmp_path, text)
    assert curves(stoker) == {"loss": {0: 1, 1: 0.5}}


# The files of MLflow's file store, as its versions 2.22 and 3.17 write them.
MLFLOW = """
import json, os, pathlib, time
def run(number, name, values):
    folder = pathlib.Path(os.environ.get("STORE", "mlruns"), "0", f"{number:032x}")
    (folder / "metrics/val").mkdir(parents=True)
    (folder / "tags").mkdir()
    (folder / "meta.yaml").write_text(f"run_id: {number:032x}\\nstart_time: {time.time_ns() // 1000000 + number}\\n")
    tags = {"mlflow.runName": name} | json.loads(os.environ["MLFLOW_RUN_CONTEXT"])
    for tag, value in tags.items():
        (folder / "tags" / tag).write_text(value)
    for metric, lines in values.items():
        (folder / "metrics" / metric).write_text("".join(f"{time.time_ns() // 1000000} {line}\\n" for line in lines))
if os.environ["RANK"] == "0":
    run(1, "calm-deer", {"loss": ["0.5 1", "0.25 2 data"], "val/accuracy": ["nan 2"]})
    run(2, "shy-fox", {"loss": ["4.0 9"]})
    os.environ["MLFLOW_RUN_CONTEXT"] = '{"stoker.run": "of-another-job"}'
    run(3, "sly-owl", {"loss": ["8.0 1"]})
else:
    run(4, "wise-elk", {"loss": ["1.5 1"]})
"""


@pytest.mark.parametrize("uri", [None, "file:store"])
def test_runs_in_a_file_store_of_mlflow_are_read(stoker, tmp_path, uri):
    place = {"MLFLOW_TRACKING_URI": uri, "STORE": "store"} if uri else {"MLFLOW_TRACKING_URI": None}
    run(stoker, tmp_path, MLFLOW, ranks=2, env=place)
    assert curves(stoker) == {"loss": {1: 1.0, 2: 0.25}, "shy-fox/loss": {9: 4}, "val/accuracy": {2: None}}


LIGHTNING = r"""
import os
os.makedirs("lightning_logs/version_0"); os.makedirs("lightning_logs/version_1")
path = "lightning_logs/version_1/metrics.csv"
open(path, "w").write("epoch,step,train_loss\n0,9,0.5\n")
open(path, "w").write("epoch,step,train_loss,val_loss\n0,9,0.5,\n0,19,0.25,\n0,19,,0.75\n1,29,0.1")
"""


def test_metrics_of_lightnings_csv_logger_are_read(stoker, tmp_path):
    run(stoker, tmp_path, LIGHTNING)
    assert curves(stoker) == {"epoch": {9: 0, 19: 0}, "train_loss": {9: 0.5, 19: 0.25}, "val_loss": {19: 0.75}}
