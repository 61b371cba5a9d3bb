"""The number of requests to a cluster's controller, for the benchmarks of submitting."""

import re
import subprocess

# Messages between daemons, and this query.
_OF_DAEMONS = re.compile(r"REGISTRATION|PING|STATS_INFO|STEP_LAUNCH|HEALTH|ACCT_GATHER")


def requests(environment: dict[str, str]) -> int:
    """Requests served by the controller so far, from sdiag."""
    shown = subprocess.run(["sdiag"], env=environment, capture_output=True, text=True, check=True).stdout
    by_type = shown.split("by message type")[1].split("by user")[0]
    counts = re.findall(r"(\w+)\s*\(\s*\d+\)\s*count:(\d+)", by_type)
    return sum(int(count) for name, count in counts if not _OF_DAEMONS.search(name))
