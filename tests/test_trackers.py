"""Variables with which a script's own calls of trackers continue one run over restarts."""

import sys

from running import Job


def test_trackers_continue_the_same_run_after_a_restart(stoker, tmp_path):
    text = """
import os, time
print("\\n".join(f"{name}={os.environ.get(name)}" for name in %r), flush=True)
if os.environ["RANK"] == "0":
    while not os.path.getsize(os.environ["STOKER_ATTEMPT_DIR"] + "/rank-0001.log"): time.sleep(0.02)
    raise SystemExit(1)
time.sleep(600)
"""
    names = [
        "WANDB_RUN_ID",
        "WANDB_RESUME",
        "WANDB_DIR",
        "STOKER_TENSORBOARD_DIR",
        "STOKER_METRICS_FROM",
        "MLFLOW_RUN_CONTEXT",
    ]
    (tmp_path / "train.py").write_text(text % names)
    job = Job(tmp_path, f"{sys.executable} train.py", ranks=2)
    unset = dict.fromkeys(names)
    stoker("run", "job.yaml", code=1, env=unset)
    stoker("resume", "last", "--from-start", code=1, env=unset)
    folder = job.run_folder()
    expected = [f"{folder.name}", "allow", str(folder), f"{folder}/tensorboard", "None"]
    expected.append(f'{{"stoker.run":"{folder.name}"}}')
    for attempt in (1, 2):
        lines = job.log(0, attempt).decode().splitlines()
        assert lines == [f"{name}={value}" for name, value in zip(names, expected, strict=True)]
        assert job.log(1, attempt).decode().splitlines()[0] == f"WANDB_RUN_ID={folder.name}-rank1"
    again = {"WANDB_RUN_ID": "", "WANDB_RESUME": "must", "WANDB_DIR": "/mine"}
    stoker("resume", "last", "--from-start", code=1, env=again)
    lines = job.log(0, 3).decode().splitlines()
    assert lines[:3] == ["WANDB_RUN_ID=", "WANDB_RESUME=must", "WANDB_DIR=/mine"]
