"""`stoker track push` of finished and growing runs: files for TensorBoard, W&B and CSV, and an MLflow server with faults. Each
point arrives once, after kills too. Other readers of the files, and a real server: test_track_readers.py."""

import csv
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
import run_folders
import tracker_files
from fake_mlflow import FakeMlflow
from running import wait_for

JOB = "name: toy\nrun: 'true'\nparams: {lr: 0.1, model: small, api_key: hunter2}\n"
BEGIN = run_folders.BEGIN


@pytest.fixture
def made(stoker) -> run_folders.RunFolder:
    """An ended run of two ranks and two attempts, with points of each kind."""
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy", command=["python", "train.py"], git="3f2c1aa")
    run.started(1, BEGIN)
    lines = [f"{BEGIN + step:.6f},{step},{1 / step},loss" for step in range(1, 31)]
    (run.attempt(1) / "points-0000.csv").write_text("\n".join(["time,step,value,metric", *lines]) + "\n")
    (run.attempt(1) / "points-0001.csv").write_text(f",7,nan,loss\n,7,inf,loss\n{BEGIN},3,5,val/acc, %\n")
    run.system(1, BEGIN, BEGIN + 35)
    run.ended(1, BEGIN + 40, "failed", 1)
    run.started(2, BEGIN + 100)
    (run.attempt(2) / "points-0000.csv").write_text(f"{BEGIN + 101},30,7,loss\n{BEGIN + 102},,0.75,best\n")
    run.ended(2, BEGIN + 140, "done", 0)
    for number, text in ((1, JOB), (2, JOB.replace("0.1", "0.2"))):
        (attempt(run, number) / "job.yaml").write_text(text)
    return run


def attempt(run: run_folders.RunFolder, number: int) -> Path:
    return run.path / f"attempts/{number}"


def samples(run: run_folders.RunFolder) -> int:
    """Points of samples that trackers get: one row in ten seconds, without its NaN."""
    rows = list(csv.DictReader((attempt(run, 1) / "system-0000.csv").open()))
    return sum(value != "nan" for row in rows[::10] for name, value in row.items() if name != "time")


def push(stoker, *arguments, **options):
    return stoker("track", "push", "last", *arguments, **options)


def table(run: run_folders.RunFolder) -> list[dict[str, str]]:
    return list(csv.DictReader((run.path / "track/points.csv").open()))


def test_a_table_has_every_point_once(stoker, made):
    total = 30 + 3 + 2 + samples(made)
    done = push(stoker, "--to", "csv", code=0)
    assert done.out == f"csv: {total} points sent, {total} in all\n"
    rows = table(made)
    assert len(rows) == total
    points = [row for row in rows if row["rank"] == "0" and row["metric"] == "loss"]
    assert [(row["attempt"], row["step"], float(row["value"])) for row in points] == [
        *[("1", str(step), 1 / step) for step in range(1, 31)],
        ("2", "30", 7.0),
    ]
    assert float(points[3]["time"]) == BEGIN + 4
    of_rank_1 = [(row["step"], row["value"], row["metric"]) for row in rows if row["rank"] == "1"]
    assert of_rank_1 == [("7", "nan", "loss"), ("7", "inf", "loss"), ("3", "5", "val/acc, %")]
    assert [(row["step"], row["value"]) for row in rows if row["metric"] == "best"] == [("", "0.75")]
    system = [row for row in rows if row["metric"] == "system/node0/host_memory_total_bytes"]
    assert [(row["rank"], row["step"]) for row in system] == [("", "0"), ("", "10"), ("", "20"), ("", "30")]

    before = (made.path / "track/points.csv").read_bytes()
    with (attempt(made, 2) / "points-0000.csv").open("a") as file:
        file.write(f"{BEGIN + 103},31,6,loss\n,32,5")
    done = push(stoker, "--to", "csv", "--json", code=0)
    counts = {"delivered": 1, "total": total + 1, "refused": 0, "waiting": 0, "problem": ""}
    assert json.loads(done.out)["trackers"] == [{"tracker": "csv", **counts}]
    after = (made.path / "track/points.csv").read_bytes()
    assert after == before + f"2,0,{BEGIN + 103:.6f},31,6,loss,\n".encode()


