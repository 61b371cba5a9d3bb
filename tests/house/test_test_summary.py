"""script/lib/test_summary.py: the rule about skips, and what counts as failed."""

from pathlib import Path

import pytest
import test_summary


def is_met(name: str) -> bool:
    return {"root": True, "gpu": False, "python3.10": False}[name]


@pytest.mark.parametrize(
    ("reason", "wrong"),
    [
        ("needs gpu: an NVIDIA GPU", None),
        ("Skipped: needs gpu: an NVIDIA GPU", None),
        ("needs root: the tests run as root", "this machine has it"),
        ("needs python3.10: a Python 3.10 (python3.10 in PATH)", None),
        ("needs luck", "'luck' is no need of tests/needs.py"),
        ("flaky", "the reason names no need of tests/needs.py"),
        ("", "the reason names no need of tests/needs.py"),
    ],
)
def test_a_skip_is_justified_only_by_what_the_machine_lacks(reason, wrong):
    assert test_summary.verdict_on_skip(reason, is_met) == wrong


def results(folder: Path, **files: str) -> test_summary.Summary:
    for name, body in files.items():
        (folder / f"{name}.xml").write_text(f"<testsuites><testsuite>{body}</testsuite></testsuites>")
    return test_summary.summarize(folder, is_met)


def test_results_of_both_runners_are_counted(tmp_path):
    summary = results(
        tmp_path,
        base_test="""<testcase classname="Bytes" name="a"/>
            <testcase classname="Bytes" name="b"><failure/></testcase>
            <testcase classname="Bytes" name="c" result="skipped">
              <skipped message="/x/bytes_test.cc:3&#x0A;needs gpu: one"/></testcase>""",
        pytest="""<testcase classname="tests.test_a" name="d"/>
            <testcase classname="tests.test_a" name="e"><skipped message="flaky">a.py:1: flaky</skipped></testcase>""",
    )
    assert summary.passed == 2
    assert summary.failed == ["base_test: Bytes.b"]
    assert summary.skipped == {"Bytes.c": "needs gpu: one", "tests.test_a.e": "flaky"}
    assert list(summary.unjustified) == ["tests.test_a.e"]


def test_a_crashed_program_is_a_failure_even_if_no_test_failed(tmp_path):
    passed = '<testcase classname="Bytes" name="a"/>'
    crashed = '<testcase classname="base" name="base"><failure/></testcase><testcase classname="net" name="net"/>'
    assert results(tmp_path, base_test=passed, ctest=crashed).failed == ["base_test (the program itself)"]


def test_a_program_whose_own_tests_failed_counts_once(tmp_path):
    failed = '<testcase classname="Bytes" name="b"><failure/></testcase>'
    ctest = '<testcase classname="base" name="base"><failure/></testcase>'
    assert results(tmp_path, base_test=failed, ctest=ctest).failed == ["base_test: Bytes.b"]


def test_the_last_attempt_of_a_retried_test_counts(tmp_path):
    tries = """<testcase classname="tests.lab.test_a" name="d"/><testcase classname="tests.lab.test_a" name="d"/>
        <testcase classname="tests.lab.test_a" name="e"/><testcase classname="tests.lab.test_a" name="e"><failure/></testcase>"""
    summary = results(tmp_path, pytest=tries)
    assert (summary.passed, summary.failed) == (1, ["pytest: tests.lab.test_a.e"])
    assert summary.retried == ["tests.lab.test_a.d", "tests.lab.test_a.e"]


def test_running_nothing_is_a_failure(tmp_path, capsys):
    assert test_summary.main(tmp_path) == 1
    assert capsys.readouterr().out == "0 passed, 0 failed, 0 skipped\n"


def test_a_failed_check_is_named_at_the_end(tmp_path, capsys):
    (tmp_path / "check.log").write_text("a.cc:1: not formatted\ncheck: failed: format\n")
    passed = results(tmp_path, pytest='<testcase classname="tests.test_a" name="b"/>')
    assert passed.failed == ["script/check: failed: format"]
    assert test_summary.main(tmp_path) == 1
    assert capsys.readouterr().out == "failed   script/check: failed: format\n1 passed, 1 failed, 0 skipped\n"


def test_checks_that_passed_are_not_mentioned(tmp_path):
    (tmp_path / "check.log").write_text("check: 12 checks, all well\n")
    assert results(tmp_path, pytest='<testcase classname="tests.test_a" name="b"/>').failed == []
