"""Offline archives of Comet: each point in one archive, after kills, resumes and a full disk too. `comet upload` of them:
test_track_readers.py."""

import base64
import json
import random
import signal
import time
import zipfile
from pathlib import Path

import pytest
import run_folders

BEGIN = run_folders.BEGIN
# A PNG file of 3 x 2 grey pixels.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c6"
    "0000000e49444154789c63888a8a620062000878021d51effb740000000049454e44ae426082"
)


class Archive:
    """An archive as `comet upload` reads it."""

    def __init__(self, path: Path):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            self.files = {name: archive.read(name) for name in archive.namelist()}
        self.experiment = json.loads(self.files["experiment.json"])
        messages = [json.loads(line) for line in self.files["messages.json"].splitlines()]
        self.metrics = [each["payload"]["metric"] for each in messages if each["type"] == "metric_msg"]
        self.times = [each["payload"]["local_timestamp"] for each in messages if each["type"] == "metric_msg"]
        self.uploads = [each["payload"] for each in messages if each["type"] == "file_upload"]
        params = [each["payload"]["param"] for each in messages if each["type"] == "parameter_msg"]
        self.params = {each["paramName"]: each["paramValue"] for each in params}
        others = [each["payload"] for each in messages if each["type"] == "log_other"]
        self.others = {each["key"]: each["value"] for each in others}

    def values(self, name: str) -> list[tuple]:
        return [(each["step"], each["metricValue"]) for each in self.metrics if each["metricName"] == name]


def archives(folder: Path) -> list[Archive]:
    """In the order in which they are uploaded."""
    return [Archive(path) for path in sorted((folder / "comet").glob("*.zip"))]


def push(stoker, *arguments, **options):
    return stoker("track", "push", "last", "--to", "comet=my-project", *arguments, **options)


def points(first: int, last: int, rank: int = 0, attempt: int = 1) -> str:
    return "".join(f"{BEGIN + 100 * attempt + step},{step},{step / 8},loss\n" for step in range(first, last))


@pytest.fixture
def made(stoker) -> run_folders.RunFolder:
    """A failed run of two ranks."""
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy", command=["python", "train.py"])
    run.started(1, BEGIN)
    extra = f"{BEGIN},3,nan,odd\n{BEGIN},4,inf,odd\n{BEGIN},5,-inf,odd\n{BEGIN + 5},,7,best\n"
    (run.attempt(1) / "points-0000.csv").write_text(points(0, 20) + extra)
    (run.attempt(1) / "points-0001.csv").write_text(points(3, 4))
    run.system(1, BEGIN, BEGIN + 15)
    run.ended(1, BEGIN + 140, "failed", 1, reason="rank 0 exited with code 1")
    job = "name: toy\nrun: 'true'\nparams: {lr: 0.1, model: small, api_key: hunter2}\n"
    (run.path / "attempts/1/job.yaml").write_text(job)
    return run


def resume(run: run_folders.RunFolder, first: int, last: int, number: int = 2) -> None:
    run.started(number, BEGIN + 100 * number)
    (run.attempt(number) / "points-0000.csv").write_text(points(first, last, attempt=number))
    run.ended(number, BEGIN + 100 * number + 40, "done", 0)


def test_an_archive_has_points_params_and_the_end_of_the_run(stoker, made):
    push(stoker, code=0)
    (archive,) = archives(made.path / "track")
    assert archive.values("loss") == [(step, step / 8) for step in range(20)]
    assert archive.times[1] == int(BEGIN + 101) * 1000
    assert archive.values("rank1/loss") == [(3, 0.375)]
    assert archive.values("odd") == [(3, "NaN"), (4, "Infinity"), (5, "-Infinity")]
    assert archive.values("best") == [(None, 7)]
    assert {step for step, _ in archive.values("system/node0/host_memory_bytes")} == {None}
    assert archive.params == {"lr": 0.1, "model": "small", "api_key": "(hidden)", "batch": 64}
    expected = {"Name": made.path.name, "stoker.command": "python train.py", "stoker.state": "failed"}
    assert expected.items() <= archive.others.items()
    experiment = archive.experiment
    assert (experiment["project_name"], experiment["tags"]) == ("my-project", ["toy"])
    assert (experiment["start_time"], experiment["stop_time"]) == (int(BEGIN) * 1000, int(BEGIN + 140) * 1000)
    assert experiment["resume_strategy"] == "create"
    assert experiment["customer_error_message"] == "rank 0 exited with code 1"
    key = experiment["offline_id"]
    assert len(key) == 40
    assert key.isalnum()
    (file,) = (made.path / "track/comet").iterdir()
    assert file.name == f"{key}-001.zip"
    assert b"hunter2" not in file.read_bytes()


def test_a_resumed_run_continues_the_experiment_in_a_further_archive(stoker, made):
    push(stoker, code=0)
    resume(made, 18, 30)
    push(stoker, code=0)
    first, second = archives(made.path / "track")
    assert second.values("loss") == [(step, step / 8) for step in range(18, 30)]
    assert second.experiment["offline_id"] == first.experiment["offline_id"]
    assert second.experiment["resume_strategy"] == "get"
    assert second.experiment["customer_error_reported"] is False
    assert second.others["stoker.state"] == "done"
    # What was uploaded may be removed.
    for file in (made.path / "track/comet").iterdir():
        file.unlink()
    assert push(stoker, code=0).out.startswith("comet: 0 points sent, ")
    assert list((made.path / "track/comet").iterdir()) == []