def test_tensorboard_gets_scalars_and_params(stoker, made):
    push(stoker, "--to", "tensorboard", code=0)
    (file,) = (made.path / "track/tensorboard").iterdir()
    assert "tfevents" in file.name
    found = tracker_files.scalars(file)
    assert [(step, value) for tag, step, value in found if tag == "loss"] == [
        *[(step, pytest.approx(1 / step)) for step in range(1, 31)],
        (30, 7.0),
    ]
    assert [(step, value) for tag, step, value in found if tag == "rank1/val/acc, %"] == [(3, 5.0)]
    assert len(found) == 30 + 3 + 2 + samples(made)
    text = file.read_bytes()
    for part in (b"_hparams_/session_start_info", b"_hparams_/session_end_info", b"text_summary", b"brain.Event:1"):
        assert part in text
    assert b"hunter2" not in text


def test_an_offline_run_of_wandb_has_rows_config_and_stats(stoker, made):
    long_name = "x" * 256
    lines = [f"{BEGIN + 200},{step},{step},{long_name}" for step in range(400)]
    (attempt(made, 2) / "points-0001.csv").write_text("\n".join(lines) + "\n")
    push(stoker, "--to", "wandb=my-project", code=0)
    (folder,) = (made.path / "track/wandb").iterdir()
    (file,) = folder.iterdir()
    identity = file.name.removeprefix("run-").removesuffix(".wandb")
    assert folder.name == f"offline-run-20251121_100311-{identity}"
    records = list(tracker_files.wandb_records(file))
    run = dict(tracker_files.fields(next(message for kind, message in records if kind == 17)))
    assert (run[1].decode(), run[3], run[8].decode()) == (identity, b"my-project", made.path.name)
    config = tracker_files.wandb_items(run[4], 1)
    assert (config["lr"], config["model"], config["api_key"]) == (0.1, "small", "(hidden)")
    rows = tracker_files.wandb_rows(file)
    assert [(row["step"], row["loss"]) for row in rows if "loss" in row] == [
        *[(step, 1 / step) for step in range(1, 31)],
        (30, 7),
    ]
    assert [row["step"] for row in rows if f"rank1/{long_name}" in row] == list(range(400))
    own_steps = [row["_step"] for row in rows]
    assert own_steps == sorted(set(own_steps)), "W&B drops steps that go back"
    assert len([message for kind, message in records if kind == 7]) == 4
    summary = {}
    for kind, message in records:
        summary |= tracker_files.wandb_items(message, 1) if kind == 3 else {}
    assert (summary["loss"], summary["best"]) == (7, 0.75)
    assert dict(tracker_files.fields(records[-1][1])).get(1, 0) == 0
    assert [kind for kind, _ in records].count(18) == 1


