"""The long form of test_lab_up_down.py: each of its ways to come and go, twenty times in a row."""

import pytest
import remains
import test_lab_up_down as once

pytestmark = [pytest.mark.needs("slurm", "mount"), pytest.mark.soak, pytest.mark.timeout(1800)]

WAYS = {
    "with jobs": once.test_up_with_jobs_and_down_leaves_nothing,
    "two at once": once.test_two_at_once_come_and_go_at_the_same_time,
    "a taken port": once.test_a_taken_port_is_stepped_over,
    "no room": once.test_a_full_disk_is_told_and_leaves_nothing,
    "a full disk": once.test_a_disk_that_fills_up_under_a_lab_does_not_keep_it,
    "a killed owner": lambda labs: once.test_the_lab_ends_with_a_killed_owner(labs, "later"),
    "a killed owner at its start": lambda labs: once.test_the_lab_ends_with_a_killed_owner(labs, "while it starts"),
    "a crash": once.test_down_takes_away_what_a_crash_left,
    "a killed start": once.test_down_takes_a_half_made_lab_away,
    "an interrupted start": once.test_an_interrupted_start_leaves_nothing,
}


@pytest.mark.parametrize("way", WAYS)
def test_twenty_times_in_a_row(labs, way):
    before = remains.all_labs()
    for _ in range(20):
        WAYS[way](labs)
    assert remains.all_labs() <= before
