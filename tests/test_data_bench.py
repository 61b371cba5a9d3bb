"""stoker data bench: a persistent table of trials, and the line for the job file."""

import csv
import json
import os
import sys

import pytest

QUICK = ("--per-trial", "50ms", "--transform", "cifar-train", "--jobs", "2", "--batch", "64")


def test_prints_the_best_setting_and_the_limiting_stage(stoker, example_dataset):
    found = stoker("data", "bench", example_dataset, *QUICK, code=0)
    header, *rows = found.out.splitlines()
    assert header.split() == [
        "JOBID",
        "LOADER",
        "NUM_WORKERS",
        "PIN_MEMORY",
        "NON_BLOCKING",
        "PREFETCH_FACTOR",
        "PERSISTENT_WORKERS",
        "DROP_LAST",
        "LOADING_TIME",
        "1ST_STEP_LOADING_TIME",
        "CPU_MEMORY",
        "SAMPLES/S",
    ]
    trials = [row.split() for row in rows[:4]]
    rates = [float(trial[-1]) for trial in trials]
    assert rates == sorted(rates, reverse=True) and min(rates) > 0
    assert rows[4].startswith("limit   ")
    assert rows[5] == f"best    train: {{num_workers: {trials[0][2]}, prefetch: {trials[0][5]}}}"


def test_trials_accumulate_and_trials_of_jobs_are_listed(stoker, example_dataset, python):
    run = stoker.folder / "runs/one/attempts/1"
    run.mkdir(parents=True)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=64, transform="cifar-train", num_workers=2): pass
"""
    python(code, example_dataset, env={"STOKER_ATTEMPT_DIR": str(run), "STOKER_RUN_ID": "one", "SLURM_JOB_ID": ""})
    assert [path.name for path in run.iterdir()] == ["loader-0000.csv"]

    first = json.loads(stoker("data", "bench", example_dataset, *QUICK, "--json", code=0).out)
    again = json.loads(stoker("data", "bench", example_dataset, *QUICK, "--json", code=0).out)
    assert [len(first["trials"]), len(again["trials"])] == [5, 9]
    (job,) = [trial for trial in again["trials"] if trial["loader"] == "stoker.Loader"]
    assert (job["jobid"], job["num_workers"], job["batch"]) == ("one", 2, 64)
    assert job["1st_step_loading_time"] > 0 and job["cpu_memory"] > 1e6
    with (stoker.folder / "loader-trials.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8
    other = json.loads(stoker("data", "bench", example_dataset, *QUICK[:-1], "32", "--json", code=0).out)
    assert len(other["trials"]) == 4  # a different batch size: not comparable


def test_tries_data_loaders_with_a_custom_dataset(stoker, module_environment):
    (stoker.folder / "mydata.py").write_text("""
import torch
class Data(torch.utils.data.Dataset):
    def __init__(self, path): self.path = path
    def __len__(self): return 200
    def __getitem__(self, index): return torch.ones(8), len(self.path)
def train_set(path): return Data(path)
def nothing(path): return 7
""")
    options = ("--interpreter", sys.executable, "--per-trial", "50ms", "--batch", "10")
    environment = {"PYTHONPATH": module_environment["PYTHONPATH"], "CUDA_VISIBLE_DEVICES": ""}
    found = stoker("data", "bench", "x", "--python", "mydata:train_set", *options, "--json", env=environment, code=0)
    found = json.loads(found.out)
    assert {trial["loader"] for trial in found["trials"]} == {"torch", "stoker.DataLoader"}
    assert {trial["num_workers"] for trial in found["trials"]} >= {0, 1, len(os.sched_getaffinity(0))}
    assert found["setting"].split("(")[0] in ("torch.utils.data.DataLoader", "stoker.DataLoader")

    wrong = stoker("data", "bench", "x", "--python", "mydata:nothing", *options, env=environment, code=2)
    result = "data bench: mydata:nothing: stoker.bench: mydata:nothing returned a int, expected a map-style dataset"
    assert wrong.err.splitlines()[0].endswith(result)


def test_counts_the_samples_of_nested_batches(python):
    code = """
import torch
from stoker import bench
for sample in (torch.ones(2), "text", 3, (torch.ones(2), 1), ({"x": {"a": torch.ones(2), "b": 1}}, 1), {"names": ["a", "b", "c"]}):
    print(bench._count(torch.utils.data.default_collate([sample] * 5)), end=" ")
"""
    assert python(code) == "5 5 5 5 5 5 "


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--batch", "0"), "data bench: --batch: 0 is not between 1 and 1000000"),
        (("--jobs", "0"), "data bench: -j,--jobs: 0 is not between 1 and 1024"),
        (("--transform", "cifar-trian"), "transform: unknown recipe 'cifar-trian'; did you mean 'cifar-train'?"),
    ],
)
def test_invalid_settings_are_refused(stoker, example_dataset, arguments, text):
    refused = stoker("data", "bench", example_dataset, *arguments, code=2)
    assert text in refused.err


def test_a_different_file_is_not_overwritten(stoker, example_dataset):
    (stoker.folder / "notes.csv").write_text("a,b\n1,2\n")
    refused = stoker("data", "bench", example_dataset, *QUICK, "--trials", "notes.csv", code=2)
    assert "notes.csv:1: not a file of loader trials" in refused.err
    assert (stoker.folder / "notes.csv").read_text() == "a,b\n1,2\n"
