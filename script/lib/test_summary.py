"""Last step of script/test: what ran, what was skipped and why, from the result files in one folder
(ctest.xml, one <room>_test.xml per GoogleTest program, pytest.xml), and from what script/check printed (check.log).

Fails when a check or a test failed, when nothing ran, or when a test was skipped that this machine could have run: a skip
must name what it needs ("needs data: ..."), and tests/needs.py must find that this machine lacks it."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import needs


@dataclass
class Summary:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    unjustified: dict[str, str] = field(default_factory=dict)
    retried: list[str] = field(default_factory=list)


def verdict_on_skip(reason: str, is_met: Callable[[str], bool]) -> str | None:
    """What is wrong with skipping a test for this reason, or None."""
    match = re.match(r"(?:Skipped: )?needs ([\w.]+)", reason.strip())
    if not match:
        return "the reason names no need of tests/needs.py"
    try:
        return "this machine has it" if is_met(match[1]) else None
    except KeyError:
        return f"'{match[1]}' is no need of tests/needs.py"


def last_results(path: Path, summary: Summary) -> list[tuple[str, str, str]]:
    """As `cases`; for a test that pytest retried, its last result."""
    found = list(cases(path))
    if path.name != "pytest.xml":
        return found
    last = {}
    for case in found:
        if case[0] in last:
            summary.retried.append(case[0])
        last[case[0]] = case
    return list(last.values())


def cases(path: Path) -> Iterator[tuple[str, str, str]]:
    """(name, 'passed' | 'failed' | 'skipped', reason) of every test in one result file."""
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        elif skipped is not None or case.get("status") == "notrun" or case.get("result") == "skipped":
            message = "" if skipped is None else (skipped.get("message") or skipped.text or "")
            # GoogleTest puts the source position on the first line.
            yield name, "skipped", re.sub(r"^\S+:\d+\n", "", message.strip()).strip()
        else:
            yield name, "passed", ""


def failed_checks(log: Path) -> list[str]:
    """The last line of script/check, where it names checks that failed."""
    last = log.read_text().splitlines()[-1:] if log.exists() else []
    return [f"script/{line}" for line in last if line.startswith("check: failed:")]


def summarize(folder: Path, is_met: Callable[[str], bool]) -> Summary:
    summary = Summary()
    summary.failed += failed_checks(folder / "check.log")
    programs_that_failed = set()
    for path in sorted(folder.glob("*.xml")):
        for name, result, reason in last_results(path, summary):
            if path.name == "ctest.xml":
                programs_that_failed |= {name.partition(".")[0]} if result == "failed" else set()
            elif result == "passed":
                summary.passed += 1
            elif result == "failed":
                summary.failed.append(f"{path.stem}: {name}")
            else:
                summary.skipped[name] = reason
                if wrong := verdict_on_skip(reason, is_met):
                    summary.unjustified[name] = wrong
    for program in sorted(programs_that_failed):
        # It crashed, ran out of time or leaked: although no test reported a failure.
        if not any(name.startswith(f"{program}_test: ") for name in summary.failed):
            summary.failed.append(f"{program}_test (the program itself)")
    return summary


def main(folder: Path) -> int:
    summary = summarize(folder, needs.is_met)
    for name in summary.retried:
        print(f"failed once, then retried: {name}")
    for name, reason in summary.skipped.items():
        print(f"skipped  {name}: {reason}")
    for name, wrong in summary.unjustified.items():
        print(f"should not have been skipped: {name}: {wrong}")
    for name in summary.failed:
        print(f"failed   {name}")
    failures = len(summary.failed) + len(summary.unjustified)
    print(f"{summary.passed} passed, {failures} failed, {len(summary.skipped)} skipped")
    return 1 if failures or not summary.passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
