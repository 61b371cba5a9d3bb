"""The long lane: many kills during saves."""

import os
import subprocess

import pytest
from conftest import BIN


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_500_kills_while_writing_renaming_and_pruning_lose_no_checkpoint():
    done = subprocess.run(
        [BIN / "checkpoint_test", "--gtest_filter=Killed.at_a_random_moment_the_newest_step_is_valid"],
        env=dict(os.environ, STOKER_KILLS="500"),
        capture_output=True,
        text=True,
        timeout=3500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ] 1 test" in done.stdout