def test_of_a_repeated_step_the_last_value_counts_in_trackers_report_and_compare(stoker, made):
    """A loop that goes back from step 31 to 29, and a third attempt that begins at step 30 again."""
    with (attempt(made, 2) / "points-0000.csv").open("a") as file:
        file.write(
            "".join(f"{BEGIN + 103 + i},{step},{value},loss\n" for i, (step, value) in enumerate([(31, 6), (29, 5)]))
        )
    made.started(3, BEGIN + 200)
    (attempt(made, 3) / "points-0000.csv").write_text(f"{BEGIN + 201},30,4,loss\n{BEGIN + 202},31,3,loss\n")
    made.ended(3, BEGIN + 240, "done", 0)
    with FakeMlflow() as server:
        push(stoker, "--to", "csv", "--to", "tensorboard", "--to", "wandb", "--to", f"mlflow={server.url}", code=0)
        sent = server.values("loss")
        times = [metric["timestamp"] for metric in server.metrics if metric["key"] == "loss"]
    last = {28: pytest.approx(1 / 28), 29: 5, 30: 4, 31: 3}
    read = [
        (int(row["step"]), float(row["value"])) for row in table(made) if (row["rank"], row["metric"]) == ("0", "loss")
    ]
    (events,) = (made.path / "track/tensorboard").iterdir()
    scalars = [(step, value) for tag, step, value in tracker_files.scalars(events) if tag == "loss"]
    (offline,) = (made.path / "track/wandb").glob("*/*.wandb")
    rows = [(row["step"], row["loss"]) for row in tracker_files.wandb_rows(offline) if "loss" in row]
    for points in (sent, read, scalars, rows):
        assert len(points) == 30 + 1 + 2 + 2
        assert {step: value for step, value in points if step >= 28} == last, "dict() keeps the last one"
    assert times == sorted(times), "MLflow takes the latest of the values of a step"
    (report,) = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"]
    (loss,) = (metric for metric in report["metrics"] if metric["name"] == "loss")
    assert dict(zip(loss["step"], loss["mean"], strict=True)) == {
        **{step: pytest.approx(1 / step) for step in range(1, 29) if step != 7},
        7: None,
    } | {step: value for step, value in last.items() if step > 28}
    compared = json.loads(stoker("compare", "last", "last", "--json", code=0).out)
    (result,) = (each for each in compared["results"] if each["name"] == "loss")
    assert (result["before"], result["after"]) == ([3], [3])


def test_the_end_of_a_file_is_replaced_when_the_run_continues(stoker, made):
    push(stoker, "--to", "wandb", "--to", "tensorboard", code=0)
    made.started(3, BEGIN + 200)
    (attempt(made, 3) / "points-0000.csv").write_text(f"{BEGIN + 201},31,5,loss\n")
    made.ended(3, BEGIN + 240, "failed", 1)
    push(stoker, "--to", "wandb", "--to", "tensorboard", code=0)
    (file,) = (made.path / "track/wandb").glob("*/*.wandb")
    kinds = [kind for kind, _ in tracker_files.wandb_records(file)]
    assert kinds.count(18) == 1
    assert kinds[-1] == 18
    assert tracker_files.wandb_rows(file)[-1]["loss"] == 5
    (file,) = (made.path / "track/tensorboard").iterdir()
    assert tracker_files.scalars(file)[-1] == ("loss", 31, 5.0)
    assert file.read_bytes().count(b"session_end_info") == 1


def test_a_removed_file_is_written_again_and_a_changed_one_refused(stoker, made):
    push(stoker, "--to", "csv", code=0)
    file = made.path / "track/points.csv"
    before = file.read_bytes()
    file.unlink()
    push(stoker, "--to", "csv", code=0)
    assert file.read_bytes() == before
    file.write_bytes(before[:100])
    refused = push(stoker, "--to", "csv", code=1).out
    assert f"points.csv: has 100 bytes, expected at least {len(before)}: another program changed it" in refused
    cure = refused.splitlines()[1].removeprefix("  try: ").split("      (")[0]
    subprocess.run(cure, shell=True, check=True, cwd=stoker.folder)
    push(stoker, "--to", "csv", code=0)
    assert file.read_bytes() == before


def long_run(stoker, points: int, ranks: int = 1) -> run_folders.RunFolder:
    run = run_folders.RunFolder.create(stoker.folder / "runs", "toy", params={})
    run.started(1, BEGIN)
    for rank in range(ranks):
        lines = [f"{BEGIN + i},{i},{i / 3},loss\n" for i in range(points)]
        (run.attempt(1) / f"points-{rank:04}.csv").write_text("".join(lines))
    run.ended(1, BEGIN + points, "done", 0)
    return run


