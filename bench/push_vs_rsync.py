"""`stoker data push` beside `rsync -a`, over the same ssh to an sshd of this machine: a first copy to a host with stoker and to one
without, and the bytes that are sent again after a cut.

    bench/push_vs_rsync.py [--gigabytes 1] [--pairs 7] [--cuts 5]"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from cache_vs_rsync import make_dataset
from measure import BIN, check_limit, in_turns, ratio_interval, seconds_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from ssh_host import SshHost

# Of rsync's time. push hashes each byte with SHA-256 on both sides; sha256sum of many systems does it without the
# instructions of the processor.
LIMITS = {"stoker": 1.25, "plain": 2.0}
SENT_AGAIN_LIMIT = 0.05  # of the dataset


def first_copy(command: list[str | Path], home: Path, environment: dict[str, str]) -> float:
    shutil.rmtree(home / "copy", ignore_errors=True)
    return seconds_of(command, env=environment)


def sent_again(source: Path, host: SshHost, environment: dict[str, str], share: float) -> float:
    """The share of the dataset that is sent twice if the link is cut after `share` of it."""
    shutil.rmtree(host.home / "copy", ignore_errors=True)
    size = sum(path.stat().st_size for path in source.iterdir())
    host.relay.sent = 0
    host.relay.cut_after = int(size * share)
    command = [BIN / "stoker", "data", "push", source, "relayed:copy", "--json"]
    subprocess.run(command, env=environment, capture_output=True)
    host.relay.cut_after = None
    sent = host.relay.sent
    report = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert report["sent_bytes"] + report["found_bytes"] == report["bytes"]
    return (sent + report["sent_bytes"] - size) / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--cuts", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = make_dataset(folder, options.gigabytes)
        print(f"{len(list(source.glob('*.tar')))} shards, {options.gigabytes} GB")
        (folder / "host").mkdir()
        host = SshHost(folder / "host", BIN)
        try:
            environment = os.environ | {"PATH": f"{host.client(folder)}:{os.environ['PATH']}"}
            is_met = True
            for far, what in (("stoker", "a host with stoker"), ("plain", "a host with sha256sum")):
                push = [BIN / "stoker", "data", "push", source, f"{far}:copy"]
                rsync = ["rsync", "-a", f"{source}/", f"{far}:copy/"]
                pairs = in_turns(
                    partial(first_copy, push, host.home, environment),
                    partial(first_copy, rsync, host.home, environment),
                    options.pairs,
                )
                rates = [options.gigabytes * 1000 / min(times) for times in zip(*pairs, strict=True)]
                print(f"{what}: fastest copy {rates[0]:.0f} MB/s, rsync {rates[1]:.0f} MB/s")
                is_met &= check_limit(f"{what}, time / rsync", ratio_interval(pairs), LIMITS[far])
            chance = random.Random(1)
            again = [sent_again(source, host, environment, chance.uniform(0.2, 0.9)) for _ in range(options.cuts)]
            print(f"sent again after a cut: {100 * min(again):.1f} to {100 * max(again):.1f} % of the dataset")
            is_met &= max(again) <= SENT_AGAIN_LIMIT
        finally:
            host.close()
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
