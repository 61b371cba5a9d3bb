"""What `stoker track push` sends, as other programs read it: TensorBoard, pandas, `wandb sync` and `comet upload` with fake
servers, and a real MLflow server on SQLite and on PostgreSQL. Packages: setup/requirements-trackers.txt."""

import base64
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import needs
import ports
import postgres_server
import pytest
import run_folders
from fake_comet import FakeComet
from fake_mlflow import FakeMlflow
from fake_wandb import FakeWandb
from running import Job, wait_until

pytestmark = [pytest.mark.soak, pytest.mark.needs("trackers")]
BEGIN = run_folders.BEGIN
STEPS = 3000
# A PNG file of 3 x 2 grey pixels.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c6"
    "0000000e49444154789c63888a8a620062000878021d51effb740000000049454e44ae426082"
)


def trackers_python(code: str, *arguments: object, **environment: str) -> str:
    command = [str(needs.trackers_python()), "-c", code, *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"capture_output": True, "text": True, "timeout": 600, "cwd": folder}
        done = subprocess.run(command, env=os.environ | environment, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def made(stoker) -> run_folders.RunFolder:
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy", params={"lr": "0.1", "model": "small"})
    run.started(1, BEGIN)
    lines = [f"{BEGIN + step},{step},{1 / (step + 1)},loss\n" for step in range(STEPS)]
    (run.attempt(1) / "points-0000.csv").write_text("".join(lines))
    (run.attempt(1) / "points-0001.csv").write_text(f'{BEGIN},3,nan,"a, %\n{BEGIN},4,0.5,"a, %\n')
    run.steps(1, 0, 1, 50, BEGIN)
    run.system(1, BEGIN, BEGIN + 35)
    run.ended(1, BEGIN + STEPS, "done", 0)
    return run


TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}).Reload()
data = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
message = plugin_data_pb2.HParamsPluginData.FromString(data).session_start_info
end = events.summary_metadata["_hparams_/session_end_info"].plugin_data.content
print(json.dumps({
    "tags": events.Tags()["scalars"],
    "loss": [(event.step, event.value, event.wall_time) for event in events.Scalars("loss")],
    "hparams": {name: value.number_value or value.string_value for name, value in message.hparams.items()},
    "status": plugin_data_pb2.HParamsPluginData.FromString(end).session_end_info.status,
    "text": events.Tensors("run/text_summary")[0].tensor_proto.string_val[0].decode(),
}))
"""


def test_tensorboard_reads_scalars_hparams_and_text(stoker, made):
    stoker("track", "push", "last", "--to", "tensorboard", code=0)
    found = json.loads(trackers_python(TENSORBOARD, made.path / "track/tensorboard"))
    trained = [line.split(",") for line in (made.attempt(1) / "metrics-0000.csv").read_text().splitlines()[1:]]
    points = [[step, pytest.approx(1 / (step + 1)), BEGIN + step] for step in range(STEPS)]
    steps = [[int(row[2]), pytest.approx(float(row[4])), float(row[0])] for row in trained]
    # The trainer's steps begin again at 1: from there on, the points of the same name disappear.
    assert found["loss"] == points[:1] + steps
    assert {'rank1/"a, %', "system/node0/host_cpu_percent", "step_s"} <= set(found["tags"])
    assert found["hparams"] == {"lr": 0.1, "model": "small"}
    assert found["status"] == 1
    assert "| lr | 0.1 |" in found["text"]


TENSORBOARD_MEDIA = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"images": 0, "histograms": 0}).Reload()
print(json.dumps({
    "images": {tag: [[e.step, e.width, e.height, e.encoded_image_string.hex()] for e in events.Images(tag)]
               for tag in events.Tags()["images"]},
    "histograms": [[e.step, e.histogram_value.num, e.histogram_value.bucket_limit, e.histogram_value.bucket]
                   for e in events.Histograms("fc/weight")],
}))
"""
TENSORBOARD_PAGES = """
import json, sys
from tensorboard.backend.event_processing import plugin_event_multiplexer, data_provider
from tensorboard import context
multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(sys.argv[1])
multiplexer.Reload()
provider = data_provider.MultiplexerDataProvider(multiplexer, sys.argv[1])
found = {}
for plugin in ("images", "histograms"):
    tensors = provider.list_tensors(context.RequestContext(), experiment_id="", plugin_name=plugin)
    blobs = provider.list_blob_sequences(context.RequestContext(), experiment_id="", plugin_name=plugin)
    found[plugin] = sorted(tag for group in (tensors, blobs) for tags in group.values() for tag in tags)
print(json.dumps(found))
"""


