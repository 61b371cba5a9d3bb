"""stoker check JOB --production: thirteen questions, answered from the job, its runs' records and its data."""

import json
import subprocess
import time
from pathlib import Path

import pytest

NAMES = [
    "data-sharded",
    "use-measured",
    "checkpoints-kept",
    "cache-purged",
    "data-hashed",
    "all-reduced",
    "nccl-quiet",
    "interface-chosen",
    "scaling-documented",
    "environment-frozen",
    "data-of-run",
    "runs-tracked",
    "baseline-versioned",
]


def points(stoker, *words: str, **options) -> dict[str, dict]:
    value = json.loads(stoker("check", "job.yaml", "--production", "--json", *words, **options).out)
    assert [point["name"] for point in value["points"]] == NAMES
    assert [point["number"] for point in value["points"]] == list(range(1, 14))
    assert value["ready"] == all(point["answer"] != "no" for point in value["points"])
    return {point["name"]: point for point in value["points"]}


def answers(found: dict[str, dict]) -> dict[str, str]:
    return {name: point["answer"] for name, point in found.items()}


@pytest.mark.parametrize(
    ("source", "evidence", "cure"),
    [
        ("auto", "logged metrics: 2, in ", "save to $STOKER_CHECKPOINT_DIR, or stage: {back: [results]}"),
        ("none", "metrics: none in ", "`stoker.log({'loss': loss}, step=step)` in the script"),
    ],
)
def test_metrics_that_a_script_logs_are_tracked(stoker, tmp_path, source, evidence, cure):
    (tmp_path / "job.yaml").write_text(f"name: own\nrun: python3 train.py\nrecord: {{metrics_from: {source}}}\n")
    (tmp_path / "train.py").write_text("print({'loss': 0.5, 'lr': 1, 'step': 3})\n")
    stoker("run", "job.yaml", code=0)
    found = points(stoker, code=1)["runs-tracked"]
    assert found["evidence"][1].startswith(evidence)
    assert found["cure"] == cure


def test_a_job_that_never_ran_has_little_to_measure(stoker, tmp_path):
    (tmp_path / "job.yaml").write_text("name: new\nrun: 'true'\nresources: {nodes: 2}\n")
    found = points(stoker, code=1)
    assert answers(found) == {
        "data-sharded": "not measurable",
        "use-measured": "not measurable",
        "checkpoints-kept": "not measurable",
        "cache-purged": "not measurable",
        "data-hashed": "not measurable",
        "all-reduced": "not measurable",
        "nccl-quiet": "yes",
        "interface-chosen": "no",
        "scaling-documented": "not measurable",
        "environment-frozen": "not measurable",
        "data-of-run": "not measurable",
        "runs-tracked": "not measurable",
        "baseline-versioned": "not measurable",
    }
    assert found["interface-chosen"]["cure"] == "environment: {variables: {GLOO_SOCKET_IFNAME: NAME}}"
    assert found["all-reduced"]["cure"] == "stoker hello JOB"
    assert all(point["evidence"] for point in found.values())
    assert all(point["cure"] for point in found.values() if point["answer"] != "yes")


def test_answers_come_with_evidence_and_cure(stoker, tmp_path):
    (tmp_path / "job.yaml").write_text("name: new\nrun: 'true'\n")
    output = stoker("check", "job.yaml", "--production", code=0).out.splitlines()
    assert output[0] == "job.yaml: 3 of 13 checks pass, 0 fail, 10 cannot be measured"
    at = output.index("  ?     1  is the dataset in shards")
    assert output[at + 1 : at + 3] == [
        "           the job has no data (data)",
        "           try: stoker data pack FOLDER packed; data: {train: {source: packed}}",
    ]