def test_a_killed_push_to_files_continues_exactly(stoker):
    run = long_run(stoker, 60_000, ranks=4)
    push(stoker, "--to", "csv", "--to", "wandb", "--folder", "whole", code=0)
    kills = 0
    random.seed(1)
    while not list((run.path / "track").glob("*.json")) or kills < 6:
        process = stoker.start("track", "push", "last", "--to", "csv", "--to", "wandb")
        time.sleep(0.02 + random.random() * 0.25)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
    push(stoker, "--to", "csv", "--to", "wandb", code=0)
    for name in ("points.csv", next((run.path / "track").glob("wandb/*/*.wandb")).relative_to(run.path / "track")):
        whole, killed = (stoker.folder / "whole" / name).read_bytes(), (run.path / "track" / name).read_bytes()
        assert whole == killed, name


def test_1024_ranks_are_one_run(stoker):
    run = long_run(stoker, 20, ranks=1024)
    push(stoker, "--to", "csv", "--to", "tensorboard", code=0)
    rows = table(run)
    assert len(rows) == 20 * 1024
    assert {(row["rank"], row["step"]) for row in rows} == {(str(r), str(s)) for r in range(1024) for s in range(20)}
    assert len(list((run.path / "track").rglob("*"))) == 5


@pytest.mark.needs("mount")
def test_a_full_disk_loses_nothing(stoker, tmpfs):
    long_run(stoker, 20_000)
    push(stoker, "--to", "csv", "--folder", "whole", code=0)
    disk = tmpfs("1M")
    filler = disk / "filler"
    filler.write_bytes(bytes(900_000))
    process = stoker.start("track", "push", "last", "--to", "csv", "--folder", disk, "--follow")
    line = process.stderr.readline()
    assert line.startswith("csv: ")
    assert "no space left on device; the points wait in the run folder" in line
    filler.unlink()
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "csv: 20 000 points sent, 20 000 in all\n"), err
    assert (disk / "points.csv").read_bytes() == (stoker.folder / "whole/points.csv").read_bytes()


def test_a_push_without_a_tracker_or_address_is_an_error(stoker, made):
    assert push(stoker, code=2).err == (
        f"track push: run {made.path.name} has no tracker (record in its job file, --to)\n"
        "  try: stoker track push last --to tensorboard\n"
    )
    assert push(stoker, "--to", "mlfow=x", code=2).err == (
        "track: unknown tracker 'mlfow'; did you mean 'mlflow'? (--to)\n"
    )
    assert push(stoker, "--to", "mlflow", code=2).out == (
        "mlflow: the address of the MLflow server is not known (--to, record.mlflow, MLFLOW_TRACKING_URI)\n"
        f"  try: stoker track push {made.path.name} --to mlflow=http://HOST:5000\n"
    )
    refused = push(stoker, "--to", "mlflow", code=2, env={"MLFLOW_TRACKING_URI": "sqlite:///x.db"}).out
    assert refused.startswith(
        "mlflow: 'sqlite:///x.db' is not the address of an MLflow server, which begins with http://"
    )


def test_a_second_push_at_the_same_time_is_refused(stoker, made):
    made.started(3, BEGIN + 200)
    with FakeMlflow() as server:
        first = stoker.start("track", "push", "last", "--to", f"mlflow={server.url}", "--follow")
        wait_for(lambda: len(server.metrics) > 30)
        refused = push(stoker, "--to", f"mlflow={server.url}", code=1)
        assert refused.out.startswith("mlflow: process ")
        assert "already sends this run" in refused.out
        first.send_signal(signal.SIGINT)
        first.communicate()
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert server.repeated() == []


