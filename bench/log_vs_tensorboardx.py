"""stoker.log of one metric, compared with tensorboardX's add_scalar: 20 000 calls each, alternating in one process, with the time
of every call. Then the median of a call to stoker.log. Limits: at most 1 / 10 of tensorboardX's time, and 3 us."""

import json
import os
import sys
import tempfile

from loader_python import build, run
from measure import check_limit, median_interval, ratio_interval

CODE = """
import json, sys, time
import stoker, tensorboardX
writer = tensorboardX.SummaryWriter(sys.argv[1])
calls, turns = 20_000, int(sys.argv[2])
def ours(step):
    stoker.log({"loss": 0.5123}, step=step)
def theirs(step):
    writer.add_scalar("loss", 0.5123, step)
def times(call):
    found = []
    for step in range(calls):
        before = time.perf_counter_ns()
        call(step)
        found.append(time.perf_counter_ns() - before)
    return sorted(found)
times(ours), times(theirs)
rounds = []
for _ in range(turns):
    mine, other = times(ours), times(theirs)
    rounds.append([sum(mine), sum(other), mine[calls // 2]])
print(json.dumps(rounds))
"""


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"STOKER_ATTEMPT_DIR": folder, "RANK": "0"}
        rounds = json.loads(" ".join(run(CODE, f"{folder}/tensorboard", turns)))
    beside = ratio_interval([(ours, theirs) for ours, theirs, _ in rounds])
    is_met = check_limit("time of a call beside tensorboardX", beside, 1 / 10)
    is_met &= check_limit(
        "median call of stoker.log", median_interval([median / 1000 for _, _, median in rounds]), 3, "us"
    )
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