def test_each_push_beside_a_run_makes_an_archive_of_the_new_points(stoker):
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy")
    run.started(1, BEGIN)
    table = run.attempt(1) / "points-0000.csv"
    for first in (0, 10, 20):
        with table.open("a") as file:
            file.write(points(first, first + 10))
        push(stoker, code=0)
    push(stoker, code=0)
    found = [[step for step, _ in archive.values("loss")] for archive in archives(run.path / "track")]
    assert found == [list(range(10)), list(range(10, 20)), list(range(20, 30))]


def test_images_and_histograms_are_files_of_the_archive(stoker, made):
    image = {"base64": base64.b64encode(PICTURE).decode()}
    lines = [{"time": BEGIN, "step": 4, "name": "pictures", "image": image} for _ in range(2)]
    histogram = {"lowest": -1, "highest": 1, "sum": 0, "sum_squares": 2, "counts": [1, 2, 1, 0], "not_finite": 3}
    lines += [{"time": BEGIN, "step": 5, "name": "fc/weight", "histogram": histogram}]
    (made.attempt(1) / "media-0001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    push(stoker, code=0)
    (archive,) = archives(made.path / "track")
    *images, weights = archive.uploads
    assert [each["upload_type"] for each in images] == 2 * ["visualization"]
    assert {each["additional_params"]["figName"] for each in images} == {"rank1/pictures"}
    assert [archive.files[each["file_path"]] for each in images] == 2 * [PICTURE]
    assert len({each["file_path"] for each in images}) == 2, "`comet upload` removes a file that it has sent"
    assert (weights["upload_type"], weights["additional_params"]["fileName"]) == ("histogram3d", "rank1/fc/weight")
    # The bins of comet_ml of the middles -0.75, -0.25 and 0.25.
    assert json.loads(archive.files[weights["file_path"]])["index_values"] == [[487, 1], [498, 2], [1051, 1]]
    assert archive.values("rank1/fc/weight/not_finite") == [(5, 3)]


def test_a_killed_push_continues_exactly(stoker):
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy")
    run.started(1, BEGIN)
    for rank in range(3):
        (run.attempt(1) / f"points-{rank:04}.csv").write_text(points(0, 40_000))
    run.ended(1, BEGIN + 140, "done", 0)
    random.seed(2)
    for _ in range(6):
        process = stoker.start("track", "push", "last", "--to", "comet=my-project")
        time.sleep(0.02 + random.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    push(stoker, code=0)
    found = archives(run.path / "track")
    for name in ("loss", "rank1/loss", "rank2/loss"):
        assert [step for archive in found for step, _ in archive.values(name)] == list(range(40_000))
    assert [path.suffix for path in (run.path / "track/comet").iterdir()] == [".zip"] * len(found)


def test_a_folder_that_was_removed_is_written_again(stoker, made):
    process = stoker.start("track", "push", "last", "--to", "comet=my-project", "--follow")
    process.communicate()
    folder = made.path / "track"
    state = json.loads((folder / "comet.json").read_text())
    # As a kill before the end of the first archive leaves it, and without its folder.
    state["values"]["is_open"] = "yes"
    (folder / "comet.json").write_text(json.dumps(state))
    push(stoker, code=0)
    (archive,) = archives(folder)
    assert archive.values("loss") == [(step, step / 8) for step in range(20)]


def test_what_a_killed_process_was_writing_is_not_in_the_archive(stoker, made):
    stop = stoker.start("track", "push", "last", "--to", "comet=my-project", "--follow")
    stop.communicate()
    folder = made.path / "track"
    (done,) = (folder / "comet").iterdir()
    state = json.loads((folder / "comet.json").read_text())
    # As a kill between the archive and the state leaves it.
    opened = done.with_suffix("")
    with zipfile.ZipFile(done) as archive:
        archive.extractall(opened)
    (opened / "messages.json").write_bytes((opened / "messages.json").read_bytes()[: int(state["values"]["bytes"])])
    (opened / "image-000000009.png.k2x9.tmp").write_bytes(b"half")
    state["values"]["is_open"] = "yes"
    (folder / "comet.json").write_text(json.dumps(state))
    before = done.read_bytes()
    push(stoker, code=0)
    assert done.read_bytes() == before
    assert list((folder / "comet").iterdir()) == [done]


@pytest.mark.needs("mount")
def test_a_full_disk_loses_nothing(stoker, tmpfs):
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy")
    run.started(1, BEGIN)
    (run.attempt(1) / "points-0000.csv").write_text(points(0, 3000))
    run.ended(1, BEGIN + 140, "done", 0)
    disk = tmpfs("2M")
    filler = disk / "filler"
    filler.write_bytes(bytes(1_500_000))
    process = stoker.start("track", "push", "last", "--to", "comet", "--folder", disk, "--follow")
    line = process.stderr.readline()
    assert line.startswith("comet: ")
    assert "no space left on device; the points wait in the run folder" in line
    filler.unlink()
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "comet: 3 000 points sent, 3 000 in all\n"), err
    (archive,) = archives(disk)
    assert [step for step, _ in archive.values("loss")] == list(range(3000))
    assert archive.experiment["project_name"] == "toy"
