"""Makes the dumps of this folder. `recorded` needs torch, `built` only Python."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SECOND = 1_000_000_000
BEGIN = 1_795_790_000 * SECOND


def record() -> None:
    """One rank: the environment names it."""
    import datetime
    import time

    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
    rank = dist.get_rank()
    dist.all_reduce(torch.ones(25))
    dist.broadcast(torch.ones(3, 4, dtype=torch.int64), 0)
    if rank == 0:
        try:
            dist.all_reduce(torch.ones(7, 2))
        except RuntimeError as error:
            print(error)
    else:
        time.sleep(3)
    (HERE / f"gloo-{rank}.bin").write_bytes(_dump_fr_trace())


def entry(
    number: int, name: str, sizes: list[int], state: str, line: int, group: tuple[str, str] = ("0", "default_pg")
) -> dict:
    created = BEGIN + number * SECOND
    is_done = state == "completed"
    return {
        "record_id": number,
        "pg_id": int(group[0]),
        "process_group": group,
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": created,
        "duration_ms": 1.5 if is_done else None,
        "input_sizes": [sizes],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [sizes],
        "output_dtypes": ["BFloat16"],
        "state": state,
        "time_discovered_started_ns": created + 1000 if state != "scheduled" else None,
        "time_discovered_completed_ns": created + SECOND // 2 if is_done else None,
        "retired": is_done,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "thread_id": "140613285584960",
        "thread_name": "python",
        "frames": [
            {
                "name": name,
                "filename": "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
                "line": 3245,
            },
            {"name": "step", "filename": "/home/user/train.py", "line": line},
        ],
    }


def dump(name: str, entries: list[dict], groups: dict[str, tuple[str, str]], protocol: int = 2) -> None:
    value = {
        "version": "2.10",
        "comm_lib_version": "2.27.5",
        "entries": entries,
        "pg_config": {key: {"name": key, "desc": desc, "ranks": ranks} for key, (desc, ranks) in groups.items()},
        "pg_status": {
            key: {"last_enqueued_collective": 3, "last_started_collective": 3, "last_completed_collective": 2}
            for key in groups
        },
    }
    (HERE / f"{name}.bin").write_bytes(pickle.dumps(value, protocol))


def build() -> None:
    done = [entry(1, "broadcast", [6016], "completed", 20), entry(2, "all_reduce", [1024, 8], "completed", 88)]
    third = entry(3, "_all_gather_base", [512], "started", 90)
    late = entry(4, "all_reduce", [1], "scheduled", 95)
    tensor = ("1", "tensor")
    waits = entry(7, "all_reduce", [4096], "started", 40, tensor)
    passed = entry(7, "all_reduce", [4096], "completed", 40, tensor)
    everybody = ("default_pg", "[0, 1, 2, 3]")
    first, second = ({"0": everybody, "1": ("tensor", ranks)} for ranks in ("[0, 1]", "[2, 3]"))
    dump("nccl-0", [*done, third, waits], first)
    dump("nccl-1", [*done, third, late, waits], first, protocol=4)
    dump("nccl-2", [*done, passed], second)
    dump("nccl-3", [*done, third, passed], second)
    both = {"0": ("default_pg", "[0, 1]")}
    dump("mismatch-0", [done[0], entry(2, "all_reduce", [1024, 8], "started", 88)], both)
    dump("mismatch-1", [done[0], entry(2, "broadcast", [1024, 8], "started", 91)], both)


if __name__ == "__main__":
    if sys.argv[1:] == ["built"]:
        build()
    elif "RANK" in os.environ:
        record()
    else:
        place = os.environ | {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29731",
            "TORCH_FR_BUFFER_SIZE": "2000",
        }
        ranks = [
            subprocess.Popen([sys.executable, __file__, "recorded"], env=place | {"RANK": str(rank)})
            for rank in range(2)
        ]
        sys.exit(max(rank.wait() for rank in ranks))
