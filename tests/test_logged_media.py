"""Images and histograms that programs log: stoker.log_image and stoker.log_histogram in scripts that run and die, lines of a
shell, and what report and trackers show of them. Other readers of the trackers' files: test_track_readers.py."""

import base64
import csv
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import browser
import pytest
import run_folders
import tracker_files
from conftest import MODULE
from fake_mlflow import FakeMlflow
from running import Job, python, wait_for

WITH_MODULE = {"PYTHONPATH": str(MODULE)}
BEGIN = run_folders.BEGIN


def png(width: int = 3, height: int = 2, grey: int = 90) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes([grey]) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def image_line(step: int, name: str = "samples", file: bytes | None = None, time: float = BEGIN) -> str:
    image = {"base64": base64.b64encode(file or png()).decode()}
    return json.dumps({"time": time, "step": step, "name": name, "image": image}) + "\n"


def histogram_line(step: int, counts: list[int], name: str = "fc/weight", **changes) -> str:
    histogram = {"lowest": -1.0, "highest": 3.0, "sum": 8.0, "sum_squares": 20.0, "counts": counts} | changes
    return json.dumps({"time": BEGIN, "step": step, "name": name, "histogram": histogram}) + "\n"


@pytest.fixture
def made(stoker) -> run_folders.RunFolder:
    """An ended run with images and histograms of two ranks and two attempts."""
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy")
    run.started(1, BEGIN)
    images = "".join(image_line(step, file=png(grey=step)) for step in range(10))
    (run.attempt(1) / "media-0000.jsonl").write_text(images + histogram_line(0, [4, 3, 2, 1]))
    (run.attempt(1) / "media-0001.jsonl").write_text(image_line(3, "a/../b, c", png(5, 5)))
    run.ended(1, BEGIN + 40, "failed", 1)
    run.started(2, BEGIN + 100)
    later = image_line(9, file=png(grey=200)) + histogram_line(5, [1, 0, 0, 3], not_finite=7)
    (run.attempt(2) / "media-0000.jsonl").write_text(later)
    run.ended(2, BEGIN + 140, "done", 0)
    return run


def records(folder: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(folder.glob("media-*.jsonl")) for line in file.read_text().splitlines()]


def in_process(folder: Path, text: str) -> list[dict]:
    environment = {**os.environ, "STOKER_ATTEMPT_DIR": str(folder), "RANK": "0", **WITH_MODULE}
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)
    return records(folder)


KINDS = """
import array, numpy, stoker
stoker.log({"loss": 1}, step=4)
stoker.log_histogram("list", [[1, 2], [3, float("nan")]], bins=2)
stoker.log_histogram("float32", numpy.arange(6, dtype="float32").reshape(2, 3)[:, ::2], step=7)
stoker.log_histogram("int", numpy.arange(4))
stoker.log_histogram("half", numpy.ones(3, dtype="float16"))
stoker.log_histogram("array", array.array("d", [1.0, 5.0]))
stoker.log_histogram("big-endian", numpy.array([1, 2, 2], dtype=">i4"), bins=2)
stoker.log_histogram("nan", numpy.full(3, numpy.nan))
try:
    import torch
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).T.bfloat16())
    stoker.log_histogram("torch", weight, bins=3)
    stoker.log_image("torch", torch.ones(3, 4, 5).half().requires_grad_())
except ImportError:
    pass
"""


def test_values_of_all_kinds_are_counted(tmp_path):
    found = {record["name"]: record for record in in_process(tmp_path, KINDS) if "histogram" in record}
    histograms = {name: record["histogram"] for name, record in found.items()}
    assert histograms["list"] == {
        "lowest": 1.0, "highest": 3.0, "sum": 6.0, "sum_squares": 14.0, "not_finite": 1, "counts": [1, 2],
    }  # fmt: skip
    assert [found[name]["step"] for name in ("list", "float32", "int")] == [4, 7, 4]
    assert histograms["float32"]["sum"] == 0 + 2 + 3 + 5
    assert sum(histograms["int"]["counts"]) == 4
    assert len(histograms["int"]["counts"]) == 64
    assert histograms["half"]["counts"] == [3]
    assert histograms["array"]["highest"] == 5
    assert histograms["big-endian"]["counts"] == [1, 2]
    assert (histograms["nan"]["not_finite"], histograms["nan"]["counts"]) == (3, [0])
    if "torch" in found:
        assert histograms["torch"]["counts"] == [2, 2, 2]


