"""Small whole inputs for the harnesses of fuzz/ that read what is no dataset: batch scripts, logs, what Slurm prints, frames
of ranks, events, metrics, flight recorders, job files."""

import base64
import json
import struct
import zlib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

SCRIPT = b"""#!/bin/bash
#SBATCH --job-name=x --nodes=2
#SBATCH --gres=gpu:2  # two
#SBATCH --array=1-4%2 --time=1-02:03:04
module load cuda/12 2>/dev/null || exit 1
export A="${B:-$(hostname)}" C='d e'
for i in $(seq 3); do srun --ntasks=4 python train.py "$i" & done; wait
if [[ -f x && $A == b* ]]; then cat <<END | tee log
$A `date`
END
fi
case $1 in a|b) torchrun --nproc_per_node=2 t.py;; *) f() { :; }; f ;; esac
"""
LOG = b"""epoch 1 loss 0.5
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 3, in <module>
[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-01-02T03:04:05 DUE TO TIME LIMIT ***
slurmstepd: error: Detected 1 oom_kill event in StepId=7.0
srun: error: n2: task 3: Exited with exit code 1
"""
# Communicators and collectives of several versions of NCCL.
NCCL = b"""n1:10:11 [0] NCCL INFO comm 0x5 rank 1 nranks 4 cudaDev 0 busId 1b000 commId 0xabc - Init COMPLETE
n1:10:11 [0] NCCL INFO ncclCommSplit comm 0x6 rank 0 nranks 2 busId 1 parent 0x5 childCount 3 color 7 key 0 - Init COMPLETE
n1:10:11 [0] NCCL INFO AllReduce: opCount 1a sendbuff 0x1 recvbuff 0x2 count 100 datatype 7 op 0 root 0 comm 0x6 [nranks=2] stream 0x6
n1:10:11 [0] NCCL INFO comm 0x6 rank 0 nranks 2 cudaDev 0 busId 1 - Destroy COMPLETE
{"header":{"id":"0x1f","n_ranks":4},"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":1000,"coll_exec_time_us":10.5}}
"""
# Two of torch.profiler: an object, and an array.
TRACE = b"""{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2, "pg_count": 1}, "traceEvents": [
{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 1.5, "args": {"name": "python"}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 1.5, "dur": 90.25, "args": {"Ev Idx": 0}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "pid": 0, "tid": 7, "ts": 20, "dur": 5e1,
"args": {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, "dtype": "Float"}},
{"ph": "X", "cat": "user_annotation", "name": "gloo:all_gather", "ts": 4, "dur": 1, "args": {"Input type": ["float"], "Input Dims": [[8, 2]]}},
{"cat": "exchange", "ph": "e", "id": "1.7", "ts": 90, "args": {"outcome": "done \\" ]"}}], "traceName": "t"}"""
# Metrics in the output of programs.
PRINTED = b"""\r 33%|###  | 100/300 [00:10<00:20,  9.5it/s]
{'loss': 0.5, 'grad_norm': '1.25', 'epoch': 0.33}
{"step": 20, "train": {"x": [1, 2]}, "loss": NaN}
Epoch 2:  45%|####5| 45/100 [00:01<00:01, 33.2it/s, v_num=0, train_loss=0.5]
Epoch 3/10
\x1b[1m 45/100\x1b[0m 1s 12ms/step - accuracy: 0.5 - loss: 6.0e-01
step 3 loss 0.5
"""
# A scalar of TensorBoard, and a row of W&B; the harnesses frame them.
EVENT = (
    b"\x09" + struct.pack("<d", 1763719411.5) + b"\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 0.25)
)
HISTORY = b"\x12\x15\x0a\x0d\x0a\x04loss\x82\x01\x040.25\x0a\x04\x0a\x02_x"
JOB_TABLE = (
    b"JOBID|STATE|REASON|START_TIME|END_TIME|COMMENT\n7_[1-3%2]|PENDING|Priority|N/A|N/A|(null)\n8|RUNNING|None|1|2|x\n"
)


def frame(kind: str, fields: dict[str, str]) -> bytes:
    """Layout: docs/formats/messages.md."""
    body = struct.pack("<H", len(kind)) + kind.encode() + struct.pack("<H", len(fields))
    for name, value in sorted(fields.items()):
        body += struct.pack("<H", len(name)) + name.encode() + struct.pack("<I", len(value)) + value.encode()
    return MAGIC + struct.pack("<I", len(body)) + body


MAGIC = b"STK1"


def flight() -> bytes:
    """A head and places for four collectives, two of them complete (docs/formats/flight.md)."""
    head = struct.pack("<8sIIqqII64s", b"STKFLGHT", 1, 0, 42, 10**9, 4, 88, b"node1").ljust(4096, b"\0")
    form = "<Qqqq16s16s4IiI"
    done = struct.pack(form, 1, 10, 20, 6016, b"broadcast", b"uint8", 6016, 0, 0, 0, 0, 1)
    waits = struct.pack(form, 2, 30, 0, 400, b"all-reduce", b"float32", 10, 10, 0, 0, -1, 3)
    return head + (done + waits).ljust(4 * 88, b"\0")


def trace() -> bytes:
    step = {"name": "step 1", "cat": "step", "ph": "X", "ts": 0, "dur": 100}
    phase = {"name": "forward", "cat": "phase", "ph": "X", "ts": 10, "dur": 20}
    return b"[\n" + b",\n".join(json.dumps(event).encode() for event in (step, phase)) + b"\n]\n"


def safetensors() -> bytes:
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
            "b": {"dtype": "U8", "shape": [], "data_offsets": [8, 9]},
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + bytes(9)


