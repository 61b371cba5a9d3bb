"""stoker-train in a run and alone: records, stops and error messages."""

import json
import math
import os
import re
import signal
import time
from pathlib import Path

import pytest
import trained
from ports import free_port
from running import finish
from torch_ranks import rows


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def train_alone(stoker, *arguments, **options):
    process = stoker.start(*arguments, program=stoker.train_path, **options)
    out, err = process.communicate()
    return process.returncode, out, err


def test_a_run_writes_metrics_epochs_and_checkpoints(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 2, "1 epochs")
    done = stoker("run", job, code=0)
    assert "epoch 2/2   step 10/10   loss " in done.out
    assert "   validation: loss " in done.out
    run = trained.the_run(stoker.folder)
    attempt = run / "attempts/1"
    for rank in range(2):
        steps = rows(attempt / f"metrics-000{rank}.csv")
        assert [row["step"] for row in steps] == list(range(1, 21))
        assert [row["epoch"] for row in steps] == [0] * 10 + [1] * 10
        for row in steps:
            assert row["samples"] == 16
            assert 0 <= row["top1"] <= row["top5"] <= 1
            parts = sum(row[name] for name in row if name.endswith("_s") and name != "step_s")
            assert 0 < parts <= row["step_s"]
            assert row["communication_s"] > 0
    epochs = rows(attempt / "epochs.csv")
    assert [row["step"] for row in epochs] == [10, 20]
    for row in epochs:
        assert 0 <= row["val_top1"] <= row["val_top5"] <= 1
        assert row["val_loss"] > 0
        assert 0 < row["validation_s"] < row["seconds"]
    # Samples of ranks 0 and 1 together.
    both = [rows(attempt / f"metrics-000{rank}.csv") for rank in range(2)]
    mean = sum(row["loss"] for rank in both for row in rank[:10]) / 20
    assert math.isclose(mean, epochs[0]["train_loss"], rel_tol=1e-9)
    assert trained.steps(run) == [10, 20]
    assert [event["step"] for event in trained.events(attempt, "checkpoint_saved")] == [10, 20]


