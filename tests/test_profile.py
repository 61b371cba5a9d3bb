"""`stoker profile`: parts that add up, from records of runs and traces; bad files; the French text."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from run_folders import BEGIN, RunFolder

TRACE = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 64)), batch_size=16)
def save(prof):
    prof.export_chrome_trace(sys.argv[1])
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=save) as prof:
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        with record_function("checkpoint"):
            torch.randn(10)
        prof.step()
"""


def profiled(stoker, *words: str | Path, code: int = 0) -> dict:
    return json.loads(stoker("profile", *words, "--json", code=code).out)


def assert_adds_up(profile: dict) -> None:
    assert profile["ranks"]
    for rank in profile["ranks"]:
        assert all(nanos >= 0 for nanos in rank["nanoseconds"].values())
        assert sum(rank["nanoseconds"].values()) == rank["nanoseconds_total"] > 0
    assert sum(profile["seconds"].values()) == pytest.approx(profile["step_s"])


@pytest.fixture
def trained(tmp_path):
    """A run of two ranks and 150 steps, by its records."""
    run = RunFolder.create(tmp_path / "runs")
    run.started(1, BEGIN)
    for rank in (0, 1):
        end = run.steps(1, rank, 1, 150, BEGIN)
    run.ended(1, end, "done", 0)
    return run


def test_the_trainers_records_are_split_exactly(stoker, trained):
    found = profiled(stoker, "last", "--steps", "10..109")
    assert_adds_up(found)
    assert (found["source"], found["steps"]) == ("trainer", {"first": 10, "last": 109, "warm_up": 0})
    for rank in (0, 1):
        rows = [row for row in trained.rows[1, rank] if 10 <= row["step"] <= 109]
        mean = {
            part: sum(row[f"{part}_s"] for row in rows) / 100 for part in ("data", "backward", "checkpoint", "step")
        }
        assert found["ranks"][rank]["step_s"] == pytest.approx(mean.pop("step"))
        for part, seconds in mean.items():
            assert found["ranks"][rank]["seconds"][part] == pytest.approx(seconds)
    assert found["worst_ranks"]["communication"] == 1
    assert found["gains"][0]["without"] == "communication"
    assert found["command"] == "stoker run job.yaml --set train.accumulate=2"


def test_the_text_names_parts_ranks_gains_and_the_next_command(stoker, trained):
    text = stoker("profile", code=0).out
    assert text.startswith(
        "2025-11-21T10-03-11_3f2c1aa_resnet20_k7q2, attempt 1, 2 ranks\n  steps 1-150: mean of 150\n"
    )
    for words in ("wait for data", "communication not hidden", "rank 1: 10.3 ms", "next           stoker run job.yaml"):
        assert words in text
    french = stoker("profile", "--lang", "fr", code=0).out
    for words in ("attente des données", "rang 1", "gain possible"):
        assert words in french


def test_wrong_ranges_and_missing_records_are_errors(stoker, trained):
    assert (
        "'x' is not a range of steps, such as 100..500, 100.. or ..500" in stoker("profile", "--steps", "x", code=2).err
    )
    assert "no recorded step in this range (--steps)" in stoker("profile", "--steps", "900..", code=1).err
    assert "attempt 7" in stoker("profile", "--attempt", "7", code=1).err
    for file in trained.path.glob("attempts/1/metrics-*"):
        file.unlink()
    assert "has no records of steps or collectives" in stoker("profile", code=1).err
    assert json.loads(stoker("profile", "--json", code=1).out)["error"]["code"] == "not_found"


def test_a_trace_of_torch_is_split_by_its_operators(stoker, tmp_path):
    trace = tmp_path / "rank0.json"
    subprocess.run([sys.executable, "-c", TRACE, trace], check=True, capture_output=True)
    found = profiled(stoker, trace)
    assert_adds_up(found)
    events = json.loads(trace.read_text())["traceEvents"]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert found["ranks"][0]["steps"] == len(steps) == 3
    assert found["ranks"][0]["nanoseconds_total"] == pytest.approx(1000 * sum(step["dur"] for step in steps), abs=10)
    for part in ("data", "forward", "backward", "optimizer", "checkpoint"):
        assert found["seconds"][part] > 0, part
    packed = tmp_path / "rank0.json.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    again = profiled(stoker, packed)
    assert {**again, "subject": ""} == {**found, "subject": ""}