@pytest.fixture
def with_media(made) -> run_folders.RunFolder:
    files = {step: PICTURE + bytes([step]) for step in range(4)}
    lines = [json.dumps({"time": BEGIN, "step": step, "name": "pictures",
                         "image": {"base64": base64.b64encode(file).decode()}}) for step, file in files.items()]  # fmt: skip
    histogram = {"lowest": -1, "highest": 1, "sum": 0, "sum_squares": 2, "counts": [1, 2, 1, 0]}
    lines += [
        json.dumps({"time": BEGIN, "step": step, "name": "fc/weight", "histogram": histogram}) for step in range(9)
    ]
    (made.attempt(1) / "media-0000.jsonl").write_text("\n".join(lines) + "\n")
    return made


def test_tensorboard_shows_images_and_histograms(stoker, with_media):
    stoker("track", "push", "last", "--to", "tensorboard", code=0)
    folder = with_media.path / "track/tensorboard"
    found = json.loads(trackers_python(TENSORBOARD_MEDIA, folder))
    assert found["images"] == {"pictures": [[step, 3, 2, (PICTURE + bytes([step])).hex()] for step in range(4)]}
    assert found["histograms"] == [[step, 4, [-0.5, 0, 0.5, 1], [1, 2, 1, 0]] for step in range(9)]
    assert json.loads(trackers_python(TENSORBOARD_PAGES, folder)) == {
        "images": ["pictures"],
        "histograms": ["fc/weight"],
    }


def test_wandb_syncs_images_and_histograms(stoker, with_media):
    stoker("track", "push", "last", "--to", "wandb=my-project", code=0)
    (folder,) = (with_media.path / "track/wandb").iterdir()
    with FakeWandb() as server:
        environment = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": 40 * "a", "WANDB_ENTITY": "me"}
        trackers_python("import sys; from wandb.cli.cli import cli; cli()", "sync", folder, **environment)
        rows = server.rows("wandb-history.jsonl")
        histograms = [row["fc/weight"] for row in rows if "fc/weight" in row]
        assert histograms == 9 * [{"_type": "histogram", "values": [1, 2, 1, 0], "bins": [-1, -0.5, 0, 0.5, 1]}]
        images = [row["pictures"] for row in rows if "pictures" in row]
        assert [(image["_type"], image["width"], image["format"]) for image in images] == 4 * [("image-file", 3, "png")]
        uploaded = {name: data for name, data in server.uploads.items() if name.startswith("media/images/")}
        assert {image["path"]: image["sha256"] for image in images} == {
            name: hashlib.sha256(data).hexdigest() for name, data in uploaded.items()
        }


PANDAS = """
import json, sys, pandas
points = pandas.read_csv(sys.argv[1])
loss = points[(points.metric == "loss") & (points.time == points.time.round())]
print(json.dumps({"types": points.dtypes.astype(str).to_dict(), "metrics": sorted(points.metric.unique()),
                  "steps": loss.step.tolist(), "values": loss.value.tolist(),
                  "nan": int(points.value.isna().sum()), "rows": len(points)}))
"""


def test_tensorboard_shows_the_last_value_of_a_repeated_step(stoker, made):
    made.started(2, BEGIN + 2 * STEPS)
    lines = [f"{BEGIN + 2 * STEPS + step},{step},7,loss\n" for step in range(STEPS - 5, STEPS - 2)]
    (made.attempt(2) / "points-0000.csv").write_text("".join(lines))
    made.ended(2, BEGIN + 3 * STEPS, "done", 0)
    stoker("track", "push", "last", "--to", "tensorboard", code=0)
    found = json.loads(trackers_python(TENSORBOARD, made.path / "track/tensorboard"))
    steps = [(step, value) for step, value, _ in found["loss"]]
    assert [step for step, _ in steps] == [*range(51), *range(STEPS - 5, STEPS - 2)]
    assert [value for _, value in steps[-3:]] == [7, 7, 7]
    assert len([tag for tag in found["tags"] if tag.startswith("system/")]) > 0