def test_mlflow_gets_points_params_and_the_state(stoker, made):
    with FakeMlflow() as server:
        done = push(stoker, "--to", f"mlflow={server.url}", code=0)
        total = 30 + 3 + 2 + samples(made)
        assert done.out == f"mlflow: {total} points sent, {total} in all\n"
        assert done.err.splitlines() == ["mlflow: 'rank1/val/acc, %' is stored as 'rank1/val/acc_ _'"]
        assert server.experiments == {"toy": "1"}
        (run,) = server.runs.values()
        assert run["info"]["run_name"] == made.path.name
        assert run["info"]["status"] == "FINISHED"
        assert run["info"]["start_time"] == int(BEGIN * 1000)
        assert run["info"]["end_time"] == int((BEGIN + 140) * 1000)
        tags = {"stoker.run": made.path.name, "mlflow.source.git.commit": "3f2c1aa", "mlflow.user": "ana"}
        assert tags.items() <= run["tags"].items()
        assert run["tags"]["attempt 2_ params.lr"] == "0.2"
        assert server.params == {"lr": "0.1", "model": "small", "api_key": "(hidden)", "batch": "64"}
        assert server.values("loss") == [*[(step, 1 / step) for step in range(1, 31)], (30, 7)]
        assert server.values("rank1/loss") == [(7, "NaN"), (7, "Infinity")]
        assert server.values("best") == [(0, 0.75)]
        assert server.metrics[0]["timestamp"] == int((BEGIN + 1) * 1000)
        assert len(server.metrics) == total
        assert [name.rpartition("/")[2] for name in server.files] == ["job.yaml"]

        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert len(server.metrics) == total
        assert len(server.runs) == 1


def test_a_resumed_run_stays_one_run_of_mlflow(stoker, made):
    with FakeMlflow() as server:
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        made.started(3, BEGIN + 200)
        (attempt(made, 3) / "points-0000.csv").write_text(f"{BEGIN + 201},31,5,loss\n")
        made.ended(3, BEGIN + 240, "stopped", 75)
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        (run,) = server.runs.values()
        assert run["info"]["status"] == "KILLED"
        assert server.values("loss")[-1] == (31, 5)
        # The run is found again without the stored state; its points then arrive again.
        (made.path / "track/mlflow.json").unlink()
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert len(server.runs) == 1


@pytest.mark.parametrize("fault", [500, 503, 429, "close", "store, close", "half", "garbage"])
def test_faults_of_a_server_lose_and_repeat_nothing(stoker, fault):
    long_run(stoker, 2500)
    with FakeMlflow() as server:
        server.fail("runs/create", fault)
        server.fail("runs/log-batch", fault, None, fault)
        pushed = push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert "; the points wait in the run folder\nmlflow: works again\n" in pushed.err
        assert [step for step, _ in server.values("loss")] == list(range(2500))
        assert server.repeated() == []
        assert len(server.runs) == 1


def test_a_slow_server_is_waited_for(stoker):
    long_run(stoker, 1500)
    with FakeMlflow() as server:
        server.delay_s = 0.3
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert [step for step, _ in server.values("loss")] == list(range(1500))


def test_a_proxy_with_a_small_limit_gets_smaller_requests(stoker):
    long_run(stoker, 2500)
    with FakeMlflow() as server:
        server.most_metrics = 100
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert [step for step, _ in server.values("loss")] == list(range(2500))
        refused = [request for call, request in server.requests if len(request.get("metrics", [])) > 100]
        assert len(refused) < 8, "the limit is kept in mind"


def test_points_that_the_server_refuses_are_named_and_the_rest_arrives(stoker, made):
    with FakeMlflow() as server:
        server.refused_keys = {"rank1/loss", "model"}
        pushed = push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert ", 3 not accepted\n" in pushed.out
        assert 'mlflow: {"key":"model","value":"small"} is not accepted: Invalid value for model\n' in pushed.err
        assert pushed.err.count("is not accepted: Invalid value for rank1/loss") == 2
        assert len(server.values("loss")) == 31
        assert set(server.params) == {"lr", "api_key", "batch"}
        assert server.repeated() == []


