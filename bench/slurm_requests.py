"""How often the controller of a cluster was asked: what the benches of submitting count."""

import re
import subprocess

# What daemons say among each other, and the question itself.
_OF_DAEMONS = re.compile(r"REGISTRATION|PING|STATS_INFO|STEP_LAUNCH|HEALTH|ACCT_GATHER")


def requests(environment: dict[str, str]) -> int:
    """Requests that the controller has served so far, by sdiag."""
    shown = subprocess.run(["sdiag"], env=environment, capture_output=True, text=True, check=True).stdout
    by_type = shown.split("by message type")[1].split("by user")[0]
    counts = re.findall(r"(\w+)\s*\(\s*\d+\)\s*count:(\d+)", by_type)
    return sum(int(count) for name, count in counts if not _OF_DAEMONS.search(name))
