"""`stoker profile`: parts that add up, from records of runs and traces; bad files; the French text."""

import gzip
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY
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
        (
            "empty.json",
            "",
            "empty.json: is no trace (JSON), no records of steps (CSV), no log of NCCL and no flight recorder",
        ),
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
    bare = "bare: no trace, no records of steps, no NCCL log and no flight recorder in this folder"
    assert bare in stoker("profile", "bare", code=1).err


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


def flight_file(rank: int, collectives: list[tuple[bytes, int, float]]) -> bytes:
    """A trainer's flight recorder by docs/formats/flight.md, with operation, bytes and seconds of each collective."""
    head = struct.pack("<8sIIqqII", b"STKFLGHT", 1, rank, 77, 0, 1024, 88)
    records = b""
    for number, (operation, size, seconds) in enumerate(collectives, 1):
        times = (10**9, 10**9 + round(seconds * 1e9))
        records += struct.pack(
            "<QqqQ16s16s4IiI", number, *times, size, operation, b"float32", size // 4, 0, 0, 0, -1, 1
        )
    return (head.ljust(4096, b"\0") + records).ljust(4096 + 1024 * 88, b"\0")


def test_flight_recorders_give_collectives_with_durations(stoker, trained, tmp_path):
    attempt = trained.path / "attempts/1"
    for rank in (0, 1):
        (attempt / f"flight-{rank:04}.bin").write_bytes(
            flight_file(rank, [(b"all-reduce", 4000, 0.5), (b"all-reduce", 4000, 0.25 + 0.25 * rank)])
        )
    for words in (["last"], [attempt / "flight-0000.bin", attempt / "flight-0001.bin"]):
        (row,) = profiled(stoker, *words)["collectives"]
        assert (row["operation"], row["element"], row["group"], row["ranks"]) == (
            "all-reduce",
            "float32",
            "all ranks",
            2,
        )
        assert (row["bytes"], row["count"], row["timed"], row["mean_s"]) == (4000, 4, 4, 0.4375)
        assert (row["algorithm_bytes_per_s"], row["bus_bytes_per_s"]) == (16000, 16000)
    (tmp_path / "dumps").mkdir()
    for rank in range(4):
        shutil.copy(REPOSITORY / f"tests/golden/torch-flight/nccl-{rank}.bin", tmp_path / f"dumps/torch-flight-{rank}")
    dumps = profiled(stoker, *sorted((tmp_path / "dumps").iterdir()))
    assert dumps["source"] == "none"
    assert profiled(stoker, "dumps")["collectives"] == dumps["collectives"] != []
    rows = {(row["operation"], row["group"]): row for row in dumps["collectives"]}
    assert set(rows) == {("all-reduce", "all ranks"), ("broadcast", "all ranks"), ("all-reduce", "tensor")}
    broadcast = rows["broadcast", "all ranks"]
    assert (broadcast["ranks"], broadcast["bytes"], broadcast["mean_s"]) == (4, 2 * 6016, 1.5e-3)
    # gloo times nothing.
    gloo = profiled(stoker, *(REPOSITORY / f"tests/golden/torch-flight/gloo-{rank}.bin" for rank in (0, 1)))
    counts = {(row["operation"], row["bytes"]): (row["count"], row["timed"]) for row in gloo["collectives"]}
    assert counts["all-reduce", 100] == counts["broadcast", 96] == (2, 0)
    assert gloo["notes"] == ["torch's flight recorder has durations only with TORCH_NCCL_ENABLE_TIMING=1"]
    cut = tmp_path / "flight-0000.bin"
    cut.write_bytes((attempt / "flight-0000.bin").read_bytes()[:5000])
    assert "flight-0000.bin: no collective that ended: " in stoker("profile", cut, code=1).err


def test_traces_that_a_script_writes_to_its_attempt_are_used(stoker, tmp_path):
    run = RunFolder.create(tmp_path / "runs")
    run.started(1, BEGIN)
    step = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "dur": 100}
    events = [step | {"name": f"ProfilerStep#{number}", "ts": 100 * number} for number in range(3)]
    for rank in (0, 1):
        (run.attempt(1) / f"node1_{rank}.17.pt.trace.json").write_text(json.dumps({"traceEvents": events}))
    # Neither a trace of a step nor one at all.
    (run.attempt(1) / "traceback.json").write_text("none")
    run.ended(1, BEGIN + 9, "done", 0)
    found = profiled(stoker, "last")
    assert (found["source"], len(found["ranks"]), found["step_s"]) == ("trace", 2, pytest.approx(1e-4))
    assert_adds_up(found)


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
