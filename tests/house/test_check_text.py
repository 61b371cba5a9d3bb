"""script/lib/check_text.py: tests taken out, machine paths, notes for later."""

from pathlib import Path

import check_text
import pytest

TAKEN_OUT = "a test is taken out: delete it, or skip it with its reason (tests/needs.py)"
LATER = "a note for later needs its condition ('... when Slurm < 23 is dropped')"


@pytest.mark.parametrize(
    ("path", "line", "output"),
    [
        ("a_test.cc", "// TEST(Commit, survives_a_kill) {", [TAKEN_OUT]),
        ("a_test.cc", "TEST_F(Commit, DISABLED_survives_a_kill) {", [TAKEN_OUT]),
        ("a_test.cc", "TEST(Commit, survives_a_kill) {", []),
        ("test_a.py", "# def test_resume():", [TAKEN_OUT]),
        ("test_a.py", "@pytest.mark.skip(reason='flaky')", [TAKEN_OUT]),
        ("test_a.py", "@pytest.mark.needs('root')", []),
        ("CMakeLists.txt", "# add_test(NAME base)", [TAKEN_OUT]),
        ("a.cc", 'open("/home/jo/data")', ["'/home/jo' looks like a path of one machine"]),
        ("README.md", "see /root/x and /home/you/data", ["'/root/x' looks like a path of one machine"]),
        ("a.cc", "${HOME}/work/x ~/work/x ./work/x src/work/x", []),
        ("a.cc", "// TODO: faster", [LATER]),
        ("a.cc", "// TODO when Slurm < 23 is dropped: use JSON", []),
        ("README.md", "// TEST(Commit, example)", []),
    ],
)
def test_a_line(path, line, output):
    assert list(check_text.wrong_with(Path(path), line)) == output