def test_pandas_reads_the_table(stoker, made):
    done = json.loads(stoker("track", "push", "last", "--to", "csv", "--json", code=0).out)
    found = json.loads(trackers_python(PANDAS, made.path / "track/points.csv"))
    assert found["rows"] == done["trackers"][0]["total"]
    assert found["types"]["value"] == found["types"]["time"] == "float64"
    assert found["steps"] == list(range(STEPS))
    assert found["values"] == [1 / (step + 1) for step in range(STEPS)]
    assert '"a, %' in found["metrics"]
    assert found["nan"] == 1


def test_wandb_syncs_the_offline_run(stoker, made):
    stoker("track", "push", "last", "--to", "wandb=my-project", code=0)
    (folder,) = (made.path / "track/wandb").iterdir()
    with FakeWandb() as server:
        environment = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": 40 * "a", "WANDB_ENTITY": "me"}
        code = "import sys; from wandb.cli.cli import cli; cli()"
        trackers_python(code, "sync", folder, **environment)
        run = server.runs[0]
        assert (run["project"], run["displayName"]) == ("my-project", made.path.name)
        config = json.loads(run["config"])
        assert config["lr"]["value"] == 0.1
        rows = server.rows("wandb-history.jsonl")
        assert [(row["step"], row["loss"]) for row in rows if "loss" in row and "step_s" not in row] == [
            (step, 1 / (step + 1)) for step in range(STEPS)
        ]
        assert len([row for row in rows if "step_s" in row]) == 50
        assert server.exit_codes == [0]
        assert len(server.rows("wandb-events.jsonl")) == 4


COMET_UPLOAD = "import sys; from comet_ml.scripts.comet import main; sys.argv[0] = 'comet'; main()"


def test_comet_uploads_the_archives_of_two_attempts_as_one_experiment(stoker, with_media):
    stoker("track", "push", "last", "--to", "comet=my-project", code=0)
    with_media.started(2, BEGIN + 2 * STEPS)
    (with_media.attempt(2) / "points-0000.csv").write_text(f"{BEGIN + 2 * STEPS},{STEPS},7,later\n")
    with_media.ended(2, BEGIN + 3 * STEPS, "failed", 1, reason="rank 0 was killed")
    stoker("track", "push", "last", "--to", "comet=my-project", code=0)
    first, second = sorted((with_media.path / "track/comet").iterdir())
    with FakeComet() as server:
        trackers_python(COMET_UPLOAD, "upload", first, second, **server.environment())
        assert list(server.experiments.values()) == ["my-project"]
        assert set(server.tags) == {"toy"}
        metrics = {}
        for each in server.metrics:
            metrics.setdefault(each["metricName"], []).append((each["step"], each["metricValue"], each["timestamp"]))
        trained = sorted(time for step, _, time in metrics["loss"])
        assert len(trained) == len(set(trained)) == STEPS + 50
        points = [(step, 1 / (step + 1), int(BEGIN + step) * 1000) for step in range(STEPS)]
        assert set(points) <= set(metrics["loss"])
        assert metrics["later"] == [(STEPS, 7, int(BEGIN + 2 * STEPS) * 1000)]
        assert [value for _, value, _ in metrics['rank1/"a, %']] == ["NaN", 0.5]
        assert server.params == {"lr": 0.1, "model": "small"}
        assert (server.others["Name"], server.others["stoker.state"]) == (with_media.path.name, "failed")
        assert server.errors == ["rank 0 was killed"]
        assert server.ends == [int(BEGIN + STEPS) * 1000, int(BEGIN + 3 * STEPS) * 1000]
        pictures = [(query["figName"], query["step"], data) for kind, query, data in server.files if "figName" in query]
        assert sorted(pictures) == [("pictures", str(step), PICTURE + bytes([step])) for step in range(4)]
        weights = [json.loads(data) for _, query, data in server.files if query.get("fileName") == "fc/weight"]
        assert [sum(count for _, count in each["index_values"]) for each in weights] == 9 * [4]
        with pytest.raises(AssertionError, match="already"):
            trackers_python(COMET_UPLOAD, "upload", first, **server.environment())


