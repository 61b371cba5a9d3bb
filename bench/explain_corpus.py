"""How often `stoker explain` names the right cause: logs in public issues, labelled by hand.

    bench/explain_corpus.py [--cache FOLDER] [--list tests/golden/explain/public.json]

The list has repository and number of each issue and, as label, the rule that should name the cause, null where nothing in the log
tells it. The logs are other people's: the first post of each is fetched into the cache, never kept here. `used` says that an issue was
looked at while rules were written; the verdict is over the others. Most were found by the message that their label knows, so
a good figure shows that rules hold in other people's logs, not that all failures are known. Targets: the right rule in 70 %, a
wrong one that claims to be known in 2 % at most."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RIGHT = 0.70
WRONG = 0.02
ENOUGH = 10  # fewer of them say nothing


def fetch(entry: dict, cache: Path) -> str | None:
    """The first post of the issue, from the cache or from where it is published, or None."""
    path = cache / f"{entry['repository'].replace('/', '_')}_{entry['issue']}.txt"
    if not path.is_file():
        url = f"https://api.github.com/repos/{entry['repository']}/issues/{entry['issue']}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                content = json.load(answer).get("body") or ""
        except (urllib.error.URLError, TimeoutError, ValueError):
            return None
        cache.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return path.read_text()


def explained(stoker: str, content: str) -> tuple[str | None, str]:
    """The rule that the command names, and how sure it is."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "issue.log"
        log.write_text(content)
        done = subprocess.run([stoker, "explain", str(log), "--json"], capture_output=True, text=True)
    found = json.loads(done.stdout)["diagnosis"]
    return found["rule"], found["certainty"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=REPOSITORY / "build/explain-issues")
    parser.add_argument("--list", type=Path, default=REPOSITORY / "tests/golden/explain/public.json")
    options = parser.parse_args()
    stoker = os.environ.get("STOKER", str(REPOSITORY / "build/release/bin/stoker"))
    counts = {False: [0, 0, 0], True: [0, 0, 0]}  # by used: issues, right, wrong and sure
    entries = json.loads(options.list.read_text())
    for entry in entries:
        content = fetch(entry, options.cache)
        if content is None:
            continue
        rule, certainty = explained(stoker, content)
        count = counts[entry["used"]]
        is_right = rule == entry["rule"]
        count[0] += 1
        count[1] += is_right
        count[2] += not is_right and certainty == "known"
        if not is_right:
            print(f"  {entry['repository']}#{entry['issue']}: {rule} ({certainty}), expected {entry['rule']}")
    for used, (issues, right, wrong) in counts.items():
        print(f"{'used' if used else 'not used'} for rules: {issues} issues, {right} right, {wrong} wrong and sure")
    issues, right, wrong = counts[False]
    if issues < ENOUGH:
        print(f"only {issues} of {sum(not e['used'] for e in entries)} issues could be fetched: not measured")
        return 1
    is_met = right >= RIGHT * issues and wrong <= WRONG * issues
    print(
        f"right cause first in {right / issues:.0%} (at least {RIGHT:.0%}), wrong and sure in {wrong / issues:.1%} "
        f"(at most {WRONG:.0%}): {'met' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
