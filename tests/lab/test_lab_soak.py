"""The long form of test_lab_up_down.py: each of its ways to come and go, twenty times in a row."""

import pytest
import remains
import test_lab_up_down as once

pytestmark = [pytest.mark.needs("slurm", "slurmdbd", "mount"), pytest.mark.soak, pytest.mark.timeout(1800)]

# Each is called with the number of the round.
WAYS = {
    "with jobs": lambda labs, _: once.test_up_with_jobs_and_down_leaves_nothing(labs),
    "with accounting": lambda labs, _: once.come_and_go_with_accounting(labs),
    "two at once": lambda labs, _: once.test_two_at_once_come_and_go_at_the_same_time(labs),
    "a taken port": lambda labs, _: once.test_a_taken_port_is_stepped_over(labs),
    "full disk": lambda labs, _: once.test_a_full_disk_is_an_error_and_leaves_no_lab(labs),
    "a full disk": lambda labs, _: once.test_a_disk_that_fills_up_under_a_lab_does_not_keep_it(labs),
    "a killed owner": lambda labs, _: once.test_the_lab_ends_with_a_killed_owner(labs, "later"),
    "an owner killed at the start": lambda labs, _: once.test_the_lab_ends_with_a_killed_owner(labs, "while it starts"),
    "a crash": lambda labs, _: once.test_down_takes_away_what_a_crash_left(labs),
    "an interrupted start": lambda labs, _: once.test_an_interrupted_start_leaves_nothing(labs),
    "a killed start": lambda labs, number: once.test_down_takes_a_half_made_lab_away(
        labs, once.MOMENTS[number % len(once.MOMENTS)]
    ),
    "a killed down": lambda labs, number: once.test_down_ends_what_a_killed_down_began(labs, 0.008 * number),
}


@pytest.mark.parametrize("way", WAYS)
def test_twenty_times_in_a_row(labs, way):
    before = remains.all_labs()
    for number in range(20):
        WAYS[way](labs, number)
    assert remains.all_labs() <= before