@contextmanager
def mlflow_server(folder: Path, store: str) -> Iterator[str]:
    folder.mkdir()
    port = ports.free_port()
    command = [needs.trackers_python(), "-m", "mlflow", "server", "--port", port, "--backend-store-uri", store]
    command += ["--artifacts-destination", folder / "artifacts", "--serve-artifacts", "--workers", 1]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(word) for word in command], cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return urllib.request.urlopen(f"{url}/health", timeout=5).status == 200
        except OSError:
            return False

    try:
        wait_until(is_up, "the MLflow server answers")
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    with postgres_server.running(folder) as host:
        yield f"postgresql+psycopg2://ana@/postgres?host={host}"


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    folder.mkdir()
    yield f"sqlite:///{folder}/mlflow.db"


STORES: list = [sqlite, pytest.param(postgres, marks=pytest.mark.needs("postgres"))]
MLFLOW = """
import json, sys, mlflow
client = mlflow.MlflowClient(sys.argv[1])
(run,) = client.search_runs([e.experiment_id for e in client.search_experiments()])
history = {}
for key in run.data.metrics:
    history[key] = [(m.step, m.value if m.value == m.value else None, m.timestamp) for m in client.get_metric_history(run.info.run_id, key)]
print(json.dumps({
    "history": history, "params": run.data.params, "status": run.info.status, "tags": run.data.tags,
    "artifacts": [a.path for a in client.list_artifacts(run.info.run_id)],
    "inputs": [[i.dataset.name, i.dataset.digest] for i in run.inputs.dataset_inputs],
}))
"""


def mlflow_run(url: str) -> dict:
    return json.loads(trackers_python(MLFLOW, url))


@pytest.mark.parametrize("store", STORES)
@pytest.mark.timeout(900)
def test_an_mlflow_server_has_every_point_once_after_kills(stoker, made, store: Callable, tmp_path, open_folder):
    (made.path / "capsule").mkdir()
    data = {"name": "train", "source": "/data/cifar", "split": "train", "version": "7c1f9e02" * 8, "samples": 5}
    (made.path / "capsule/data.json").write_text(json.dumps({"datasets": [data | {"shards": 1, "bytes": 9}]}))
    with store(open_folder / "store") as uri, mlflow_server(tmp_path / "server", uri) as url:
        for wait_s in (1.5, 0.7, 1.1, 0.9):
            process = stoker.start("track", "push", "last", "--to", f"mlflow={url}")
            time.sleep(wait_s)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        pushed = stoker("track", "push", "last", "--to", f"mlflow={url}", code=0)
        assert "not accepted" not in pushed.out, pushed.err
        found = mlflow_run(url)
    points = [entry for entry in found["history"]["loss"] if entry[2] % 1000 == int(BEGIN * 1000) % 1000]
    assert sorted(points) == [[step, 1 / (step + 1), int((BEGIN + step) * 1000)] for step in range(STEPS)]
    assert [entry[:2] for entry in found["history"]["rank1/_a_ _"]] == [[3, None], [4, 0.5]]
    assert len(found["history"]["system/node0/host_cpu_percent"]) == 3
    assert found["params"] == {"lr": "0.1", "model": "small"}
    assert found["status"] == "FINISHED"
    assert found["artifacts"] == ["job.yaml"]
    assert found["inputs"] == [["cifar/train", data["version"][:36]]]


REGISTERED = """
import json, sys, mlflow
client = mlflow.MlflowClient(sys.argv[1], sys.argv[1])
mlflow.set_tracking_uri(sys.argv[1])
versions = client.search_model_versions("name='resnet'")
folder = mlflow.artifacts.download_artifacts(artifact_uri=client.get_model_version_download_uri("resnet", "1"))
import pathlib
(run,) = client.search_runs([e.experiment_id for e in client.search_experiments()])
print(json.dumps({
    "versions": [[v.version, v.run_id == run.info.run_id, v.status, v.tags] for v in versions],
    "files": {str(p.relative_to(folder)): p.read_text() for p in pathlib.Path(folder).rglob("*") if p.is_file()},
    "images": [a.path for a in client.list_artifacts(run.info.run_id, "images/pictures")],
}))
"""