def test_memory_uses_huge_pages_unless_configured(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    for given, found in ((None, "glibc.malloc.hugetlb=1"), ("glibc.malloc.perturb=0", "glibc.malloc.perturb=0")):
        name = f"runs-{given}"
        words = ("run", job, "--set", "train.steps=1", "--set", f"record.directory={name}")
        stoker(*words, code=0, env={"GLIBC_TUNABLES": given})
        (run,) = (stoker.folder / name).iterdir()
        assert json.loads((run / "capsule/environment.json").read_text())["variables"]["GLIBC_TUNABLES"] == found


def test_validation_counts_each_sample_once_on_any_number_of_ranks(stoker, example_images):
    # 70 images: 24, 23 and 23 on three ranks. The metrics equal the metrics of one rank with all images.
    dataset = trained.small_dataset(stoker, example_images, train=12, test=7)
    # Saved right after the epoch's last step: a resume starts with the validation.
    job = trained.write_job(stoker.folder, dataset, 1, "4 steps")
    stoker("run", job, code=0)
    checkpoint = trained.the_run(stoker.folder) / "checkpoints/step-4"
    found = []
    for world in (1, 3):
        attempt = stoker.folder / f"attempt-{world}/1"
        attempt.mkdir(parents=True)
        port = free_port()
        ranks = [
            stoker.start(
                "--job",
                job,
                program=stoker.train_path,
                env={
                    "RANK": rank,
                    "WORLD_SIZE": world,
                    "MASTER_PORT": port,
                    "STOKER_ATTEMPT_DIR": attempt,
                    "STOKER_RESUME": checkpoint,
                },
            )
            for rank in range(world)
        ]
        for process in ranks:
            _, err = process.communicate()
            assert (process.returncode, err) == (0, "")
        (row,) = rows(attempt / "epochs.csv")
        found.append(row)
    one, three = found
    assert (three["val_top1"], three["val_top5"]) == (one["val_top1"], one["val_top5"])
    assert math.isclose(three["val_loss"], one["val_loss"], rel_tol=1e-5)
    assert math.isclose(one["val_top5"] * 70, round(one["val_top5"] * 70), abs_tol=1e-6)
    assert one["val_top5"] > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_stops_after_a_checkpoint_and_the_resume_is_exact(stoker, dataset, number):
    job = trained.write_job(stoker.folder, dataset, 3, more="validate_every: 0")
    stoker("run", job, code=0)
    undisturbed = trained.the_run(stoker.folder).rename(stoker.folder / "undisturbed")
    process = stoker.start("run", job)
    run = trained.wait_for_steps(stoker.folder, 3).parents[1]
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 75, out + err
    assert "stopped at epoch 1, step " in out
    (stopped,) = trained.steps(run)
    assert stopped < 10
    stoker("resume", "last", code=0)
    assert trained.tensors(run, 30) == trained.tensors(undisturbed, 30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_stops_after_a_checkpoint(stoker, dataset, number):
    job = trained.write_job(stoker.folder, dataset, 100, more="validate_every: 0")
    process = stoker.start("run", job)
    run = trained.wait_for_steps(stoker.folder, 3).parents[1]
    process.send_signal(number)
    code, err = finish(process)
    assert code == 75, err
    assert f"interrupted by {number.name}, stopped after a checkpoint" in err
    assert len(trained.steps(run)) == 1


def test_little_time_left_stops_after_a_checkpoint(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 100, more="validate_every: 0")
    done = stoker("run", job, "--set", "resources.time=8s")
    assert done.code == 75, done
    assert ": little time left" in done.out
    assert len(trained.steps(trained.the_run(stoker.folder))) == 1


def test_a_killed_rank_is_named_by_its_peers(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 100)
    process = stoker.start("run", job, "--set", "resources.ranks_per_node=3")
    attempt = trained.wait_for_steps(stoker.folder, 2)
    pids = {event["rank"]: event["pid"] for event in trained.events(attempt, "rank_started")}
    os.kill(pids[2], signal.SIGKILL)
    process.communicate()
    assert process.returncode == 137
    logs = "".join((attempt / f"rank-000{rank}.log").read_text() for rank in range(2))
    assert ": rank 2 left (" in logs


def test_damage_read_by_one_rank_is_reported_by_all(stoker, dataset):
    shard = dataset / "train-000000.tar"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    job = trained.write_job(stoker.folder, dataset, 1, "1 steps")
    done = stoker("run", job, code=1)
    message = re.search(r"train-000000\.tar: sample '\S+' \(jpg\): CRC-32C expected \w+, found \w+", done.err)[0]
    attempt = trained.the_run(stoker.folder) / "attempts/1"
    logs = {(attempt / f"rank-000{rank}.log").read_text().splitlines()[-1] for rank in range(2)}
    assert len(logs) == 2 and all(line.endswith(message) for line in logs)
    last = len(rows(attempt / "metrics-0000.csv"))
    assert last == 0 or f"last checkpoint: step {last}, valid" in done.err


def test_without_a_run_it_records_nothing(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    before = sorted(path.name for path in stoker.folder.iterdir())
    code, _, err = train_alone(stoker, "--job", job, "--set", "train.steps=2")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in stoker.folder.iterdir()) == before


def test_without_a_run_it_saves_to_the_configured_directory_and_resumes(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, more="validate_every: 0")
    arguments = ["--job", job, "--set", f"checkpoint.directory={stoker.folder}/saved"]
    assert train_alone(stoker, *arguments, "--set", "train.steps=2")[0] == 0
    saved = stoker.folder / "saved/step-2"
    assert saved.is_dir()
    code, out, _ = train_alone(stoker, *arguments, "--set", "train.steps=4", env={"STOKER_RESUME": saved})
    assert code == 0
    assert f"resumed from {saved}: epoch 1, step 2\n" in out
    assert (stoker.folder / "saved/step-4").is_dir()


@pytest.mark.needs("mount")
def test_a_full_disk_for_records_is_a_warning(stoker, dataset, tmpfs):
    disk = tmpfs("1M")
    job = trained.write_job(stoker.folder, dataset, 1, more="validate_every: 0")
    attempt = disk / "1"
    attempt.mkdir()
    room = os.statvfs(disk)
    # Seven pages are free: the files can be created, but 320 steps need more.
    (disk / "filler").write_bytes(bytes((room.f_bavail - 7) * room.f_bsize))
    code, out, err = train_alone(stoker, "--job", job, "--set", "train.batch=1", env={"STOKER_ATTEMPT_DIR": attempt})
    assert (code, "epoch 1/1" in out) == (0, True), err
    assert re.fullmatch(
        rf"rank 0: record: {re.escape(str(attempt))}/\S+: no space left on device; training continues, "
        r"but records are incomplete from step \d+ on\n",
        err,
    )


def test_usage_errors(stoker, tmp_path):
    hint = "\n  try: stoker-train --help\n"
    assert train_alone(stoker, "--jab", "x") == (
        2,
        "",
        f"stoker-train: '--jab': no such option; did you mean '--job'?{hint}",
    )
    assert train_alone(stoker, "--job") == (2, "", f"stoker-train: --job: a value is missing{hint}")
    assert train_alone(stoker) == (2, "", "--job: missing, and STOKER_JOB is not set\n")
    assert train_alone(stoker, env={"RANK": "3", "WORLD_SIZE": "2"}) == (2, "", "RANK: 3 is not below WORLD_SIZE 2\n")
    job = tmp_path / "job.yaml"
    job.write_text("name: x\nrun: echo\n")
    assert train_alone(stoker, "--job", job) == (2, "", f"{job}: has no 'train' section\n  try: stoker run {job}\n")
    code, out, _ = train_alone(stoker, "--help")
    assert code == 0
    assert out.startswith("stoker-train: one rank of the built-in trainer\n")
    assert train_alone(stoker, "--version")[1].startswith("stoker-train 0.")


def test_too_few_classes_are_rejected(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    assert train_alone(stoker, "--job", job, "--set", "train.classes=7") == (
        2,
        "",
        "train.classes: 7 is too small: the largest label of 'train' is 9\n",
    )


def labelled(stoker, name: str, labels: list[int | str]) -> Path:
    """A dataset of a few images with these labels."""
    folder = stoker.folder / name
    folder.mkdir()
    images = sorted((stoker.folder / "few/train").rglob("*.*"))
    rows = [f"{image},{label}\n" for image, label in zip(images, labels, strict=False)]
    (folder / "list.csv").write_text("path,label\n" + "".join(rows))
    stoker("data", "pack", folder / "list.csv", folder / "packed", code=0)
    return folder / "packed"


@pytest.mark.parametrize("label", [-1, 2_000_000_000])
def test_invalid_labels_are_rejected(stoker, dataset, label):
    folder = labelled(stoker, "labelled", [0, 1, 2, 3, label, 5, 6, 7])
    job = stoker.folder / "job.yaml"
    job.write_text(
        f"name: small\ntrain: {{model: cifar-resnet20, epochs: 1, batch: 4}}\ndata: {{train: {{source: {folder}}}}}\n"
    )
    text = (
        rf"1 of 8 samples of split 'all' have no class: the label of '\S+' is {label} "
        r"\(a class is a number from 0 to 999999\)\n  try: stoker data lint DATASET lists them; "
        r"label them or move them to a separate split\n"
    )
    code, _, err = train_alone(stoker, "--job", job)
    assert code == 2
    assert re.fullmatch("data.train: " + text, err)
    (finding,) = json.loads(stoker("check", job, "--json", code=1).out)["findings"]
    assert (finding["rule"], finding["level"]) == ("no-class", "job")


def test_validation_with_different_class_names_is_rejected(stoker, dataset, photos):
    stoker("data", "pack", photos, "pets", code=0)
    job = trained.write_job(stoker.folder, dataset, 1)
    words = ["--set", f"data.validation.source={stoker.folder}/pets", "--set", "data.validation.split=null"]
    code, _, err = train_alone(stoker, "--job", job, *words)
    assert code == 2
    assert re.fullmatch(
        r"data.validation: class 0 is '\S+', but in data.train it is 'airplane'\n"
        r"  try: pack both together, as splits of one dataset: stoker data pack --help\n",
        err,
    )


def test_a_last_step_with_one_image_for_batch_norm_is_rejected(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    # At 32 pixels the last stage of a ResNet-18 has size 1; 320 images are 11 batches of 29 and one more image.
    sets = ["train.model=resnet18", "train.batch=29", "train.image.size=32", "train.image.validation_resize=32"]
    code, _, err = train_alone(stoker, "--job", job, *(word for text in sets for word in ("--set", text)))
    assert code == 2
    assert err == (
        "train.batch: 29 leaves one image for the last step of an epoch (320 of 320 samples per rank), which batch norm "
        "cannot learn from\n  try: train.batch: 28\n"
    )
    # The last step of the epoch is the 12th, or with two batches a step the 6th.
    for accumulate, reached in ((1, 12), (2, 6)):
        for steps in (reached, reached - 1):
            more = [f"train.accumulate={accumulate}", f"train.steps={steps}", "train.validate_every=0"]
            words = [word for text in sets + more for word in ("--set", text)]
            code, out, err = train_alone(stoker, "--job", job, *words)
            assert code == (2 if steps == reached else 0), out + err


def freeze(dataset: Path, split: str) -> None:
    """Replaces the split by one on a hanging disk: opening a shard blocks for ever."""
    for shard in dataset.glob(f"{split}-*.tar"):
        shard.unlink()
        os.mkfifo(shard)


@pytest.mark.parametrize(("split", "place"), [("train", "step 1, phase data"), ("test", "step 2, phase validate")])
def test_hanging_data_is_named_by_the_loader(stoker, dataset, split, place):
    freeze(dataset, split)
    job = trained.write_job(stoker.folder, dataset, 1)
    settings = ["--set", "timeouts.data=2s", "--set", "timeouts.stall=1m", "--set", "train.batch=80"]
    started = time.monotonic()
    done = stoker("run", job, *settings)
    assert time.monotonic() - started < 100
    assert done.code == 1
    assert re.search(
        r"loader: no batch before the deadline: epoch 1, waiting for sample '[^']+' \(.*\) \(timeouts\.data: 2\.0 s\)$",
        done.err,
        re.M,
    )
    # Either rank may detect it first.
    assert re.search(rf"^rank [01] \(\S+\) exited at epoch 1 {place}: exit code 1$", done.err, re.M)


def test_hanging_data_ends_the_run_if_the_loader_waits_longer(stoker, dataset):
    freeze(dataset, "train")
    job = trained.write_job(stoker.folder, dataset, 1)
    settings = ["--set", "timeouts.data=1m", "--set", "timeouts.stall=4s"]
    done = stoker("run", job, *settings, code=1)
    assert "loader:" not in done.err
    assert re.search(r"^ranks 0, 1 were in ", done.err, re.M)
    assert " in open" in (trained.attempts(trained.the_run(stoker.folder))[0] / "rank-0000.log").read_text()
    assert re.search(
        r"^rank [01] \(\S+\) made no progress for [\d.]+ s at epoch 1 step 1, phase data, like all other ranks "
        r"\(timeouts\.stall\)$",
        done.err,
        re.M,
    )


def test_a_frozen_rank_among_three_is_named_by_the_run(stoker, dataset):
    # Its two peers wait inside the same exchange, and would end by themselves after twice the time.
    job = trained.write_job(stoker.folder, dataset, 100)
    process = stoker.start("run", job, "--set", "resources.ranks_per_node=3", "--set", "timeouts.stopped=7s")
    attempt = trained.wait_for_steps(stoker.folder, 2)
    pids = {event["rank"]: event["pid"] for event in trained.events(attempt, "rank_started")}
    os.kill(pids[2], signal.SIGSTOP)
    started = time.monotonic()
    code, err = finish(process)
    assert time.monotonic() - started < 100
    assert code == 1
    first, ended, others = err[1:4]
    place = r"at epoch \d+ step \d+, phase (data|forward|backward|optimizer)"
    assert re.fullmatch(
        rf"rank 2 \(\S+\) has been stopped by a signal \(state T\) for [\d.]+ s {place}; "
        r"the run ends after 7\.0 s \(timeouts\.stopped\)",
        first,
    )
    assert re.fullmatch(
        rf"rank 2 \(\S+\) was stopped by a signal \(state T\) for [\d.]+ s {place} \(timeouts\.stopped\)", ended
    )
    assert others.startswith("  ranks 0, 1 stopped; ")
    found = json.loads(stoker("explain", "last", "--json", code=0).out)["diagnosis"]
    assert (found["rule"], found["rank"], found["certainty"]) == ("rank-stopped", 2, "known")
    missing = [each["text"] for each in found["evidence"] if each["where"] == "flight recorder"]
    # It continues before the stop, and the collective completes: the record shows how long its peers waited.
    collective = r"[a-z-]+ \d+ of \w+ \[[\d, ]+\](?: from rank \d)?"
    late = rf"rank 2 \(pid \d+ on \S+\) reached {collective} \d\.\d+ s after rank [01]"
    assert re.fullmatch(rf"{late}|all 3 ranks were in {collective} for \d\.\d+ s", missing[0])


@pytest.mark.needs("namespaces")
def test_a_rank_is_not_mistaken_for_rank_0_that_it_waits_for(stoker, dataset):
    # Nothing listens, and the kernel has only two ports to give: TCP connects a socket on one of them to itself.
    alone = 'ip link set lo up; echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range; exec "$@"'
    job = trained.write_job(stoker.folder, dataset, 1)
    trainer = (stoker.train_path, "--job", job, "--set", "timeouts.start=1s")
    place = {"RANK": 1, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 40000}
    process = stoker.start("--net", "sh", "-c", alone, "sh", *trainer, program=Path("/usr/bin/unshare"), env=place)
    _, err = process.communicate()
    expected = "rank 1: rank 0 did not open 127.0.0.1:40000 within 1.0 s (last answer: Connection refused)\n"
    assert (process.returncode, err) == (1, expected)
