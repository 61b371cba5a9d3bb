"""`stoker profile` on a trace of torch.profiler: time and memory, beside HTA (HolisticTraceAnalysis) on a smaller one.

    bench/profile_trace.py [--size 2000000000] [--peer-size 100000000] [--rounds 3]

The trace is generated like that of a training on one GPU: operators, launches, kernels with their arguments, NCCL's kernels on a
second stream, flows and steps. Both tools must find the same time of compute. Limits: 60 s and 500 MB for 2 GB."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import BIN

SECONDS, BYTES = 60.0, 500e6
HEAD = """{
  "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_count": 1}, "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1763000000000000000,
  "traceEvents": [
"""
STEP = (
    '  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 4711, "tid": 4711, "ts": %.3f, "dur": %.3f, '
    '"args": {"External id": %d, "Record function id": 0, "Ev Idx": 0}},\n'
)
LAYER = (
    '  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 4711, "tid": 4711, "ts": %.3f, "dur": %.3f, "args": '
    '{"External id": %d, "Record function id": 0, "Sequence number": 4711, "Fwd thread id": 0, "Ev Idx": 281}},\n'
    '  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711, "ts": %.3f, "dur": 3.211, '
    '"args": {"External id": %d, "cbid": 211, "correlation": %d}},\n'
    '  {"ph": "s", "id": %d, "pid": 4711, "tid": 4711, "ts": %.3f, "cat": "ac2g", "name": "ac2g"},\n'
    '  {"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", '
    '"pid": 0, "tid": 7, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "queued": 0, "device": 0, "context": 1, '
    '"stream": 7, "correlation": %d, "registers per thread": 168, "shared memory": 213504, "blocks per SM": 0.96969694, '
    '"warps per SM": 11.636364, "grid": [8, 16, 1], "block": [384, 1, 1], "est. achieved occupancy %%": 18}},\n'
    '  {"ph": "f", "id": %d, "pid": 0, "tid": 7, "ts": %.3f, "cat": "ac2g", "name": "ac2g", "bp": "e"},\n'
)
REDUCE = (
    '  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long)", "pid": 0, '
    '"tid": 20, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "device": 0, "stream": 20, "correlation": %d, '
    '"Collective name": "allreduce", "In msg nelems": 13107200, "Out msg nelems": 13107200, "Group size": 8, "dtype": "BFloat16", '
    '"Process Group Name": "0", "Process Group Description": "default_pg"}},\n'
)
LAYERS, LAYER_US, KERNEL_US = 1000, 40.0, 30.0


def step(number: int) -> str:
    """Kernels of 30 us every 40 us, and a collective that runs into the idle time at the end."""
    begin, first = number * (LAYERS * LAYER_US + 2000), number * LAYERS * 10
    text = [STEP % (number, begin, LAYERS * LAYER_US + 2000, first)]
    for i in range(LAYERS):
        at, key = begin + i * LAYER_US, first + i * 10
        run = at + 9
        text.append(
            LAYER % (at, 12.5, key, at + 4, key, key, key, at + 4, run, KERNEL_US, key, key, key, run)
        )  # fmt: skip
    text.append(REDUCE % (begin + LAYERS * LAYER_US - 1000, 2000.0, first + 5, first + 5))
    return "".join(text)


def generate(path: Path, size: int) -> int:
    """Writes about `size` bytes; returns the number of steps."""
    with path.open("w") as file:
        file.write(HEAD)
        number, written = 0, 0
        while written < size:
            written += file.write(step(number))
            number += 1
        file.write('  {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1.0}\n]}\n')
    return number


def measured(command: list[str], **options) -> tuple[float, int, str]:
    """Seconds, peak bytes of memory, and the output."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]}: exit status {status}")
    return time.monotonic() - begin, usage.ru_maxrss * 1024, out


HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
row = TraceAnalysis(trace_dir=sys.argv[1]).get_temporal_breakdown(visualize=False).iloc[0]
print(json.dumps(float(row["compute_time(us)"])))
"""


def compare_with_hta(folder: Path, size: int, python: str) -> None:
    trace = folder / "hta" / "rank0.json"
    trace.parent.mkdir()
    steps = generate(trace, size)
    ours, memory, out = measured([str(BIN / "stoker"), "profile", str(trace), "--json"])
    compute = 1e3 * json.loads(out)["seconds"]["compute"]
    theirs, peak, out = measured([python, "-c", HTA, str(trace.parent)], stderr=subprocess.DEVNULL)
    found = json.loads(out.splitlines()[-1]) / 1e3 / (steps - 1)  # HTA leaves out the last step
    print(
        f"beside HTA on {trace.stat().st_size / 1e6:.0f} MB: {ours:.2f} s and {memory / 1e6:.0f} MB, HTA {theirs:.1f} s and "
        f"{peak / 1e6:.0f} MB; compute per step {compute:.3f} ms, HTA {found:.3f} ms"
    )
    if abs(found - compute) > 0.01 * compute:
        sys.exit("the two disagree")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2_000_000_000)
    parser.add_argument(
        "--peer-size", type=int, default=100_000_000, help="of the trace for HTA, which keeps all events"
    )
    parser.add_argument("--python", default=sys.executable, help="a Python with HolisticTraceAnalysis")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = folder / "rank0.json"
        steps = generate(trace, options.size)
        seconds, memory = [], []
        for _ in range(options.rounds):
            took, peak, out = measured([str(BIN / "stoker"), "profile", str(trace), "--json"])
            profile = json.loads(out)
            assert profile["ranks"][0]["steps"] == steps, profile["ranks"]
            assert abs(profile["seconds"]["compute"] - LAYERS * KERNEL_US * 1e-6) < 1e-9, profile["seconds"]
            seconds.append(took)
            memory.append(peak)
        size = trace.stat().st_size
        trace.unlink()
        scale = size / 2e9
        is_met = statistics.median(seconds) <= SECONDS * scale and max(memory) <= BYTES
        print(
            f"{size / 1e9:.2f} GB, {steps} steps: {statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}; at "
            f"most {SECONDS * scale:.0f}), {max(memory) / 1e6:.0f} MB (at most {BYTES / 1e6:.0f}), load {os.getloadavg()[0]:.1f}: "
            f"{'met' if is_met else 'MISSED'}"
        )
        if subprocess.run([options.python, "-c", "import hta"], capture_output=True).returncode == 0:
            compare_with_hta(folder, options.peer_size, options.python)
        else:
            print("HTA is not installed: pip install HolisticTraceAnalysis (--python)")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