def test_files_that_end_early_are_used_and_others_refused(stoker, tmp_path):
    step = '{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 100}'
    (tmp_path / "cut.json").write_text('{"traceEvents": [' + step + ', {"ph": "X", "na')
    cut = profiled(stoker, "cut.json")
    assert cut["seconds"]["other"] == pytest.approx(1e-4)
    assert cut["notes"] == ["cut.json: ends early: what follows is missing"]
    whole = gzip.compress(('{"traceEvents": [' + ",".join([step] * 20000) + "]}").encode())
    (tmp_path / "cut.json.gz").write_bytes(whole[: len(whole) // 2])
    assert "cut.json.gz" in profiled(stoker, "cut.json.gz")["notes"][0]
    for name, text, message in (
        ("words.json", "{words}", "words.json: byte 1: no Chrome trace: a key is missing"),
        ("empty.json", "", "empty.json: is no trace (JSON), no records of steps (CSV) and no log of NCCL"),
        ("else.json", '{"a": 1}', "else.json: no Chrome trace: it has no traceEvents"),
        ("nothing.json", '{"traceEvents": []}', "nothing.json: no recorded step"),
        ("table.csv", "a,b\n1,2\n", "table.csv: no recorded step"),
    ):
        (tmp_path / name).write_text(text)
        failed = stoker("profile", name)
        assert failed.code in (1, 2) and message in failed.err, failed.err
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps/profile-0003.csv").write_text("step,data_s,step_s\n1,0.25,1\n2,0.25,1\n")
    found = profiled(stoker, "steps")
    assert (found["ranks"][0]["rank"], found["seconds"]["data"], found["source"]) == (3, 0.25, "program")
    assert "do not add up" in stoker("profile", "cut.json", "steps", code=2).err
    (tmp_path / "bare").mkdir()
    assert "bare: no trace, no records of steps and no NCCL log in this folder" in stoker("profile", "bare", code=1).err


def test_logs_of_nccl_give_collectives_by_group_and_size(stoker, trained, tmp_path):
    start = (
        "n1:10:11 [{0}] NCCL INFO ncclCommInitRank comm 0x5{0} rank {0} nranks 2 busId 1 commId 0xabc - Init COMPLETE\n"
    )
    reduce = (
        "n1:10:11 [{0}] NCCL INFO AllReduce: opCount {1:x} sendbuff 0x1 recvbuff 0x2 count 1000 datatype 9 op 0 root 0 "
    )
    for rank in (0, 1):
        lines = [reduce.format(rank, i) + f"comm 0x5{rank} [nranks=2] stream 0x6\n" for i in range(20)]
        trained.log(1, rank, start.format(rank) + "epoch 1\n" + "".join(lines) + reduce.format(rank, 21))
    found = profiled(stoker, "last")
    assert_adds_up(found)
    (row,) = found["collectives"]
    assert (row["operation"], row["element"], row["group"]) == ("all-reduce", "bfloat16", "0xabc")
    assert (row["ranks"], row["bytes"], row["count"], row["timed"], row["mean_s"]) == (2, 2000, 40, 0, None)
    assert any("damaged lines of NCCL skipped: 2" in note for note in found["notes"])
    log = trained.path / "attempts/1/rank-0000.log"
    alone = profiled(stoker, log)
    assert (alone["source"], alone["collectives"][0]["count"], alone["ranks"]) == ("none", 20, [])
    text = stoker("profile", log, code=0).out
    assert "all-reduce   0xabc       2   2.00 kB      20" in text and "no durations" in text
    measured = {"coll": "ReduceScatter", "coll_msg_size_bytes": 4000, "coll_exec_time_us": 8}
    (tmp_path / "n1.log").write_text(json.dumps({"header": {"id": "0x1f", "n_ranks": 4}, "coll_perf": measured}) + "\n")
    (row,) = profiled(stoker, "n1.log")["collectives"]
    assert (row["operation"], row["algorithm_bytes_per_s"], row["bus_bytes_per_s"]) == ("reduce-scatter", 5e8, 3.75e8)
    (tmp_path / "plain.log").write_text("epoch 1\n")
    assert "no log of NCCL" in stoker("profile", "plain.log", code=2).err


@pytest.mark.soak
def test_traces_of_two_ranks_show_their_communication(stoker, tmp_path):
    """Real ranks of torch's DistributedDataParallel over gloo, beside torch's own sums over their events."""
    (tmp_path / "train.py").write_text(
        "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
        + TRACE.replace("optimizer =", "model = torch.nn.parallel.DistributedDataParallel(model)\noptimizer =")
        .replace("sys.argv[1]", "f'rank{dist.get_rank()}.json'")
        .replace("activities=", "record_shapes=True, activities=")
    )
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    subprocess.run(launch, cwd=tmp_path, check=True, capture_output=True)
    found = profiled(stoker, "rank0.json", "rank1.json")
    assert_adds_up(found)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    spans = []
    for rank in (0, 1):
        events = json.loads((tmp_path / f"rank{rank}.json").read_text())["traceEvents"]
        spans += [event["dur"] for event in events if event["name"] == "gloo:all_reduce"]
    rows = [row for row in found["collectives"] if row["operation"] == "all-reduce"]
    assert sum(row["count"] for row in rows) == len(spans) > 0
    assert sum(row["count"] * row["mean_s"] for row in rows) == pytest.approx(1e-6 * sum(spans))
    assert all(row["ranks"] == 2 and row["bytes"] > 0 for row in rows)
    assert found["communication_s"] > 0
