"""Behaviour for which Slurm needs half a minute: it checks limits every 30 s, notices a missing node after the same time, and
gives preempted jobs a grace time of 10 s. The stories run in a separate lab, each in a thread, from the start of the test
run; tests/lab/test_lab_waits.py checks their results when most of the waiting is over."""

import os
import re
import threading
from collections.abc import Callable, Iterator

import needs
import pytest
from lab_jobs import fault, in_force, start_trapping, submit
from labs import Lab, start_lab, stop_lab
from running import wait_until

LIMIT = 180  # seconds, on a busy machine

# Each attempt writes a line to the job's log.
COUNTED = "echo attempt ${SLURM_RESTART_COUNT:-0}; sleep 600"


def a_job_over_its_limit_is_signalled_then_killed(lab: Lab) -> None:
    late = start_trapping(lab, "--nodelist=n1", "--time=10")
    printed = fault(lab, "expire", late.id)
    assert printed == f"{late.id}: time limit expired (was 10:00) (stoker lab fault heal {late.id})"
    lab.wait_for(late.id, "TIMEOUT", timeout=LIMIT)
    assert late.has("signalled")
    assert fault(lab, "heal", late.id) == f"{late.id}: has ended; nothing to undo"


def a_preempted_job_is_signalled_and_runs_again_after_the_heal(lab: Lab) -> None:
    victim = start_trapping(lab, "--nodelist=n2", "--partition=low")
    printed = fault(lab, "preempt", victim.id)
    (entry,) = [entry for entry in in_force(lab) if entry["target"] == victim.id]
    assert printed == f"{victim.id}: {entry['what']} (stoker lab fault heal {victim.id})"
    assert re.fullmatch(r"preempted on n2 by job \d+ of partition 'cpu'", entry["what"])
    wait_until(lambda: victim.has("signalled"), "the preempted job gets SIGTERM", LIMIT)
    lab.wait_for(victim.id, "PENDING", timeout=LIMIT)
    shown = ("squeue", "-h", "-w", "n2", "-t", "R", "-o", "%P")
    wait_until(lambda: lab.run(*shown).out == "cpu\n", "the other runs", LIMIT)
    assert fault(lab, "heal", victim.id) == f"{victim.id}: the job that preempted it is cancelled"
    (victim.folder / "ran").unlink(missing_ok=True)
    wait_until(lambda: victim.has("ran"), "the preempted job runs again", LIMIT)


def a_job_of_low_makes_room_for_one_of_a_different_partition(lab: Lab) -> None:
    low = submit(lab, COUNTED, "-p", "low", "-w", "n3", "--exclusive")
    lab.wait_for(low.id, "RUNNING", timeout=LIMIT)
    other = submit(lab, COUNTED, "-p", "cpu", "-w", "n3", "--exclusive")
    lab.wait_for(other.id, "RUNNING", timeout=LIMIT)
    assert re.search(r"\bRestarts=1\b", lab.run("scontrol", "show", "job", low.id).out)
    assert lab.state(low.id) in ("PENDING", "COMPLETING", "PREEMPTED")


def a_requeued_job_starts_again(lab: Lab) -> None:
    job = submit(lab, COUNTED, "--nodelist=n1", "--open-mode=append")
    wait_until(lambda: job.read("log") == "attempt 0\n", "the first attempt", LIMIT)
    lab.run("scontrol", "requeue", job.id)
    wait_until(lambda: "attempt 1" in job.read("log"), "the second attempt", LIMIT)


def a_node_that_is_cut_off_goes_down_and_its_job_starts_again(lab: Lab) -> None:
    job = submit(lab, COUNTED, "--nodelist=n4", "--open-mode=append")
    wait_until(lambda: job.read("log") == "attempt 0\n", "the job runs", LIMIT)
    assert fault(lab, "cut", "n4") == "n4: link down (stoker lab fault heal n4)"
    wait_until(lambda: lab.node_states()["n4"] == "down*", "Slurm misses the node", LIMIT)
    assert lab.state(job.id) == "PENDING"
    assert fault(lab, "heal", "n4") == "n4: link up"
    wait_until(lambda: lab.node_states()["n4"] in ("idle", "mixed"), "the node is back", LIMIT)
    wait_until(lambda: "attempt 1" in job.read("log"), "the job starts again", LIMIT)


STORIES = [
    a_job_over_its_limit_is_signalled_then_killed,
    a_preempted_job_is_signalled_and_runs_again_after_the_heal,
    a_job_of_low_makes_room_for_one_of_a_different_partition,
    a_requeued_job_starts_again,
]
CABLE_STORIES = [a_node_that_is_cut_off_goes_down_and_its_job_starts_again]  # namespaces mode


class StoryThread(threading.Thread):
    """Runs one story; `end` raises its failure."""

    def __init__(self, story: Callable[[Lab], None], lab: Lab):
        super().__init__(daemon=True)
        self.story = story
        self.lab = lab
        self._failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.story(self.lab)
        except BaseException as failure:  # pytest.fail raises no Exception
            self._failure = failure

    def end(self) -> None:
        self.join(LIMIT + 60)
        if self.is_alive():
            pytest.fail(f"{self.story.__name__}: does not end")
        if self._failure is not None:
            raise self._failure


@pytest.fixture(scope="session", autouse=True)
def all_stories(request: pytest.FixtureRequest) -> Iterator[dict[str, StoryThread] | pytest.fail.Exception]:
    """Starts the stories with the test run if one of its tests uses them. A lab that does not start fails only these
    tests."""
    if not needs.is_met("slurm") or not any("end_story" in item.fixturenames for item in request.session.items):
        yield {}
        return
    try:
        lab = start_lab(f"w{os.getpid()}")
    except pytest.fail.Exception as failure:
        yield failure
        return
    stories = STORIES + (CABLE_STORIES if lab.mode == "namespaces" else [])
    yield {story.__name__: StoryThread(story, lab) for story in stories}
    stop_lab(lab.name)


@pytest.fixture
def end_story(
    request: pytest.FixtureRequest, all_stories: dict[str, StoryThread] | pytest.fail.Exception
) -> Callable[[Callable], None]:
    """end_story(story) fails if the story failed; a retried test runs it from the beginning."""
    if isinstance(all_stories, pytest.fail.Exception):
        raise all_stories

    def end(story: Callable[[Lab], None]) -> None:
        name = story.__name__
        if getattr(request.node, "execution_count", 1) > 1:
            all_stories[name] = StoryThread(story, all_stories[name].lab)
        all_stories[name].end()

    return end
