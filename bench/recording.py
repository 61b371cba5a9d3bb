"""What recording costs a program: one call that logs a metric in C++, a million points until they survive a kill -9, and the
share of a step of 10 ms, of the trainer's records and of four metrics that a Python script logs at each step.

recording_bench measures the times, with its repetitions as the spread. The share of the script is its CPU time, with the thread that
writes, minus the CPU time of the same steps without metrics. bench/log_vs_tensorboardx.py compares a call from Python."""

import json
import os
import subprocess
import sys
import tempfile

from loader_python import build, run
from measure import BIN, REPOSITORY, check_limit, median_interval

STEP_US = 10_000
REPETITIONS = 15
SCRIPT = """
import json, sys, time
import stoker
steps, turns = 200, int(sys.argv[1])
def spent(is_logging):
    begin = time.process_time()
    for step in range(steps):
        time.sleep(0.01)
        if is_logging:
            stoker.log({"loss": 0.5123, "accuracy": 0.81, "lr": 0.1, "grad_norm": 1.5}, step=step)
    return time.process_time() - begin
spent(True)
print(json.dumps([[spent(True), spent(False)] for _ in range(turns)]))
"""


def times(name: str) -> list[float]:
    """Times of a benchmark of recording_bench in its unit, one for each repetition."""
    command = [BIN / "recording_bench", f"--benchmark_filter=^{name}($|/)", f"--benchmark_repetitions={REPETITIONS}"]
    out = subprocess.run(
        [*command, "--benchmark_min_time=0.1", "--benchmark_format=json"], capture_output=True, text=True, check=True
    ).stdout
    rows = [row for row in json.loads(out)["benchmarks"] if row["run_type"] == "iteration"]
    problems = [row["error_message"] for row in rows if row.get("error_occurred")]
    if problems or not rows:
        sys.exit(f"{name}: {problems or 'no such benchmark'}")
    return [row["real_time"] for row in rows]


def main() -> None:
    build()
    subprocess.run([REPOSITORY / "script/build", "recording_bench"], check=True, stdout=subprocess.DEVNULL)
    call = [nanoseconds / 1000 for nanoseconds in times("log_one_metric")]
    is_met = check_limit("a call that logs a metric in C++", median_interval(call), 1, "us")
    million = [milliseconds / 1000 for milliseconds in times("log_a_million_points")]
    is_met &= check_limit("a million points until they survive a kill", median_interval(million), 1, "s")
    records = [100 * microseconds / STEP_US for microseconds in times("record_one_step")]
    is_met &= check_limit("records of the trainer, share of a step of 10 ms", median_interval(records), 0.5, "%")
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"STOKER_ATTEMPT_DIR": folder, "RANK": "0"}
        pairs = json.loads(" ".join(run(SCRIPT, REPETITIONS)))
    shares = [100 * (logging - silent) / (200 * 0.01) for logging, silent in pairs]
    is_met &= check_limit("four metrics of a script, share of a step of 10 ms", median_interval(shares), 0.5, "%")
    print(f"       load {os.getloadavg()[0]:.1f}")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
