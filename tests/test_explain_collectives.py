"""Collectives that ranks wait in: what torch's flight recorder left of them, in a run, a folder or a file."""

import shutil
import sys

from conftest import REPOSITORY
from running import Job

DUMPS = REPOSITORY / "tests/golden/torch-flight"

# NCCL's watchdog writes the dumps itself; gloo has none.
SCRIPT = """\
import datetime, os, time
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=4))
rank = dist.get_rank()
dist.all_reduce(torch.ones(25))
try:
    if rank == 0:
        dist.all_reduce(torch.ones(7, 2))
    else:
        time.sleep(5)
finally:
    with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank), "wb") as file:
        file.write(_dump_fr_trace())
    time.sleep(2)
"""


def test_a_run_keeps_torch_s_flight_recorder_and_explain_names_the_missing_rank(stoker, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    job = Job(tmp_path, f"{sys.executable} train.py")
    stoker("run", "job.yaml", code=1)
    attempt = job.run_folder() / "attempts/1"
    assert sorted(path.name for path in attempt.glob("torch-flight-*")) == ["torch-flight-0", "torch-flight-1"]
    explained = stoker("explain", "last", code=0).out
    assert "cause      rank 1: on " in explained, explained
    assert (
        "it never joined all-reduce 2 of float32 [7, 2], which its peers wait in: "
        "its last collective was all-reduce 1 of float32 [25], done (at train.py:9)"
    ) in explained
    assert "evidence   flight recorder" in explained


def test_one_dump_is_read_with_the_dumps_of_its_peers(stoker, tmp_path):
    for rank in range(2):
        shutil.copy(DUMPS / f"mismatch-{rank}.bin", tmp_path / f"mismatch-{rank}")
    explained = stoker("explain", tmp_path / "mismatch-0", code=0).out
    cause = (
        "rank 1: it called broadcast 2 of bfloat16 [1024, 8] (at train.py:91), "
        "and its peers called all-reduce 2 of bfloat16 [1024, 8]"
    )
    assert cause in explained
    (tmp_path / "nccl").mkdir()
    for rank in range(4):
        shutil.copy(DUMPS / f"nccl-{rank}.bin", tmp_path / f"nccl/nccl_trace_rank_{rank}")
    explained = stoker("explain", tmp_path / "nccl", code=0).out
    assert "rank 2: it never joined all-gather 3 of bfloat16 [512], which its peers wait in" in explained


def test_a_dump_that_is_cut_off_or_runs_code_is_named(stoker, tmp_path):
    for rank in (0, 1):
        (tmp_path / f"trace-{rank}").write_bytes((DUMPS / f"mismatch-{rank}.bin").read_bytes())
    whole = (tmp_path / "trace-1").read_bytes()
    (tmp_path / "trace-1").write_bytes(whole[: len(whole) // 2])
    explained = stoker("explain", tmp_path, code=0).out
    assert f"not read   {tmp_path}/trace-1: pickle ends early" in explained
    assert "likely: rank 1: it has reported nothing, and probably never joined all-reduce 2" in explained
    (tmp_path / "trace-1").write_bytes(b"\x80\x02}cposix\nsystem\n(X\x05\x00\x00\x00touchtR.")
    explained = stoker("explain", tmp_path, code=0).out
    assert "pickle has opcode 99, which plain values do not need" in explained
