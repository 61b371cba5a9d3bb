"""Slow behaviour of Slurm: tests/lab_stories.py runs it while other tests run."""

import lab_stories
import pytest

pytestmark = pytest.mark.needs("slurm")


def named(stories):
    return pytest.mark.parametrize("story", stories, ids=lambda story: story.__name__)


@named(lab_stories.STORIES)
def test_slurm_takes_jobs_away_and_gives_them_back(end_story, story):
    end_story(story)


@pytest.mark.needs("namespaces")
@named(lab_stories.CABLE_STORIES)
def test_slurm_misses_nodes(end_story, story):
    end_story(story)