PICTURES = """
import numpy, stoker
from pathlib import Path
height, width = 4, 6
grey = numpy.arange(24, dtype="uint8").reshape(height, width)
stoker.log_image("grey", grey, step=1)
stoker.log_image("list", grey.tolist(), step=1)
stoker.log_image("float", grey / 255.0, step=1)
stoker.log_image("float list", (grey / 255).tolist(), step=1)
stoker.log_image("view", numpy.arange(96, dtype="uint8").reshape(8, 12)[::2, ::2], step=1)
colour = numpy.stack([grey, grey + 1, grey + 2], axis=-1)
stoker.log_image("colour", colour, step=1)
stoker.log_image("planes", numpy.moveaxis(colour, -1, 0), step=1)
stoker.log_image("mask", grey > 5, step=1)
stoker.log_image("beyond", numpy.array([[-1.0, 2.0, float("nan")]]), step=1)
stoker.log_image("file", Path("{file}").read_bytes(), step=1)
from PIL import Image
stoker.log_image("pillow", Image.fromarray(colour), step=1)
Image.fromarray(colour).save("{file}.jpg")
stoker.log_image("jpeg", Path("{file}.jpg").read_bytes(), step=1)
"""


def test_pictures_of_all_kinds_keep_their_pixels(tmp_path):
    numpy = pytest.importorskip("numpy")
    from PIL import Image

    (tmp_path / "picture").write_bytes(png())
    found = {}
    for record in in_process(tmp_path, PICTURES.replace("{file}", str(tmp_path / "picture"))):
        assert (record["step"], record["image"]["type"]) == (1, "jpeg" if record["name"] == "jpeg" else "png")
        found[record["name"]] = numpy.asarray(Image.open(io.BytesIO(base64.b64decode(record["image"]["base64"]))))
    grey = numpy.arange(24, dtype="uint8").reshape(4, 6)
    for name in ("grey", "list", "float", "float list"):
        assert (found[name] == grey).all(), name
    assert (found["view"] == numpy.arange(96).reshape(8, 12)[::2, ::2]).all()
    colour = numpy.stack([grey, grey + 1, grey + 2], axis=-1)
    for name in ("colour", "planes", "pillow"):
        assert (found[name] == colour).all(), name
    assert (found["mask"] == 255 * (grey > 5)).all()
    assert found["beyond"].tolist() == [[0, 255, 0]]
    assert found["file"].shape == (2, 3)
    assert found["jpeg"].shape == (4, 6, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("log_histogram('w', [])", "histogram 'w': there are no values"),
        ("log_histogram('w', [1], bins=513)", "histogram 'w': bins is 513, must be from 1 to 512"),
        ("log_histogram('w', [1], bins=0)", "histogram 'w': bins is 0, must be from 1 to 512"),
        ("log_histogram('w', [1], bins=2.5)", "stoker.log_histogram: bins=2.5 is not an int, but float"),
        ("log_histogram('w', ['x'])", "stoker.log_histogram: 'w' is not a number, but str"),
        ("log_histogram('w', 5)", "stoker.log_histogram: 'w' is not an array of numbers, but int"),
        ("log_histogram('w', None)", "stoker.log_histogram: 'w' is not an array of numbers, but NoneType"),
        ("log_histogram('w', {'a': 1})", "stoker.log_histogram: 'w' is not an array of numbers, but dict"),
        ("log_histogram('w', numpy.ones(2) * 1j)", "stoker.log_histogram: 'w' is complex\n  try: abs(w)"),
        ("log_histogram('', [1])", "metric '': a name is required"),
        ("log_histogram(3, [1])", "stoker.log_histogram: the name 3 is not a str, but int"),
        ("log_histogram('w', [1], step=-1)", "stoker.log_histogram: step=-1: must be from 0 to 2**63 - 1"),
        ("log_image('p', b'GIF89a')", "image 'p': its bytes are neither a PNG nor a JPEG file"),
        ("log_image('p', [])", "stoker.log_image: 'p' has the shape (0,), expected rows of pixels"),
        ("log_image('p', [1, 2])", "stoker.log_image: 'p' has the shape (2,), expected rows of pixels"),
        ("log_image('p', [[1, 2], [3]])", "stoker.log_image: 'p' has rows of different lengths"),
        ("log_image('p', [[1, 256]])", "stoker.log_image: 'p' has whole numbers outside of 0 to 255"),
        ("log_image('p', None)", "stoker.log_image: 'p' is not an image, but NoneType"),
        (
            "log_image('p', 'a.png')",
            "stoker.log_image: 'p' is a path, expected pixels or the bytes of a file\n"
            "  try: stoker.log_image('p', pathlib.Path('a.png').read_bytes())",
        ),
        (
            "log_image('p', numpy.zeros((2, 2), dtype='int64'))",
            "stoker.log_image: 'p' has pixels of int64, expected uint8, bool or floats from 0 to 1\n"
            "  try: p.clip(0, 255).astype('uint8')",
        ),
        (
            "log_image('p', numpy.zeros((2, 2, 7)))",
            "image 'p': its shape must be (height, width), (height, width, channels) or (channels, height, width), "
            "with 1, 3 or 4 channels",
        ),
        (
            "log_image('p', numpy.zeros((1, 9000)))",
            "image 'p': has 9000 x 1 pixels, at most 8192 on a side are recorded\n  try: log a smaller image",
        ),
        (
            "log_image('p', numpy.random.default_rng(1).integers(0, 256, (1300, 1300, 3), dtype='uint8'))",
            "image 'p': has 5...",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused_with_its_name(call, message, monkeypatch):
    import numpy
    import stoker

    monkeypatch.setattr("stoker.metrics._is_open", True)
    with pytest.raises(stoker.InvalidError) as error:
        eval(f"stoker.{call}", {"stoker": stoker, "numpy": numpy})
    if message.endswith("..."):
        assert str(error.value).startswith(message.removesuffix("..."))
    else:
        assert str(error.value) == message


ENDLESS = """
import os, stoker, time
noise = os.urandom(120_000)
rows = memoryview(noise).cast("B", (300, 400))
step = 0
while True:
    step += 1
    stoker.log_image("noise", rows, step=step)
    stoker.log_histogram("weights", [step, step + 1], step=step)
    time.sleep(0.01)
"""


def test_a_kill_loses_no_written_image_and_the_report_has_them(stoker, tmp_path):
    python(tmp_path, "train.py", ENDLESS)
    made = Job(tmp_path, f"{sys.executable} train.py")
    process = stoker.start("run", "job.yaml", env=WITH_MODULE)
    file = wait_for(lambda: next(iter(tmp_path.glob("runs/*/attempts/1/media-0000.jsonl")), None))
    wait_for(lambda: file.read_text().count("\n") > 9)
    for pid in made.running("train.py"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()
    lines = file.read_text().split("\n")
    steps = [json.loads(line)["step"] for line in lines[:-1]]
    assert steps == sorted(steps)
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    (images,), (histograms,) = report["images"], report["histograms"]
    assert images["recorded"] == sum("image" in json.loads(line) for line in lines[:-1])
    assert histograms["recorded"] == len(steps) - images["recorded"]
    assert report["notes"] == []


def test_a_shell_writes_the_same_format(stoker, tmp_path):
    text = (Path(__file__).parents[1] / "docs/formats/media.md").read_text()
    command = re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "field.png").write_bytes(png())
    (tmp_path / "write.sh").write_text(f"step=12\n{command}")
    Job(tmp_path, "bash write.sh")
    stoker("run", "job.yaml", code=0)
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    assert report["images"] == [{"name": "field", "rank": 0, "recorded": 1, "first_step": 12, "last_step": 12}]


def test_a_report_joins_attempts_and_shows_some_images(stoker, made):
    stoker("report", "last", code=0)
    page = (made.path / "report.html").read_text()
    shown = re.findall(
        r'<img class="magnified" alt="samples, step (\d+)" width="3" height="2" src="data:image/png;base64,(.+?)">',
        page,
    )
    assert [int(step) for step, _ in shown] == [0, 3, 6, 9]
    assert [base64.b64decode(data) for _, data in shown] == [png(grey=grey) for grey in (0, 3, 6, 200)]
    assert "4 of 10 images, rank 0" in page
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    assert [(image["name"], image["rank"]) for image in report["images"]] == [("a/../b, c", 1), ("samples", 0)]
    (histogram,) = report["histograms"]
    assert (histogram["step"], histogram["attempt"], histogram["not_finite"]) == ([0, 5], [1, 2], [0, 7])
    assert histogram["last"] == {"lowest": -1.0, "highest": 3.0, "counts": [1, 0, 0, 3]}
    assert histogram["median"][0] == pytest.approx(-1 + 1 + 1 / 3)
    text = stoker("report", "last", "--format", "text", code=0).out
    assert re.search(r"samples +10 +0 +9 +0\n", text)
    assert re.search(r"fc/weight +2 +5 +4 +7 ", text)


def test_a_resume_replaces_what_followed_its_checkpoint(stoker):
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy")
    run.started(1, BEGIN)
    (run.attempt(1) / "media-0000.jsonl").write_text("".join(image_line(step) for step in range(10)))
    run.started(2, BEGIN + 100, resume="step-4")
    (run.attempt(2) / "media-0000.jsonl").write_text(histogram_line(6, [1]))
    run.ended(2, BEGIN + 140, "done", 0)
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    assert report["images"][0]["last_step"] == 4


def test_damaged_lines_are_counted_and_hostile_names_are_text(stoker, made):
    with (made.attempt(2) / "media-0000.jsonl").open("a") as file:
        file.write(image_line(11).replace('"samples"', '"<script>alert(1)</script>\\"><b>"'))
        file.write(image_line(12)[:60] + "\n" + image_line(13)[:50])
    stoker("report", "last", code=0)
    page = (made.path / "report.html").read_text()
    assert "attempts/2/media-0000.jsonl: 1 damaged line skipped" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;&lt;b&gt;, step 11" in page


SEEN = """
wide: d.documentElement.scrollWidth,
pictures: all('.pictures img').map(e => [e.complete && e.naturalWidth, r(e).width, r(e).right]),
labels: all('.pictures div').map(e => r(e.querySelector('p')).top - r(e.querySelector('img')).bottom),
bars: all('svg.counts rect').length,
range: all('p.range').map(e => r(e).top - r(e.previousElementSibling).bottom),
paper: w.getComputedStyle(d.body).backgroundColor,
bar: w.getComputedStyle(d.querySelector('svg.counts rect')).fill
"""


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("width", "theme"), browser.LOOKS)
def test_in_a_browser_pictures_are_loaded_and_labels_are_beside_them(stoker, made, width, theme):
    with (made.attempt(2) / "media-0000.jsonl").open("a") as file:
        file.write(image_line(1, "large", png(1600, 700)))
    stoker("report", "last", code=0)
    browser.assert_legible(made.path / "report.html", width, theme)
    seen = browser.look(made.path / "report.html", SEEN, width=width, theme=theme)
    assert seen["wide"] == width
    assert sorted(loaded for loaded, _, _ in seen["pictures"]) == [3, 3, 3, 3, 5, 1600]
    assert max(right for _, _, right in seen["pictures"]) <= width
    assert min(shown for _, shown, _ in seen["pictures"]) == 128
    assert min(seen["labels"]) >= 0
    assert min(seen["range"]) >= 0
    assert seen["bars"] == 2
    assert seen["paper"] == ("rgb(23, 24, 26)" if theme == "dark" else "rgb(253, 253, 251)")
    assert seen["bar"] == ("rgb(120, 174, 240)" if theme == "dark" else "rgb(31, 95, 168)")


def push(stoker, *arguments, **options):
    return stoker("track", "push", "last", *arguments, **options)


def test_a_table_names_the_files_of_images(stoker, made):
    done = push(stoker, "--to", "csv", code=0)
    assert done.out == "csv: 14 points sent, 14 in all\n"
    folder = made.path / "track"
    rows = list(csv.DictReader((folder / "points.csv").open()))
    images = {(row["attempt"], row["rank"], row["step"], row["metric"]): row for row in rows if row["file"]}
    assert len(images) == 12
    assert images["1", "0", "9", "samples"]["file"] == "images/samples/step-000000009.png"
    assert images["2", "0", "9", "samples"]["file"] == "images/samples/step-000000009-attempt2.png"
    assert all(row["value"] == "" for row in images.values())
    assert (folder / images["2", "0", "9", "samples"]["file"]).read_bytes() == png(grey=200)
    odd = folder / images["1", "1", "3", "a/../b, c"]["file"]
    assert odd.read_bytes() == png(5, 5)
    assert (folder / "images").resolve() in odd.resolve().parents
    numbers = {row["metric"]: row["value"] for row in rows if row["attempt"] == "2" and not row["file"]}
    assert numbers == {
        "fc/weight/count": "4",
        "fc/weight/not_finite": "7",
        "fc/weight/mean": "2",
        "fc/weight/lowest": "-1",
        "fc/weight/highest": "3",
    }
    before = (folder / "points.csv").read_bytes()
    with (made.attempt(2) / "media-0000.jsonl").open("a") as file:
        file.write(image_line(10) + image_line(11)[:30])
    assert push(stoker, "--to", "csv", code=0).out == "csv: 1 point sent, 15 in all\n"
    added = (folder / "points.csv").read_bytes().removeprefix(before).decode()
    assert added == f"2,0,{BEGIN:.6f},10,,samples,images/samples/step-000000010-attempt2.png\n"


def test_files_of_tensorboard_and_wandb_have_images_and_histograms(stoker, made):
    push(stoker, "--to", "tensorboard", "--to", "wandb=mine", code=0)
    (events,) = (made.path / "track/tensorboard").iterdir()
    values = {}
    for record in tracker_files.event_records(events):
        event = dict(tracker_files.fields(record))
        for _, value in tracker_files.fields(event.get(5, b"")):
            parts = dict(tracker_files.fields(value))
            values[parts[1].decode(), event.get(2, 0)] = parts
    image = dict(tracker_files.fields(values["samples", 9][4]))
    assert (image[1], image[2], image[4]) == (2, 3, png(grey=200))
    histogram = dict(tracker_files.fields(values["fc/weight", 0][5]))
    assert [histogram[number] for number in range(1, 6)] == [-1, 3, 10, 8, 20]
    assert struct.unpack("<4d", histogram[6]) == (0, 1, 2, 3)
    assert struct.unpack("<4d", histogram[7]) == (4, 3, 2, 1)

    (offline,) = (made.path / "track/wandb").glob("*/*.wandb")
    rows = tracker_files.wandb_rows(offline)
    assert {"_type": "histogram", "values": [4, 3, 2, 1], "bins": [-1, 0, 1, 2, 3]} in [
        row.get("fc/weight") for row in rows
    ]
    sent = [dict(tracker_files.fields(dict(tracker_files.fields(message))[1]))[1].decode()
            for kind, message in tracker_files.wandb_records(offline) if kind == 6]  # fmt: skip
    named = [row["samples"]["path"] for row in rows if "samples" in row]
    assert set(named) < set(sent)
    assert len(sent) == 12
    assert (offline.parent / "files" / named[-1]).read_bytes() == png(grey=200)
    assert all((offline.parent / "files" / path).exists() for path in sent)
    own_steps = [row["_step"] for row in rows]
    assert own_steps == sorted(set(own_steps)), "W&B drops steps that go back"


@pytest.mark.parametrize("fault", [None, 503, "close"])
def test_mlflow_gets_images_as_artifacts_once(stoker, made, fault):
    with FakeMlflow() as server:
        if fault:
            server.fail("runs/log-batch", fault)
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        files = {name.split("artifacts/", 1)[1]: data for name, data in server.files.items() if "images/" in name}
        assert len(files) == 12
        assert files["images/samples/step-000000009-attempt2.png"] == png(grey=200)
        assert server.values("fc/weight/mean") == [(0, 0.8), (5, 2)]
        assert server.values("fc/weight/count") == [(0, 10), (5, 4)]
        assert server.repeated() == []


@pytest.mark.needs("mount")
def test_a_full_disk_of_a_tracker_loses_no_image(stoker, made, tmpfs):
    folder = tmpfs("600k")
    files = [png(300, 300, grey) for grey in range(30)]
    large = "".join(image_line(step, "large", file) for step, file in enumerate(files))
    (made.attempt(2) / "media-0001.jsonl").write_text(large)
    filler = folder / "filler"
    filler.write_bytes(bytes(550_000))
    done = push(stoker, "--to", "csv", "--folder", folder, code=1)
    assert "no space" in done.out + done.err
    filler.unlink()
    assert push(stoker, "--to", "csv", "--folder", folder, code=0).out.endswith(" 44 in all\n")
    for step, file in enumerate(files):
        path = folder / f"images/rank1/large/step-{step:09}-attempt2.png"
        assert path.read_bytes() == file


def test_the_report_of_an_array_shows_the_media_of_its_tasks_side_by_side(stoker, tmp_path):
    run = run_folders.RunFolder.create(tmp_path / "runs", "sweep")
    run.started(1, BEGIN)
    run.ended(1, BEGIN + 40, "done", 0)
    rows = [{"values": {"lr": f"0.{task}"}, "set": [f"params.lr=0.{task}"]} for task in (1, 2, 3)]
    array = {
        "format": "stoker-array",
        "version": 1,
        "job_file": "sweep.yaml",
        "folder": "/p",
        "current_directory": "/p",
    }
    array |= {"environment": [], "set": [], "bundle": 1, "chosen": [1, 2, 3], "tasks": rows, "text": "name: sweep\n"}
    (run.attempt(1) / "array.json").write_text(json.dumps(array))
    # Tasks 1 and 2 have their files in the array's attempt, task 3 has a run.
    for task in (1, 2):
        images = "".join(image_line(step, file=png(grey=10 * task + step)) for step in (0, 7))
        (run.attempt(1) / f"media-{task:04}.jsonl").write_text(images + histogram_line(5, [task, 0, 2]))
    own = run_folders.RunFolder.create(run.path / "tasks")
    own.started(1, BEGIN)
    own.ended(1, BEGIN + 40, "done", 0)
    (own.attempt(1) / "media-0000.jsonl").write_text(image_line(9, file=png(grey=99)) + image_line(1, "<script>"))
    for task in (1, 2, 3):
        lines = [{"kind": "task_started", "attempt": 1, "host": "n1", "run": own.path.name if task == 3 else ""}]
        lines += [{"kind": "task_ended", "attempt": 1, "outcome": "done", "exit_code": 0, "reason": ""}]
        records = "".join(json.dumps({"time": BEGIN + i} | line) + "\n" for i, line in enumerate(lines))
        (run.path / f"tasks/{task:05}.jsonl").write_text(records)
    stoker("report", run.path, "--out", "page.html", code=0)
    page = (tmp_path / "page.html").read_text()
    for task, step, grey in ((1, 7, 17), (2, 7, 27), (3, 9, 99)):
        data = base64.b64encode(png(grey=grey)).decode()
        assert f'alt="samples, task {task}, step {step}"' in page
        assert data in page
    assert base64.b64encode(png(grey=10)).decode() not in page, "only the last image of a task is shown"
    assert "the last one of 3 of 3 tasks" in page
    assert 'aria-label="task 2, histogram of fc/weight"' in page
    assert "<script>, task" not in page
    text = stoker("report", run.path, "--format", "text", code=0).out
    assert re.search(r"^ *task +image +recorded +first step +last step$", text, re.M)
    assert re.search(r"^ *2 +fc/weight +1 +5 +4 ", text, re.M)
    (facts,) = json.loads(stoker("report", run.path, "--format", "json", code=0).out)["runs"]
    assert [[each["name"] for each in task["images"]] for task in facts["tasks"]] == [
        ["samples"],
        ["samples"],
        ["<script>", "samples"],
    ]
    assert facts["tasks"][1]["histograms"][0]["last"]["counts"] == [2, 0, 2]