def test_records_of_a_run_answer_points(stoker, tmp_path, own_dataset):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("runs/\ndataset/\n")
    script = (
        'import os, time; os.makedirs(os.environ["STOKER_CHECKPOINT_DIR"] + "/1", exist_ok=True); time.sleep(3.5)\n'
    )
    (tmp_path / "train.py").write_text(script)
    job = f"name: kept\nrun: python3 train.py\ndata: {{train: {{source: {own_dataset}, split: train}}}}\n"
    (tmp_path / "job.yaml").write_text(job)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "begin"], cwd=tmp_path, check=True)
    stoker("run", "job.yaml", code=0)
    found = points(stoker, code=1)
    assert {name: found[name]["answer"] for name in ("data-sharded", "data-hashed", "data-of-run")} == {
        "data-sharded": "yes",
        "data-hashed": "yes",
        "data-of-run": "yes",
    }
    assert found["checkpoints-kept"]["answer"] == "yes"
    assert found["runs-tracked"]["answer"] == "no"  # a plain command records no steps
    assert found["use-measured"]["evidence"][1].startswith("rank 0 reads ")
    assert found["baseline-versioned"]["answer"] == "no"
    assert found["baseline-versioned"]["cure"] == "stoker run, at least twice"
    assert found["cache-purged"]["cure"] == "stage: {copy: [dataset]}"
    assert points(stoker, code=1)["scaling-documented"]["answer"] == "no"
    # Twice, with two sizes, clean both times, and a report: a study with a baseline.
    stoker("run", "job.yaml", "--set", "resources.ranks_per_node=2", "--set", "resources.cpus_per_rank=1", code=0)
    stoker("report", "last", code=0)
    found = points(stoker, code=None)
    assert found["scaling-documented"]["evidence"][0] == "succeeded with these numbers of ranks: 1, 2"
    assert found["scaling-documented"]["answer"] == "yes"
    assert found["baseline-versioned"]["answer"] == "yes"


def test_results_of_hello_are_kept_and_expire(stoker, tmp_path):
    (tmp_path / "job.yaml").write_text("name: ready\nrun: 'true'\nresources: {ranks_per_node: 2}\n")
    assert points(stoker, code=None)["all-reduced"]["answer"] == "not measurable"
    stoker("hello", "job.yaml", "--no-speed")
    kept = tmp_path / "runs/hello.json"
    value = json.loads(kept.read_text())
    assert value["job"] == "ready"
    assert value["all_reduced"] is True
    assert points(stoker, code=None)["all-reduced"]["answer"] == ("yes" if value["ready"] else "no")
    kept.write_text(json.dumps(value | {"ready": True, "time": time.time() - 40 * 86400}))
    assert points(stoker, code=None)["all-reduced"]["answer"] == "no"
    kept.write_text("{")
    assert points(stoker, code=None)["all-reduced"]["answer"] == "not measurable"


@pytest.mark.parametrize(
    ("more", "name", "answer", "evidence"),
    [
        ("environment: {variables: {NCCL_DEBUG: info}}", "nccl-quiet", "no", "NCCL_DEBUG=info fills the logs"),
        (
            "checkpoint: {directory: /tmp/saves}",
            "checkpoints-kept",
            "no",
            "/tmp/saves is node-local and deleted with the job",
        ),
        ("environment: {modules: [cuda]}", "environment-frozen", "no", "module cuda has no version (job.yaml:3:"),
        ("environment: {venv: needs.txt}", "environment-frozen", "no", "numpy of "),
        (
            "stage: {copy: [needs.txt]}",
            "cache-purged",
            "yes",
            "sources staged to every node and removed after each attempt: 1",
        ),
    ],
)
def test_settings_of_the_job_answer_points(stoker, tmp_path, more, name, answer, evidence):
    (tmp_path / "needs.txt").write_text("torch==2.5.1\nnumpy\n# a word\n")
    (tmp_path / "job.yaml").write_text(f"name: decides\nrun: 'true'\n{more}\n")
    point = points(stoker, code=None)[name]
    assert point["answer"] == answer
    assert point["evidence"][0].startswith(evidence)


def test_production_needs_a_job_file(stoker, tmp_path: Path):
    (tmp_path / "a.sh").write_text("#!/bin/bash\n")
    assert stoker("check", "a.sh", "--production", code=2).err == (
        "a.sh: a batch script; --set, --print, --production and --on-nodes need a job file\n"
    )
