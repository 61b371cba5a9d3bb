"""Resetting a lab between two tests: jobs that ignore SIGTERM run on two nodes and one more is queued; then the fixture's reset
(tests/labs.py) until no job is left and all nodes are idle."""

import os
import sys
import tempfile
import time
from pathlib import Path

from measure import REPOSITORY, conclude, median_interval

sys.path.insert(0, str(REPOSITORY / "tests"))
from labs import Lab, start_lab, stop_lab, wait_until

ROUNDS = 15


def reset_s(lab: Lab) -> float:
    lab.submit("trap '' TERM; srun sh -c \"trap '' TERM; touch on-\\$SLURMD_NODENAME; sleep 300\"", "-N2")
    wait_until(lambda: len(list(lab.shared.glob("on-*"))) == 2, "the job runs")
    lab.submit("sleep 300", "--hold")
    started = time.perf_counter()
    lab.reset()
    return time.perf_counter() - started


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="lb-", dir="/tmp") as box:
        Path(box).chmod(0o755)
        os.environ["STOKER_LAB_DIR"] = box
        lab = start_lab(f"b{os.getpid()}")
        try:
            times = [reset_s(lab) for _ in range(ROUNDS)]
        finally:
            stop_lab(lab.name)
    conclude("putting a lab in order between tests", median_interval(times), limit=1, unit="s")


if __name__ == "__main__":
    main()