def test_points_wait_for_a_server_that_is_down(stoker, made):
    with FakeMlflow() as server:
        url = server.url
    down = push(stoker, "--to", f"mlflow={url}", code=3)
    total = 30 + 3 + 2 + samples(made)
    assert down.out.startswith(f"mlflow: {total} points not delivered: {url}: ")
    with FakeMlflow() as server:
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert len(server.metrics) == total


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_wants_credentials_gets_them_and_no_command_line_shows_them(stoker, made, status):
    # In the place of curl, a program that records its command line and environment.
    fake = stoker.folder / "bin"
    fake.mkdir()
    (fake / "curl").write_text('#!/bin/sh\necho "$@" >> "$0.log"\nexec /usr/bin/curl "$@"\n')
    (fake / "curl").chmod(0o755)
    environment = {"PATH": f"{fake}:{os.environ['PATH']}", "MLFLOW_TRACKING_TOKEN": 'tok"en\\1', "HOME": stoker.folder}
    with FakeMlflow() as server:
        server.fail("", status)
        refused = push(stoker, "--to", f"mlflow={server.url}", code=2, env=environment)
        assert f"{server.url}: HTTP {status}, no permission\n  try: export MLFLOW_TRACKING_TOKEN=..." in refused.out
        push(stoker, "--to", f"mlflow={server.url}", code=0, env=environment)
        assert {headers["Authorization"] for headers in server.headers} == {'Bearer tok"en\\1'}
        server.headers.clear()
        user = {"MLFLOW_TRACKING_TOKEN": None, "MLFLOW_TRACKING_USERNAME": "ana", "MLFLOW_TRACKING_PASSWORD": "pass:1"}
        push(stoker, "--to", f"mlflow={server.url}", code=0, env=environment | user)
        assert {headers["Authorization"] for headers in server.headers} == {"Basic YW5hOnBhc3M6MQ=="}
    assert set((fake / "curl.log").read_text().splitlines()) == {"-q --config -"}
    for file in (made.path / "track").iterdir():
        assert b"pass:1" not in file.read_bytes()
        assert b'"en' not in file.read_bytes()


def test_a_run_that_was_deleted_on_the_server_is_an_error(stoker, made):
    with FakeMlflow() as server:
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        (attempt(made, 2) / "points-0002.csv").write_text(f"{BEGIN},1,1,a\n{BEGIN},2,1,a\n")
        (run,) = server.runs.values()
        run["info"]["lifecycle_stage"] = "deleted"
        refused = push(stoker, "--to", f"mlflow={server.url}", code=1)
        assert refused.out == f"mlflow: 2 points not delivered: {server.url}: its run {0:032x} was deleted\n"
        assert server.values("rank2/a") == []


def test_an_address_without_mlflow_is_an_error(stoker, made):
    with FakeMlflow() as server:
        refused = push(stoker, "--to", f"mlflow={server.url}/wrong", code=2)
        assert "HTTP 404, expected the address of an MLflow server" in refused.out


def test_a_killed_push_to_mlflow_loses_and_repeats_nothing(stoker):
    long_run(stoker, 12_000)
    with FakeMlflow() as server:
        server.delay_s = 0.1
        random.seed(2)
        kills = 0
        for _ in range(12):
            process = stoker.start("track", "push", "last", "--to", f"mlflow={server.url}")
            time.sleep(0.1 + random.random() * 0.4)
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate()
            time.sleep(0.2)  # the server stores what it has received
        assert kills >= 4
        server.delay_s = 0
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert [step for step, _ in server.values("loss")] == list(range(12_000))
        assert server.repeated() == []
        assert len(server.runs) == 1


def test_a_damaged_state_is_an_error_with_a_cure(stoker, made):
    push(stoker, "--to", "csv", code=0)
    state = made.path / "track/csv.json"
    state.write_text("{}")
    refused = push(stoker, "--to", "csv", code=1)
    assert "csv.json: damaged, so it is unknown which points were delivered\n  try: rm " in refused.out
    state.write_text(json.dumps({"format": "stoker-track", "version": 2}))
    assert "version 2 is not supported by this Stoker (supported: 1)" in push(stoker, "--to", "csv", code=1).out


