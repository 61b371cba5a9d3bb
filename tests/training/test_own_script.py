"""examples/pytorch, a script without Stoker calls, under `stoker run`: killed, restarted, finished."""

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
import trained
from conftest import REPOSITORY
from running import finish, wait_for

EXAMPLE = REPOSITORY / "examples/pytorch"


@pytest.fixture
def example(stoker, example_images) -> Path:
    """The example in the test's folder, with a few of its images."""
    for name in ("job.yaml", "train.py"):
        shutil.copy(EXAMPLE / name, stoker.folder)
    for split, count in (("train", 20), ("test", 10)):
        for kind in sorted((example_images / split).iterdir()):
            target = stoker.folder / "images" / split / kind.name
            target.mkdir(parents=True)
            for image in sorted(kind.iterdir())[:count]:
                (target / image.name).symlink_to(image)
    return stoker.folder


@pytest.mark.timeout(300)
def test_a_killed_plain_script_is_restarted_and_finishes(stoker, example):
    python = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # whose `python` has torch
    job = (example / "job.yaml").read_text().replace("--epochs 10", "--epochs 2 --batch 20 --save weights.pt")
    (example / "job.yaml").write_text(job)

    process = stoker.start("run", "job.yaml", env=python)
    log = wait_for(lambda: next(example.glob("runs/*/attempts/1/rank-0000.log"), None))
    wait_for(lambda: "step 1 loss" in log.read_text())
    started = {event["rank"]: event["pid"] for event in trained.events(log.parent, "rank_started")}
    os.kill(started[1], signal.SIGKILL)
    code, err = finish(process)
    assert code == 137
    # The message of the surviving rank may come before or after it.
    assert re.search(r"^rank 1 \(\S+\) exited after .+: killed by signal 9 \(SIGKILL\)$", "\n".join(err), re.M), err

    assert "  try: stoker resume " in stoker("resume", "last", code=1, env=python).err  # it would start again
    resumed = stoker("resume", "last", "--from-start", code=0, env=python)
    run = trained.the_run(example)
    assert resumed.err.startswith(f"run {run.name}   attempt 2, from the start: there is no checkpoint yet\n")
    # 200 images are 5 steps of 2 ranks with 20 each.
    lines = (run / "attempts/2/rank-0000.log").read_text().splitlines()
    assert lines == resumed.out.splitlines()
    assert re.fullmatch(r"epoch 1 step 1 loss \d\.\d{3}", lines[0])
    for epoch, line in enumerate(lines[1:], 1):
        assert re.fullmatch(rf"epoch {epoch}: loss \d\.\d{{3}}, test accuracy \d+\.\d%, [\d.]+ s", line)
    assert len(lines) == 3
    assert (run / "attempts/2/rank-0001.log").read_text() == ""
    assert (example / "weights.pt").stat().st_size > 1_000_000

    (state,) = json.loads(stoker("status", "last", "--json", code=0).out)["runs"]
    assert (state["state"], state["attempts"], state["ranks"], state["exit_code"]) == ("done", 2, 2, 0)
    assert (state["epoch"], state["step"]) == (None, None), "it reports nothing to Stoker"
    environment = json.loads((run / "capsule/environment.json").read_text())
    assert environment["programs"]["torch"].startswith("2.")
    (report,) = json.loads(stoker("report", "last", "--json", code=0).out)["runs"]
    assert (report["state"], report["world_size"], report["epochs"]) == ("done", 2, [])
    assert report["command"][:2] == ["python", "train.py"]