@pytest.mark.timeout(900)
def test_a_real_mlflow_server_registers_the_checkpoint_and_has_the_images(stoker, with_media, tmp_path, open_folder):
    files = {"manifest.json": "{}", "model/shard-00001-model-00001-of-00001.safetensors": "weights"}
    for name, text in files.items():
        file = with_media.path / "checkpoints/step-200" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (with_media.path / "attempts/1/job.yaml").write_text("name: toy\nrun: 'true'\nrecord: {mlflow_register: resnet}\n")
    with sqlite(open_folder / "store") as uri, mlflow_server(tmp_path / "server", uri) as url:
        for _ in range(2):
            stoker("track", "push", "last", "--to", f"mlflow={url}", code=0)
        found = json.loads(trackers_python(REGISTERED, url))
    assert found["versions"] == [["1", True, "READY", {"stoker.checkpoint": "step-200"}]]
    assert found["files"] == files
    assert found["images"] == [f"images/pictures/step-{step:09}.png" for step in range(4)]


OWN_CALLS = """
import math, mlflow, os, wandb
mlflow.set_tracking_uri(os.environ["SERVER"])
with mlflow.start_run(run_name="own"), wandb.init(project="own", mode="offline") as run:
    for step in range(20):
        mlflow.log_metric("own_loss", 1 / (step + 1), step=step)
        run.log({"loss": 1 / (step + 1)}, step=step)
"""


@pytest.mark.timeout(900)
def test_unmodified_scripts_of_mlflow_and_wandb_run_beside_it(stoker, tmp_path):
    (tmp_path / "train.py").write_text(OWN_CALLS)
    with sqlite(tmp_path / "store") as uri, mlflow_server(tmp_path / "server", uri) as url:
        Job(tmp_path, f"{needs.trackers_python()} train.py", ranks=1)
        stoker("run", "job.yaml", code=0, env={"SERVER": url, "WANDB_SILENT": "true"})
        stoker("track", "push", "last", "--to", f"mlflow={url}", code=0)
        code = """
import json, sys, mlflow
client = mlflow.MlflowClient(sys.argv[1])
runs = client.search_runs([e.experiment_id for e in client.search_experiments()])
print(json.dumps({r.info.run_name: {k: len(client.get_metric_history(r.info.run_id, k)) for k in r.data.metrics} for r in runs}))
"""
        found = json.loads(trackers_python(code, url))
    own = found.pop("own")
    assert own == {"own_loss": 20}
    ((name, metrics),) = found.items()
    assert name == stoker.folder.joinpath("runs").iterdir().__next__().name
    assert metrics["loss"] == 20, "the rows of wandb.log are points of the run"


@pytest.mark.timeout(1800)
def test_ten_million_points_arrive_in_files(stoker, tmp_path):
    run = run_folders.RunFolder.create(tmp_path / "runs", "long")
    run.started(1, BEGIN)
    for rank in range(10):
        with (run.attempt(1) / f"points-{rank:04}.csv").open("w") as file:
            file.writelines(f"{BEGIN + i},{i},{i / 8},loss\n" for i in range(1_000_000))
    run.ended(1, BEGIN + 1_000_000, "done", 0)
    begin = time.monotonic()
    trackers = [word for name in ("csv", "tensorboard", "wandb", "comet") for word in ("--to", name)]
    stoker("track", "push", "last", *trackers, code=0, timeout=1500)
    print(f"10^7 points to four trackers: {time.monotonic() - begin:.0f} s")
    found = 0
    for file in (run.path / "track/comet").iterdir():
        with zipfile.ZipFile(file) as archive, archive.open("messages.json") as messages:
            found += sum(b'"metric_msg"' in line for line in messages)
    assert found == 10_000_000
    with (run.path / "track/points.csv").open() as file:
        assert sum(1 for _ in file) == 10_000_001


@pytest.mark.timeout(3000)
def test_a_million_points_of_a_thousand_ranks_arrive_once_over_http(stoker, tmp_path):
    run = run_folders.RunFolder.create(tmp_path / "runs", "wide")
    run.started(1, BEGIN)
    for rank in range(1024):
        lines = [f"{BEGIN + i},{i},{i / 8},loss\n" for i in range(1000)]
        (run.attempt(1) / f"points-{rank:04}.csv").write_text("".join(lines))
    run.ended(1, BEGIN + 1000, "done", 0)
    with FakeMlflow() as server:
        stoker("track", "push", "last", "--to", f"mlflow={server.url}", code=0, timeout=2800)
        assert len(server.metrics) == 1_024_000
        assert server.repeated() == []