def events() -> bytes:
    found = [
        {"time": 1.5, "kind": "attempt_started", "attempt": 1, "ranks": 2},
        {"time": 2, "kind": "rank_started", "rank": 0, "pid": 42, "host": "n1"},
        {"time": 3, "kind": "checkpoint_saved", "step": 7, "seconds": 0.5},
        {"time": 4, "kind": "rank_ended", "rank": 1, "exit_code": 7, "signal": 0},
        {"time": 5, "kind": "attempt_ended", "outcome": "failed", "reasons": ["a", "b"]},
    ]
    return b"".join(json.dumps(event).encode() + b"\n" for event in found)


def share() -> bytes:
    """The three parts of a record behind its checksum, whose manifest has a wrong checksum."""
    marker = {"save": "s", "layout": "l", "samples": [], "stall_s": 0, "write_s": 0, "rank_state": {}, "files": []}
    manifest = {
        "checksum": "0" * 8,
        "version": 1,
        "incompatible": [],
        "step": 2,
        "save": "s",
        "run": "r",
        "world_size": 1,
    }
    return b'{"rank":0}\n' + json.dumps(marker).encode() + b"\n" + json.dumps(manifest).encode() + b"\n"


def lab() -> bytes:
    node = {"name": "n1", "port": 6818, "address": "10.0.0.1", "gpus": 1}
    return json.dumps({"cpus": 2, "gpus": 1, "controller_port": 6817, "database_port": 6819, "nodes": [node]}).encode()


def zip_of_torch() -> bytes:
    """One stored member and the directory, which the reader uses."""
    data, name = b"\x80\x02.", b"x/data.pkl"
    size = struct.pack("<IIIHH", zlib.crc32(data), len(data), len(data), len(name), 0)
    local = b"PK\3\4" + struct.pack("<HHHHH", 20, 0, 0, 0, 33) + size + name + data
    entry = b"PK\1\2" + struct.pack("<HHHHHH", 20, 20, 0, 0, 0, 33) + size + bytes(14) + name
    return local + entry + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)


def media() -> list[bytes]:
    chunk = b"IHDR" + struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    image = {"base64": base64.b64encode(png).decode()}
    histogram = {"lowest": -1, "highest": 1, "sum": 0.5, "sum_squares": 2, "not_finite": 1, "counts": [1, 0, 3]}
    contents = [{"histogram": histogram}, {"image": image}, {"image": {"crc32c": "00000000"} | image}]
    return [json.dumps({"time": 1.5, "step": 7, "name": "w"} | content).encode() for content in contents]


def run_seeds() -> dict[str, list[bytes]]:
    def files(pattern: str) -> list[bytes]:
        return [path.read_bytes() for path in sorted(REPOSITORY.glob(pattern))]

    def entry(kind: int, name: str, size: int = 0, link: str = "") -> bytes:
        words = b"".join(struct.pack("<I", len(word)) + word.encode() for word in (name, link))
        return struct.pack("<BIqIQ", kind, 0o644, 1_700_000_000, 5, size) + words

    scripts = [SCRIPT, *files("tests/golden/init/*.sbatch")]
    hello = frame("hello", {"rank": "0", "host": "n1", "node": "n1", "pid": "42"})
    return {
        "bash_fuzz": scripts,
        "draft_fuzz": scripts,
        "batch_script_fuzz": [*scripts, b"--time=1:00", b"a 'b' \"c\"\\d"],
        "failure_fuzz": [LOG],
        "slurm_fuzz": [JOB_TABLE, *files("tests/golden/slurm/*.txt")],
        "nodelist_fuzz": [b"n[1-3,007-010],gpu-a[1-2]-[3,5]", b"2(x3),1", b"n1"],
        "frame_fuzz": [hello, hello + frame("x", {})],
        "swarm_message_fuzz": [
            b"\1\1\0\0\0\0plan",
            b"\3" + struct.pack("<IIII", 0, 5, 7, 1),
            b"\5" + struct.pack("<IQ", 3, 4) + b"x",
        ],
        "tree_list_fuzz": [
            b"StkL"
            + entry(1, "env")
            + entry(0, "env/a", 3)
            + entry(2, "env/b", link="/usr")
            + entry(3, "c", link="env/a"),
            b"StkL" + entry(0, ".staging-archives/0/words.tar", 100),
        ],
        "hello_fuzz": [hello, b"0-3,8", b"10.0.0.1 eth0\n10.1.0.1 ib0\n"],
        "events_fuzz": [events()],
        "metrics_fuzz": [b"time,loss\n1,0.5\n2,0.25\n3,nan\n"],
        "trace_fuzz": [TRACE, b"[\n" + TRACE[TRACE.index(b'{"ph"') :]],
        "nccl_log_fuzz": [NCCL],
        "points_fuzz": [b"1763719411.520000,120,0.5,val/loss\n", b",1e+06,nan,a, b\n", b",,-inf,best"],
        "media_fuzz": media(),
        "log_metrics_fuzz": [PRINTED],
        "event_file_fuzz": [bytes([len(EVENT)]) + EVENT],
        "wandb_file_fuzz": [bytes([len(HISTORY)]) + HISTORY],
        "flight_fuzz": [flight(), trace()],
        "safetensors_fuzz": [safetensors()],
        "share_fuzz": [share()],
        "lab_fuzz": [lab(), b"100mbit", b"2.5%", b"n1:eth0"],
        "whole_file_fuzz": [safetensors(), zip_of_torch(), b"\x89HDF\r\n\x1a\n" + bytes(88)],
        "yaml_fuzz": files("examples/*/job.yaml") + files("sites/*.yaml"),
        "transform_fuzz": [
            bytes(range(200)),
            bytes(64),
        ],  # read as a series of choices: none is more whole than another
    }
