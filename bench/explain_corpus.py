"""How often `stoker explain` names the right cause: logs in public issues and repositories, labelled by hand.

    bench/explain_corpus.py [--cache FOLDER] [--list tests/golden/explain/public.json]

The list has for each log the issue (repository and number) or file (repository, path, commit), the SHA-256 of the measured text,
and as label the rule that should name the cause: null if the log does not show it or nothing failed, `a|b` if either is right
(`none` for null). The logs belong to their authors: they are fetched into the cache under their SHA-256 and not stored here. For
an issue the log is the first post; with `excerpt`, the part of the thread that was labelled, which only a cache filled by hand
contains. `used` marks logs that were read while rules were written; the result counts the rest. Issues without `excerpt` were
found by the message of their label, the rest by typical descriptions of failures ("job killed", "hangs on 2 nodes") and by the
usual names of batch jobs' logs, independent of their content. Targets: the right rule in 70 %, a wrong rule with certainty in at
most 2 %."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RIGHT = 0.70
WRONG = 0.02
ENOUGH = 10  # fewer are not significant


def name(entry: dict) -> str:
    return f"{entry['repository']}#{entry['issue']}" if "issue" in entry else f"{entry['repository']}/{entry['path']}"


def download(entry: dict) -> bytes | None:
    """The log from its publication, or None."""
    if entry.get("excerpt"):
        return None
    url = f"https://api.github.com/repos/{entry['repository']}/issues/{entry.get('issue')}"
    if "path" in entry:
        path = urllib.parse.quote(entry["path"])
        url = f"https://raw.githubusercontent.com/{entry['repository']}/{entry['commit']}/{path}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            content = answer.read()
        return content if "path" in entry else (json.loads(content).get("body") or "").encode()
    except (urllib.error.URLError, TimeoutError, ValueError):
        return None


def fetch(entry: dict, cache: Path) -> bytes | None:
    """The log from the cache or its publication, or None."""
    path = cache / entry.get("sha256", f"{entry['repository'].replace('/', '_')}_{entry.get('issue')}.txt")
    if not path.is_file():
        content = download(entry)
        if content is None:
            return None
        cache.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    content = path.read_bytes()
    is_same = "sha256" not in entry or hashlib.sha256(content).hexdigest() == entry["sha256"]
    return content if is_same else None


def explained(stoker: str, content: bytes) -> tuple[str | None, str]:
    """The reported rule and its certainty."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "job.log"
        log.write_bytes(content)
        done = subprocess.run([stoker, "explain", str(log), "--json"], capture_output=True, text=True)
    found = json.loads(done.stdout)["diagnosis"]
    return found["rule"], found["certainty"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=REPOSITORY / "build/explain-issues")
    parser.add_argument("--list", type=Path, default=REPOSITORY / "tests/golden/explain/public.json")
    options = parser.parse_args()
    stoker = os.environ.get("STOKER", str(REPOSITORY / "build/release/bin/stoker"))
    counts = {False: [0, 0, 0], True: [0, 0, 0]}  # by used: logs, right, wrong and sure
    entries = json.loads(options.list.read_text())
    for entry in entries:
        content = fetch(entry, options.cache)
        if content is None:
            continue
        rule, certainty = explained(stoker, content)
        count = counts[entry["used"]]
        is_right = (rule or "none") in (entry["rule"] or "none").split("|")
        count[0] += 1
        count[1] += is_right
        count[2] += not is_right and certainty == "known"
        if not is_right:
            print(f"  {name(entry)}: {rule} ({certainty}), expected {entry['rule']}")
    for used, (logs, right, wrong) in counts.items():
        print(f"{'used' if used else 'not used'} for rules: {logs} logs, {right} right, {wrong} wrong and sure")
    missing = len(entries) - counts[False][0] - counts[True][0]
    if missing:
        print(f"{missing} of {len(entries)} logs could not be fetched")
    logs, right, wrong = counts[False]
    if logs < ENOUGH:
        print(f"only {logs} of {sum(not e['used'] for e in entries)} logs not used could be fetched: not measured")
        return 1
    is_met = right >= RIGHT * logs and wrong <= WRONG * logs
    print(
        f"right cause first in {right / logs:.0%} (at least {RIGHT:.0%}), wrong and sure in {wrong / logs:.1%} "
        f"(at most {WRONG:.0%}): {'met' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
