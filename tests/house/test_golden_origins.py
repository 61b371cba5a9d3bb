"""Recorded outputs of real Slurm clusters name their origin."""

import re

from conftest import REPOSITORY

FOLDER = REPOSITORY / "tests/golden/slurm"
ROW = re.compile(
    r"\| `([\w.-]+)` \| .* \| [\w-]+/[\w-]+, `[\w./-]+` \| `[0-9a-f]{40}` \| (?:MIT|Apache-2\.0|BSD)\S* .*\|"
)


def test_every_recording_has_a_row_with_repository_path_commit_and_licence():
    rows = {match[1] for line in (FOLDER / "README.md").read_text().splitlines() if (match := ROW.match(line))}
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    assert rows == files
