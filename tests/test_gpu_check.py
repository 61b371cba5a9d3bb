"""script/gpu-check without a GPU: the dry run, the time budget with short commands, and the table of canned results."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import gpu_check
import gpu_check_prepare
import gpu_check_table
import pytest
from gpu_check_parts import PARTS, SHARES
from gpu_check_run import Command, Part, Results, Runner

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPT = REPOSITORY / "script/gpu-check"


def run_script(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)


def test_a_dry_run_lists_all_parts_without_a_build():
    done = run_script("--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if not line.startswith(" ")] == list(PARTS)
    assert "bench/gpu/steps.py resnet50-256" in done.stdout
    assert sum(SHARES.values()) == 480


def test_a_dry_run_of_an_empty_folder_fails_and_names_missing_files(tmp_path: Path):
    done = run_script("--dry-run", "--from", str(tmp_path), "--only", "start")
    assert done.returncode == 1
    assert f"missing: {tmp_path}/bin/stoker-train" in done.stdout
    assert "steps" not in done.stdout


def test_an_unknown_part_is_refused():
    done = run_script("--only", "everything")
    assert done.returncode == 2
    assert "invalid choice: 'everything'" in done.stderr
    assert run_script("--budget", "0").returncode == 2


def python(code: str, name: str = "stand-in", **options) -> Command:
    return Command(name, (sys.executable, "-c", code), **{"at_least_s": 0.01, **options})


def run_parts(folder: Path, parts: list[Part], budget_s: float = 60) -> Results:
    return Runner(folder, budget_s, {}, lambda _: None).run(parts)


def test_lines_are_collected_and_a_failing_part_does_not_stop_the_next(tmp_path: Path):
    fails = python(
        "import sys; print('{\"workload\": \"a\"}'); print('{broken'); sys.exit('why it failed')", is_test=True
    )
    prints = python('print(\'{"workload": "b", "who": "python"}\')', who="stoker")
    results = run_parts(tmp_path, [Part("one", 1, (fails,)), Part("two", 1, (prints,))])
    assert results.lines == [{"who": "python", "workload": "a"}, {"who": "python", "workload": "b"}]
    assert [outcome.state for outcome in results.outcomes] == ["failed", "ok"]
    assert results.outcomes[0].detail.endswith(": why it failed")
    assert results.failed_tests == results.outcomes[:1]


def test_what_exceeds_the_budget_is_stopped_or_not_run_and_keeps_its_lines(tmp_path: Path):
    slow = python('import time; print(\'{"workload": "a"}\', flush=True); time.sleep(60)', "slow")
    late = python("pass", "late", at_least_s=0.5)
    started = time.monotonic()
    results = run_parts(tmp_path, [Part("one", 1, (slow, late)), Part("two", 1, (python("pass", "next"),))], 2)
    assert time.monotonic() - started < 10
    states = {outcome.name: (outcome.state, outcome.detail) for outcome in results.outcomes}
    assert states == {"slow": ("stopped", "budget"), "late": ("not run", "budget"), "next": ("ok", "")}
    assert [line["workload"] for line in results.lines] == ["a"]


def test_time_that_a_part_does_not_use_goes_to_the_next(tmp_path: Path):
    slow = python("import time; time.sleep(1.5)")
    results = run_parts(tmp_path, [Part("one", 9, (python("pass"),)), Part("two", 1, (slow,))], 10)
    assert [outcome.state for outcome in results.outcomes] == ["ok", "ok"]


def test_a_command_without_its_files_is_not_run(tmp_path: Path):
    command = python("pass", needs=(tmp_path / "none",), otherwise="build it", is_test=True)
    (outcome,) = run_parts(tmp_path, [Part("one", 1, (command,))]).outcomes
    assert (outcome.state, outcome.detail) == ("not run", f"{tmp_path}/none is missing (build it)")


def test_commands_ahead_of_their_part_end_with_the_run(tmp_path: Path):
    ahead = python(f"import time; open('{tmp_path}/started', 'w'); time.sleep(60)", "ahead")
    wait = f"import os, time\nwhile not os.path.exists('{tmp_path}/started'): time.sleep(0.01)"
    started = time.monotonic()
    results = run_parts(tmp_path, [Part("one", 1, (python(wait),)), Part("two", 1, (python("pass"),), (ahead,))], 4)
    assert time.monotonic() - started < 10
    assert [outcome.state for outcome in results.outcomes] == ["ok", "ok"]


CANNED = [
    {"workload": "resnet50-32", "who": "stoker", "mode": "eager", "images_per_s": 2400.0},
    {"workload": "resnet50-32", "who": "stoker", "mode": "graph", "images_per_s": 3514.0},
    {"workload": "resnet50-32", "who": "stoker", "mode": "eager beside nccl", "images_per_s": 9999.0},
    {"workload": "resnet50-32", "who": "python", "mode": "eager", "images_per_s": 1767.0},
    {"workload": "resnet50-32", "who": "python", "mode": "graph", "images_per_s": 3511.0},
    {"workload": "resnet50-32", "who": "python", "mode": "compile", "failed": "RuntimeError: no compiler"},
    {"workload": "feed-resnet18", "who": "python", "mode": "synthetic", "images_per_s": 10000.0},
    {"workload": "feed-resnet18", "who": "python", "mode": "torchvision", "images_per_s": 2500.0},
    {"workload": "feed-resnet18", "who": "stoker", "mode": "stoker-train", "images_per_s": 8000.0},
    {"workload": "start", "who": "python", "mode": "eager", "seconds": 6.0},
    {"workload": "start", "who": "stoker", "mode": "eager", "seconds": 2.0},
    {
        "workload": "parity-resnet18",
        "settings": ["train.cuda_graph=never"],
        "steps": 20,
        "identical_losses": 20,
        "largest_difference": 0.0,
        "limit": 0.001,
        "met": True,
    },
    {"workload": "cifar10-fast/job.yaml", "who": "stoker", "top1": 0.9312, "seconds": 61.0},
]


def test_the_table_has_ratios_targets_and_what_is_met():
    lines = gpu_check_table.table(CANNED).splitlines()
    cells = {line.split("  ")[0]: line.split() for line in lines[1:]}
    assert lines[0].split() == [word for title in gpu_check_table.HEAD for word in title.split()]
    assert cells["resnet50-32"][1:] == ["3,514", "1,767", "-", "3,511", "1.00", "1.99", "0.98", "of", "best", "yes"]
    feed = cells["feed-resnet18 stoker-train"]
    assert feed[2:] == ["8,000", "2,500", "-", "-", "3.20", "3.20", "0.90", "of", "synthetic", "NO", "(0.80)"]
    assert cells["start seconds"][-5:] == ["3.00", "2.00", "of", "best", "yes"]
    assert "20/20 identical" in lines[1] and lines[1].endswith("yes")
    assert lines[-1].endswith("NO") and "93.12 % in 61.0 s" in lines[-1]
    assert not any(line.endswith(" ") for line in lines)


def test_the_json_file_has_lines_and_outcomes_and_failed_tests_decide(tmp_path: Path, capsys: pytest.CaptureFixture):
    results = run_parts(tmp_path, [Part("one", 1, (python("raise SystemExit(3)", is_test=True),))])
    results.lines += CANNED
    assert gpu_check.conclude(results, tmp_path / "results.json") == 1
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["lines"] == CANNED
    assert content["outcomes"][0]["state"] == "failed"
    out = capsys.readouterr().out
    assert "failed: one: stand-in: exit 3, see " in out
    assert "not measured: resnet50-32 python compile: RuntimeError: no compiler" in out
    results.outcomes.clear()
    assert gpu_check.conclude(results, None) == 0


def test_libraries_of_the_system_and_of_torch_are_not_copied():
    listed = """\
	linux-vdso.so.1 (0x00007ffd2a5f2000)
	libtorch_cpu.so => /venv/torch/lib/libtorch_cpu.so (0x00007f)
	libc10_cuda.so => /venv/torch/lib/libc10_cuda.so (0x00007f)
	libcudart.so.13 => /venv/nvidia/cu13/lib/libcudart.so.13 (0x00007f)
	libisal.so.2 => /lib/x86_64-linux-gnu/libisal.so.2 (0x00007f)
	libstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f)
	libcrypto.so.3 => /lib/x86_64-linux-gnu/libcrypto.so.3 (0x00007f)
	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)
	/lib64/ld-linux-x86-64.so.2 (0x00007f)
	libmissing.so.1 => not found
"""
    assert gpu_check_prepare.libraries_to_copy(listed) == {
        "libisal.so.2": Path("/lib/x86_64-linux-gnu/libisal.so.2"),
        "libcrypto.so.3": Path("/lib/x86_64-linux-gnu/libcrypto.so.3"),
    }


@pytest.mark.parametrize("job", ["job.yaml", "resnet9.yaml"])
def test_the_jobs_that_it_trains_to_an_accuracy_are_valid(stoker, example_dataset: Path, job: str):
    folder = Path(shutil.copytree(REPOSITORY / "examples/cifar10-fast", stoker.folder / "fast"))
    (folder / "cifar10").symlink_to(example_dataset)
    (folder / "resnet9.pt").touch()
    stoker("check", f"fast/{job}", code=0)
