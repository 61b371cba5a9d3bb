"""Speed of `stoker explain` on a generated log of 1 GB that looks like a training with NCCL.

    bench/explain_rate.py [--size 1000000000] [--rounds 5]

One core reads; the log is in the page cache. `wc -l` on the same log shows the limit of the machine. Target: 300 MB/s of CPU time,
with the failure at its end found."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import BIN

TARGET = 300e6
LINES = [
    "Epoch [3/90], Step [{i}/5004], Time: 0.4113, Loss: 3.2911, Acc: 0.3127, error: 0.6873, lr: 0.1\n",
    "2025-11-21 10:03:11,250 - INFO - train - step {i} samples/s 1204.3 data 0.4 % failed reads 0\n",
    "r7i1n3:4711:4802 [1] NCCL INFO AllReduce: opCount {i:x} sendbuff 0x7f1 recvbuff 0x7f1 count 25557032 datatype 7 op 0 "
    "root 0 comm 0x5 [nranks=8] stream 0x6\n",
    "[rank3]: r7i1n4:4712:4803 [3] NCCL INFO Channel 07/0 : 3[3] -> 4[0] [send] via NET/IB/2/GDRDMA\n",
    " {i}%|███████▌                  | {i}/5004 [00:41<01:33, 38.12it/s, loss=3.29, top1=31.2]\r",
]
END = (
    "Traceback (most recent call last):\n"
    '  File "/users/ada/train.py", line 88, in <module>\n    main()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB\n"
)


def generate(path: Path, size: int) -> None:
    block = "".join(line.format(i=i) for i in range(10_000) for line in LINES).encode()
    with path.open("wb") as log:
        for _ in range(max(1, size // len(block))):
            log.write(block)
        log.write(b"\n" + END.encode())


def processor_time(command: list[str]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rates, others = [], []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        generate(log, options.size)
        size = log.stat().st_size
        for _ in range(options.rounds):
            others.append(size / processor_time(["wc", "-l", str(log)])[0])
            begin = time.monotonic()
            seconds, out = processor_time([str(BIN / "stoker"), "explain", str(log), "--json"])
            wall = time.monotonic() - begin
            found = json.loads(out)["diagnosis"]["rule"]
            rates.append(size / seconds)
            print(f"  {size / 1e6:.0f} MB: {seconds:.2f} s of processor, {wall:.2f} s of clock, found {found}")
            if found != "gpu-out-of-memory":
                print("another cause was found")
                return 1
    rate = statistics.median(rates)
    print(f"wc -l reads {statistics.median(others) / 1e6:.0f} MB/s; load {os.getloadavg()[0]:.1f}")
    is_met = rate >= TARGET
    print(
        f"explain reads {rate / 1e6:.0f} MB/s per core ({min(rates) / 1e6:.0f} to {max(rates) / 1e6:.0f}; "
        f"at least {TARGET / 1e6:.0f}): {'met' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