def test_a_folder_of_a_different_user_is_pushed_elsewhere(stoker, made, tmp_path):
    push(stoker, "--to", "csv", "--folder", tmp_path / "own", code=0)
    assert not (made.path / "track").exists()
    assert stat.S_ISREG((tmp_path / "own/points.csv").stat().st_mode)
    assert Path(tmp_path / "own/csv.json").exists()


MODEL = JOB + "record: {mlflow_register: resnet}\n"


def with_checkpoint(run: run_folders.RunFolder, step: int) -> None:
    folder = run.path / f"checkpoints/step-{step}"
    for name in ("model/shard one.safetensors", "optimizer/shard.safetensors", "manifest.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name} of {step}")
    (attempt(run, 2) / "job.yaml").write_text(MODEL)


@pytest.mark.parametrize("fault", [None, 503, "close", "store, close"])
def test_the_newest_checkpoint_becomes_one_version_of_a_model(stoker, made, fault):
    with_checkpoint(made, 90)
    with_checkpoint(made, 100)
    with FakeMlflow() as server:
        if fault:
            server.fail("model-versions/create", fault)
        done = push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert "mlflow: step-100 is version 1 of model 'resnet'" in done.err
        (version,) = server.models["resnet"]
        root = f"1/{version['run_id']}/artifacts/models/step-100"
        assert version["source"] == f"mlflow-artifacts:/{root}"
        assert version["tags"] == [{"key": "stoker.checkpoint", "value": "step-100"}]
        stored = {name.removeprefix(root + "/"): data for name, data in server.files.items() if "models/" in name}
        assert stored == {
            "manifest.json": b"manifest.json of 100",
            "model/shard%20one.safetensors": b"model/shard one.safetensors of 100",
        }
        assert "version" not in push(stoker, "--to", f"mlflow={server.url}", code=0).err
        shutil.rmtree(made.path / "track")
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert len(server.models["resnet"]) == 1
        with_checkpoint(made, 200)
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert [version["version"] for version in server.models["resnet"]] == ["1", "2"]


def test_a_model_that_cannot_be_registered_is_named_and_the_rest_arrives(stoker, made):
    (attempt(made, 2) / "job.yaml").write_text(MODEL)
    with FakeMlflow() as server:
        done = push(stoker, "--to", f"mlflow={server.url}", code=0)
        place = f"runs/{made.path.name}/checkpoints"
        problem = f"no checkpoint in {place} (record.mlflow_register_path)"
        assert f"mlflow: model 'resnet' is not registered: {problem}\n" in done.err
        with_checkpoint(made, 5)
        server.fail("model-versions/create", 400)
        done = push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert f"mlflow: model 'resnet' is not registered: {server.url}: model-versions/create: HTTP 400\n" in done.err
        (run,) = server.runs.values()
        assert run["info"]["status"] == "FINISHED"


def test_a_failed_run_registers_no_model(stoker, made):
    with_checkpoint(made, 5)
    made.started(3, BEGIN + 200)
    made.ended(3, BEGIN + 240, "failed", 1)
    (attempt(made, 3) / "job.yaml").write_text(MODEL)
    with FakeMlflow() as server:
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        assert server.models == {}


def test_a_file_of_the_script_becomes_a_version(stoker, made, tmp_path):
    description = json.loads((made.path / "run.json").read_text())
    (made.path / "run.json").write_text(json.dumps(description | {"working_directory": str(tmp_path)}))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/best.pt").write_bytes(b"weights")
    path = "record: {mlflow_register: resnet, mlflow_register_path: out/best.pt}\n"
    (attempt(made, 2) / "job.yaml").write_text(JOB + path)
    with FakeMlflow() as server:
        push(stoker, "--to", f"mlflow={server.url}", code=0)
        (version,) = server.models["resnet"]
        assert server.files[f"1/{version['run_id']}/artifacts/models/best.pt/best.pt"] == b"weights"
