"""Makes run folders as a training would leave them, from docs/formats/run.md alone: no Stoker writes here. The numbers
follow a small model of a training, so that a report of such a folder looks like a real one, and are the same each time."""

import json
import math
import random
from dataclasses import dataclass, field
from pathlib import Path

BEGIN = 1_763_719_391.0  # 2025-11-21T10:03:11Z
PARTS = ["data_s", "forward_s", "backward_s", "communication_s", "optimizer_s", "checkpoint_s"]
STEP_COLUMNS = ["time", "epoch", "step", "samples", "loss", "top1", "top5", "lr", *PARTS, "step_s"]
EPOCH_COLUMNS = "epoch,step,train_loss,train_top1,val_loss,val_top1,val_top5,seconds,samples_per_s,validation_s"


@dataclass
class RunFolder:
    """A run folder in the making."""

    path: Path
    rows: dict[tuple[int, int], list[dict[str, float]]] = field(default_factory=dict)  # by (attempt, rank)

    @classmethod
    def create(cls, runs: Path, name: str = "resnet20", **changes) -> "RunFolder":
        identity = "2025-11-21T10-03-11_3f2c1aa_resnet20_k7q2"
        folder = runs / identity
        folder.mkdir(parents=True)
        (folder / "job.yaml").write_text("name: resnet20\n")
        description = {
            "format": "stoker-run",
            "version": 1,
            "id": identity,
            "name": name,
            "created": BEGIN,
            "git": "3f2c1aa",
            "command": ["stoker-train", "--job", "job.yaml"],
            "job_file": "job.yaml",
            "working_directory": "/home/ana/project",
            "typed": ["stoker", "run", "job.yaml"],
            "world_size": 2,
            "hosts": ["node1"],
            "user": "ana",
            "stoker_version": "0.1.0",
            "scheduler_job": "",
            "params": {"lr": "0.1", "batch": "64"},
        }
        (folder / "run.json").write_text(json.dumps(description | changes))
        return cls(folder)

    def attempt(self, number: int) -> Path:
        folder = self.path / "attempts" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job.yaml").write_text("name: resnet20\n")
        return folder

    def event(self, attempt: int, time: float, kind: str, writer: str = "node-0000", **fields) -> None:
        with (self.attempt(attempt) / f"events-{writer}.jsonl").open("a") as file:
            file.write(json.dumps({"time": time, "kind": kind, **fields}) + "\n")

    def started(self, attempt: int, time: float, **fields) -> None:
        supervisor = {"host": "node1", "pid": 1, "pid_start": 1, "boot": "another boot"}
        self.event(
            attempt, time, "attempt_started", node=0, **supervisor, world_size=2, command=["stoker-train"], **fields
        )

    def ended(self, attempt: int, time: float, outcome: str, exit_code: int, **fields) -> None:
        self.event(attempt, time, "attempt_ended", node=0, outcome=outcome, exit_code=exit_code, **fields)

    def saved(self, attempt: int, time: float, step: int, seconds: float, stall_s: float) -> None:
        """Records a checkpoint like rank 0."""
        fields = {"step": step, "epoch": (step - 1) // 98, "folder": f"step-{step}", "bytes": 2_200_000}
        self.event(attempt, time, "checkpoint_saved", "rank-0000", **fields, seconds=seconds, stall_s=stall_s)

    def steps(self, attempt: int, rank: int, first: int, last: int, begin: float, per_epoch: int = 98) -> float:
        """Writes metrics-<rank>.csv for steps first..last; gives the time of the end of the last one."""
        noise = random.Random(rank * 1000 + attempt)
        time = begin
        lines = [",".join(STEP_COLUMNS)]
        rows = []
        for step in range(first, last + 1):
            part = step / (3 * per_epoch)
            times = [0.0009 + noise.random() * 0.0006, 0.045, 0.081, 0.006 + 0.004 * rank, 0.004, 0.0]
            times = [t * (1 + 0.06 * noise.random()) for t in times]
            times[5] = 0.31 if step % 100 == 0 else 0.0
            step_s = sum(times) + 0.002
            time += step_s + (6.2 if step % per_epoch == 1 and step > 1 and step != first else 0)
            loss = 2.3 * math.exp(-1.4 * part) + 0.15 + 0.12 * noise.gauss(0, 1) * (1.2 - 0.6 * part)
            top1 = min(1, max(0, 0.1 + 0.52 * (1 - math.exp(-2.2 * part)) + 0.045 * noise.gauss(0, 1)))
            lr = 0.1 * math.sin(math.pi * min(1, part))
            row = [
                round(time, 6),
                (step - 1) // per_epoch,
                step,
                64,
                round(loss, 6),
                round(top1, 6),
                min(1, top1 + 0.3),
                lr,
            ]
            row += [*[round(t, 6) for t in times], round(step_s, 6)]
            rows.append(dict(zip(STEP_COLUMNS, row, strict=True)))
            lines.append(",".join(str(value) for value in row))
        (self.attempt(attempt) / f"metrics-{rank:04}.csv").write_text("\n".join(lines) + "\n")
        self.rows[attempt, rank] = rows
        return time

    def epochs(self, attempt: int, rows: list[tuple]) -> None:
        text = "\n".join([EPOCH_COLUMNS, *[",".join(str(value) for value in row) for row in rows]])
        (self.attempt(attempt) / "epochs.csv").write_text(text + "\n")

    def system(self, attempt: int, begin: float, end: float) -> None:
        """Writes system-0000.csv: a sample each second."""
        noise = random.Random(attempt)
        names = ["time", "host_cpu_percent", "host_memory_bytes", "host_memory_total_bytes"]
        names += ["cgroup_memory_bytes", "cgroup_memory_limit_bytes"]
        for rank in (0, 1):
            names += [f"rank{rank}.{what}" for what in ("cpu_cores", "rss_bytes")]
            names += [f"rank{rank}.{what}_bytes_per_s" for what in ("read", "write", "asked")]
        lines = [",".join(names)]
        second = 0
        while begin + second < end:
            row: list[float] = [begin + second, 91 + 6 * noise.random() if second else math.nan]
            row += [3.1e9 + 2e6 * second, 8.3e9, 2.2e9 + 1e6 * second, math.nan]
            for rank in (0, 1):
                warm = min(1.0, second / 4)
                rate = math.nan if second == 0 else 0.93 + 0.06 * noise.random()
                rss = 4.1e8 * warm + 2e8 + 3e6 * noise.random() + rank * 1.5e7
                asked = math.nan if second == 0 else 2.1e6 * (0.8 + 0.4 * noise.random())
                row += [rate, rss, 0 if second > 5 else 3.2e7, 4.1e7 if second % 15 == 14 and rank == 0 else 2e3, asked]
            lines.append(",".join(str(value) for value in row))
            second += 1
        (self.attempt(attempt) / "system-0000.csv").write_text("\n".join(lines) + "\n")

    def log(self, attempt: int, rank: int, text: str) -> None:
        (self.attempt(attempt) / f"rank-{rank:04}.log").write_text(text)

    def capsule(self, **parts) -> None:
        folder = self.path / "capsule"
        folder.mkdir(exist_ok=True)
        for name, part in parts.items():
            (folder / f"{name}.json").write_text(json.dumps(part))


def _capsule(run: RunFolder) -> None:
    dataset = {"name": "train", "source": "/data/cifar10", "split": "train", "version": "7c1f9e02aa31b4d0"}
    run.capsule(
        code={"commit": "3f2c1aa0b5", "branch": "main", "dirty": True, "untracked": []},
        data={"datasets": [dataset | {"samples": 50000, "shards": 8, "bytes": 123_456_789}]},
        environment={"programs": {"python": "3.11.2", "torch": "2.13.0"}, "variables": {"OMP_NUM_THREADS": "1"}},
        execution={
            "nodes": [
                {
                    "host": "node1",
                    "kernel": "Linux 6.1.0 x86_64",
                    "system": "Debian 12",
                    "cpu": "AMD EPYC 7B13",
                    "cores": 2,
                }
                | {"memory_bytes": 8_300_000_000, "gpus": [], "driver": ""}
            ]
        },
    )
    (run.path / "capsule/code.diff").write_text("--- a/train.py\n+++ b/train.py\n")


def killed_and_resumed(runs: Path) -> RunFolder:
    """Three epochs of 98 steps on 2 ranks: rank 1 is killed at step 131, the second attempt resumes from step 100."""
    run = RunFolder.create(runs)
    _capsule(run)
    killed = _killed(run, BEGIN)
    _resumed(run, killed + 3600)  # somebody looked an hour later
    return run


def _killed(run: RunFolder, begin: float) -> float:
    """The first attempt; gives the time of the kill."""
    run.started(1, begin)
    cut = max(run.steps(1, rank, 1, 130 + rank, begin + 0.4) for rank in (0, 1))
    run.epochs(1, [(0, 98, 1.71, 0.352, 1.52, 0.4412, 0.9021, 20.4, 893.0, 6.1)])
    run.saved(1, begin + 15.2, step=98, seconds=0.4, stall_s=0.01)
    run.saved(1, begin + 21.9, step=100, seconds=0.35, stall_s=0.011)
    where = {"phase": "backward", "epoch": 1, "step": 131, "reason": "killed by signal 9"}
    run.event(1, cut, "rank_ended", rank=1, host="node1", signal=9, stopped_by_us=False, **where)
    run.event(1, cut + 0.1, "rank_ended", rank=0, host="node1", signal=15, stopped_by_us=True)
    reason = "rank 1 (node1) exited at epoch 2 step 131: killed by signal 9"
    run.ended(1, cut + 0.2, "failed", 137, first_rank=1, reason=reason)
    run.system(1, begin, cut + 0.2)
    return cut


def _resumed(run: RunFolder, begin: float) -> None:
    run.started(2, begin, resume="step-100", resume_step=100)
    end = max(run.steps(2, rank, 101, 294, begin + 0.5) for rank in (0, 1))
    second = (1, 196, 1.18, 0.571, 1.14, 0.5833, 0.9512, 27.0, 901.0, 6.2)
    third = (2, 294, 0.97, 0.655, 1.02, 0.6124, 0.9633, 20.1, 899.0, 6.2)
    run.epochs(2, [second, third])
    for step, time in ((196, begin + 14), (200, begin + 21), (294, end + 6)):
        run.saved(2, time, step, seconds=0.36, stall_s=0.01)
    for rank in (0, 1):
        run.event(2, end + 6.6, "rank_ended", rank=rank, host="node1", exit_code=0, stopped_by_us=False)
        run.log(2, rank, f"rank {rank} here\nepoch 3/3 done\n")
    run.ended(2, end + 6.7, "done", 0)
    run.system(2, begin, end + 6.7)


def script_that_fails(runs: Path) -> RunFolder:
    """Somebody's own Python script, which records nothing and fails before its first step."""
    run = RunFolder.create(runs, "mine", command=["python", "train.py", "--name", "it's <b>mine</b>"], params={})
    run.started(1, BEGIN)
    run.system(1, BEGIN, BEGIN + 12)
    traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nModuleNotFoundError: No module named 'torhc'\n"
    for rank in (0, 1):
        run.log(1, rank, "\x1b[31mloading\x1b[0m <script>alert(1)</script>\n" + traceback)
    run.event(1, BEGIN + 12, "rank_ended", rank=1, host="node1", exit_code=1, stopped_by_us=False)
    run.ended(1, BEGIN + 12.5, "failed", 1, first_rank=1, reason="rank 1 (node1) left: exit code 1")
    return run
