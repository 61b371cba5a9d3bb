"""`stoker farm` on one machine: lists, what runs again, what a task gets, and how a farm ends."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from conftest import Stoker
from packing import indexed_files
from running import wait_until


def write(folder: Path, name: str, *lines: str) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return name


def farm(stoker: Stoker, *words: str, code: int | None = 0, **options) -> dict:
    done = stoker("farm", *words, "--json", code=code, **options)
    return json.loads(done.out)


def ends(folder: Path) -> list[list[str]]:
    """The `end` records of all ledgers, as words."""
    lines = [line for ledger in (folder / "tasks.farm/ledger").iterdir() for line in ledger.read_text().splitlines()]
    return [line.split() for line in lines if line.startswith("end ")]


def test_tasks_run_once_and_their_outputs_are_in_order(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", *(f"sleep 0.0{9 - n}; echo out {n}" for n in range(10)))
    assert farm(stoker, tasks, "--at-once", "5")["done"] == 10
    assert stoker("farm", tasks, "--output", code=0).out == "".join(f"out {n}\n" for n in range(10))
    again = farm(stoker, tasks)
    assert (again["done"], again["skipped"]) == (10, 10)
    assert len(ends(tmp_path)) == 10
    assert len(list((tmp_path / "tasks.farm").glob("**/*.*"))) <= 6
    assert list((tmp_path / "tasks.farm/running").iterdir()) == []


def test_failed_tasks_run_again_on_request_only(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "true", "test -e there || exit 7", "nosuchprogram x", "kill -9 $$")
    done = stoker("farm", tasks, code=1)
    assert "task 2 failed: exit code 7 (test -e there || exit 7)" in done.err
    assert "task 4 failed: killed by signal 9 (SIGKILL)" in done.err
    assert "not found" in stoker("farm", tasks, "--output", "--task", "3").out
    (tmp_path / "there").touch()
    assert farm(stoker, tasks, code=1)["failed"] == 3
    assert farm(stoker, tasks, "--retry-failed", code=1)["failed"] == 2
    states = json.loads(stoker("farm", tasks, "--list", "--json").out)
    assert [(task["state"], task["attempts"]) for task in states] == [
        ("done", 1),
        ("done", 2),
        ("failed", 2),
        ("failed", 2),
    ]


def test_retries_end_with_a_success_or_after_their_number(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "echo x >> a; test $(wc -l < a) -ge 3", "echo x >> b; false")
    assert farm(stoker, tasks, "--retries", "2", code=1)["done"] == 1
    assert (tmp_path / "a").read_text() == "x\n" * 3
    assert (tmp_path / "b").read_text() == "x\n" * 3


def test_a_changed_list_runs_new_tasks(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "echo a >> log", "echo b >> log")
    farm(stoker, tasks)
    write(tmp_path, "tasks.txt", "echo c >> log", "echo b >> log", "echo b >> log")
    assert farm(stoker, tasks)["skipped"] == 1
    assert sorted((tmp_path / "log").read_text().split()) == ["a", "b", "b", "c"]


def test_a_task_gets_its_cores_gpus_and_name(stoker: Stoker, tmp_path: Path):
    show = 'echo "$STOKER_TASK $OMP_NUM_THREADS $CUDA_VISIBLE_DEVICES $(taskset -pc $$ | cut -d: -f2)"'
    write(tmp_path, "tasks.dat", *(f"{number} {show}; sleep 0.3" for number in (7, 11)))
    environment = {"CUDA_VISIBLE_DEVICES": "2,GPU-5", "OMP_NUM_THREADS": None}
    farm(stoker, "tasks.dat", "--gpus", "1", "--at-once", "2", "--pin", env=environment)
    lines = stoker("farm", "tasks.dat", "--output").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["7", "1"], ["11", "1"]]
    assert sorted(line.split()[2] for line in lines) == ["2", "GPU-5"]
    assert all(line.split()[3].isdigit() for line in lines)  # one core
    if len(os.sched_getaffinity(0)) > 1:
        assert len({line.split()[3] for line in lines}) == 2
    refused = stoker("farm", write(tmp_path, "more.txt", "true"), "--gpus", "3", code=2, env=environment)
    assert refused.err == "task 1: gpus: 3 (here: 2)\n"


GROW = "import sys,time; x=bytearray(int(sys.argv[1])<<20); time.sleep(20 if len(sys.argv) > 2 else 2.5)"


def test_a_task_without_enough_memory_runs_again_with_more(stoker: Stoker, tmp_path: Path):
    (tmp_path / "grow.py").write_text(GROW)
    tasks = write(tmp_path, "tasks.txt", f"{sys.executable} grow.py 150")
    done = stoker("farm", tasks, "--memory", "120MiB", "--retries", "1", code=0)
    assert "failed" not in done.err
    assert [words[4] for words in ends(tmp_path)] == ["out_of_memory", "done"]
    write(tmp_path, "tasks.txt", f"{sys.executable} grow.py 150 long")
    done = stoker("farm", tasks, "--memory", "60MiB", code=1)
    assert "task 1 failed: more than 60MiB of memory" in done.err


def test_a_short_task_that_fails_with_too_much_memory_runs_again_with_more(stoker: Stoker, tmp_path: Path):
    (tmp_path / "grow.py").write_text(
        "import pathlib, sys; seen = pathlib.Path('seen'); again = seen.exists(); seen.touch()\n"
        "x = bytearray(150 << 20); sys.exit(0 if again else 9)\n"
    )
    tasks = write(tmp_path, "tasks.txt", f"{sys.executable} grow.py")
    large = bytearray(300 << 20)  # the memory of the process that starts Stoker does not count
    farm(stoker, tasks, "--memory", "100MiB", "--retries", "1")
    assert len(large) == 300 << 20
    first, second = ends(tmp_path)
    assert (first[4], second[4]) == ("out_of_memory", "done")
    assert 150 << 20 < int(second[9]) < 200 << 20


def test_a_task_that_takes_too_long_is_stopped(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "sleep 600", "true")
    done = stoker("farm", tasks, "--task-time", "300ms", "--at-once", "2", code=1)
    assert "task 1 failed: longer than 300ms" in done.err
    assert json.loads(stoker("farm", tasks, "--status", "--json").out)["timeout"] == 1


def test_ctrl_c_stops_the_tasks_which_run_again_later(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "trap 'echo stopped >> log; exit 1' TERM; touch on; sleep 600 & wait", "true")
    running = stoker.start("farm", tasks, "--at-once", "1")
    wait_until((tmp_path / "on").exists, "the task runs")
    running.send_signal(signal.SIGINT)
    assert running.wait() == 130
    assert (tmp_path / "log").read_text() == "stopped\n"
    assert json.loads(stoker("farm", tasks, "--status", "--json").out)["waiting"] == 2
    write(tmp_path, "tasks.txt", "true", "true")


def test_a_second_ctrl_c_kills(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "trap '' TERM; touch on; while true; do sleep 1; done")
    running = stoker.start("farm", tasks)
    wait_until((tmp_path / "on").exists, "the task runs")
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    wait_until(lambda: running.poll() is not None or running.send_signal(signal.SIGINT), "the farm ends", every=0.5)
    assert running.returncode in (130, 143, -signal.SIGINT)  # the last when it was ending already


def test_processes_that_a_task_leaves_behind_are_killed(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "sleep 600 & echo $! > pid")
    farm(stoker, tasks)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text(), "it ended")


def test_a_killed_farm_resumes_and_runs_no_completed_task_twice(stoker: Stoker, tmp_path: Path):
    count, slots, kills = 300, 3, 8
    tasks = write(tmp_path, "tasks.txt", *(f"sleep 0.02; echo {n} >> log" for n in range(count)))
    for kill in range(kills):
        started = len(ends(tmp_path)) if (tmp_path / "tasks.farm").exists() else 0
        running = stoker.start("farm", tasks, "--at-once", str(slots))
        wait_until(
            lambda before=started: (tmp_path / "tasks.farm/ledger").exists() and len(ends(tmp_path)) > before + 10,
            f"tasks end after kill {kill}",
            every=0.01,
        )
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert farm(stoker, tasks, "--at-once", str(slots))["done"] == count
    ended = [int(words[1]) for words in ends(tmp_path)]
    assert sorted(ended) == list(range(count))
    ran = [int(line) for line in (tmp_path / "log").read_text().split()]
    # Only a task that ran at the moment of a kill may have run twice.
    assert sorted(set(ran)) == list(range(count))
    assert len(ran) <= count + kills * slots


def test_processes_of_a_killed_farm_end(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", "sh -c 'echo $$ > pid; sleep 600' & wait")
    running = stoker.start("farm", tasks)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the task runs")
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    pid = int((tmp_path / "pid").read_text())
    write(tmp_path, "tasks.txt", "sh -c 'echo $$ > pid; sleep 600' & wait", "true")
    again = stoker.start("farm", tasks)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text(), "it ended")
    again.send_signal(signal.SIGTERM)
    assert again.wait() == 143


def test_several_workers_share_a_farm(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", *(f"sleep 0.05; echo {n} >> log" for n in range(60)))
    workers = [stoker.start("farm", tasks, "--at-once", "2") for _ in range(3)]
    assert {worker.wait() for worker in workers} <= {0, 1}
    assert farm(stoker, tasks)["done"] == 60
    assert sorted(int(line) for line in (tmp_path / "log").read_text().split()) == list(range(60))


STEPS = """
- {name: c, command: cat b.out > c.out, needs: b.out, makes: c.out}
- {name: a, command: echo a > a.out; echo a >> log, makes: a.out}
- {name: b, command: cat a.out > b.out; echo b >> log, needs: [a.out, in], makes: b.out}
- {name: d, command: false, after: c}
- {name: e, command: touch e.out, after: [d], makes: e.out}
"""


def test_tasks_of_a_yaml_list_run_in_order_and_only_when_out_of_date(stoker: Stoker, tmp_path: Path):
    (tmp_path / "in").touch()
    (tmp_path / "tasks.yaml").write_text(STEPS)
    first = farm(stoker, "tasks.yaml", code=1)
    assert (first["done"], first["failed"], first["waiting"]) == (3, 1, 1)
    assert (tmp_path / "c.out").read_text() == "a\n"
    assert farm(stoker, "tasks.yaml", code=1)["done"] == 3
    assert (tmp_path / "log").read_text() == "a\nb\n"
    os.utime(tmp_path / "in", (2**31, 2**31))  # later than all outputs
    farm(stoker, "tasks.yaml", code=1)
    assert (tmp_path / "log").read_text() == "a\nb\nb\n"
    (tmp_path / "tasks.yaml").write_text(STEPS.replace("echo a > a.out", "echo A > a.out"))
    os.utime(tmp_path / "in", (1, 1))
    farm(stoker, "tasks.yaml", code=1)
    assert (tmp_path / "c.out").read_text() == "A\n"


def test_a_task_that_does_not_make_its_file_fails(stoker: Stoker, tmp_path: Path):
    (tmp_path / "tasks.yaml").write_text("- {command: 'true', makes: x.out}\n")
    assert "task 1 failed: did not make x.out" in stoker("farm", "tasks.yaml", code=1).err


@pytest.mark.needs("mount")
def test_a_full_disk_stops_the_farm_and_loses_nothing(stoker: Stoker, tmpfs):
    disk = tmpfs("1M")
    write(disk, "tasks.txt", *(f"head -c 100000 /dev/zero; echo {n} >> {stoker.folder}/log" for n in range(30)))
    assert "no space left on device" in stoker("farm", "tasks.txt", cwd=disk, code=1).err
    done = json.loads(stoker("farm", "tasks.txt", "--status", "--json", cwd=disk).out)["done"]
    assert 0 < done < 30
    for spool in (disk / "tasks.farm/output").iterdir():
        spool.unlink()
    write(disk, "tasks.txt", *(f"head -c 100000 /dev/zero; echo {n} >> {stoker.folder}/log" for n in range(done + 2)))
    assert json.loads(stoker("farm", "tasks.txt", "--json", cwd=disk, code=0).out)["done"] == done + 2


def test_a_dry_run_shows_allocations_hours_and_files(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", *(f"sim {n}" for n in range(1000)))
    words = ["--time", "2h", "--cpus-per-node", "8", "--task-time", "10m", "--nodes", "2", "--dry-run"]
    assert farm(stoker, tasks, *words) == {"tasks": 1000, "allocations": 6, "files": 18, "task_seconds": 600}
    assert not (tmp_path / "tasks.farm").exists()
    assert "6 allocations x 2 nodes x 2h: 24 node hours, 192 core hours" in stoker("farm", tasks, *words).out
    refused = stoker("farm", tasks, "--time", "2h", code=2)
    assert refused.err.startswith("farm: no number of cores per node (--cpus-per-node)\n")
    assert "farm: no length of the allocations (--time)" in stoker("farm", tasks, "--nodes", "2", code=2).err


def peak_bytes(pid: int) -> int:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@pytest.mark.soak
def test_a_million_tasks_need_bounded_memory(stoker: Stoker, tmp_path: Path):
    tasks = write(tmp_path, "tasks.txt", *(f"true {n}" for n in range(1_000_000)))
    ledgers = tmp_path / "tasks.farm/ledger"
    for enough in (2000, 4000):
        running = stoker.start("farm", tasks)
        wait_until(lambda wanted=enough: ledgers.exists() and len(ends(tmp_path)) > wanted, "tasks end", every=1)
        assert peak_bytes(running.pid) < 150_000_000
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
    assert len(list((tmp_path / "tasks.farm").glob("**/*"))) < 20


def test_tasks_find_the_datasets_of_the_job_file(stoker: Stoker, tmp_path: Path):
    data = indexed_files(stoker, tmp_path, [("a.txt", b"a"), ("b.txt", b"b")])
    environment = {"STOKER_CACHE": tmp_path / "cache"}
    for place, folder in (("shared", str(data)), ("local", f"{tmp_path}/cache/datasets/")):
        write(tmp_path, "job.yaml", "name: toy", "run: 'true'", f"data: {{train: {{source: shards, place: {place}}}}}")
        tasks = write(
            tmp_path, f"{place}.txt", "echo $STOKER_DATA_TRAIN; ls $STOKER_DATA_TRAIN", "echo $STOKER_DATA_TRAIN"
        )
        farm(stoker, tasks, "--job", "job.yaml", env=environment)
        out = stoker("farm", tasks, "--output", code=0).out
        assert out.count(folder) == 2, out
        assert "train-000000.tar\n" in out


def test_datasets_in_a_ram_disk_are_refused_for_a_farm(stoker: Stoker, tmp_path: Path):
    indexed_files(stoker, tmp_path, [("a.txt", b"a")])
    write(tmp_path, "tasks.txt", "true")
    write(tmp_path, "job.yaml", "name: toy", "run: 'true'", "data: {train: {source: shards, place: memory}}")
    refused = stoker("farm", "tasks.txt", "--job", "job.yaml", code=2).err
    assert "data.train.place: memory: a farm copies datasets only to the disk of a node (job.yaml:3:" in refused
    assert "\n  try: --set data.train.place=local\n" in refused
    farm(
        stoker,
        "tasks.txt",
        "--job",
        "job.yaml",
        "--set",
        "data.train.place=local",
        env={"STOKER_CACHE": tmp_path / "cache"},
    )
