"""bench/measure.py: the statistics that the benches are judged by."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import measure


def test_the_ratio_of_pairs_is_their_geometric_mean_within_its_interval():
    assert measure.ratio_interval([(2, 1)] * 8) == measure.Interval(2, 2, 2)
    found = measure.ratio_interval([(4, 1), (1, 1)] * 10)
    assert found.value == pytest.approx(2)
    assert 1 < found.low < 2 < found.high < 4


def test_the_interval_of_a_median_holds_the_true_one_about_95_times_in_100():
    chance = random.Random(7)
    held = 0
    for _ in range(400):
        found = measure.median_interval([chance.gauss(10, 3) for _ in range(100)])
        held += found.low <= 10 <= found.high
    assert 0.92 < held / 400 < 0.99


def test_turns_alternate_and_the_first_round_is_not_measured():
    calls = []
    pairs = measure.in_turns(lambda: calls.append("a") or 1.0, lambda: calls.append("b") or 2.0, pairs=3)
    assert pairs == [(1.0, 2.0)] * 3
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"


@pytest.mark.parametrize(("value", "code"), [(10.0, 0), (10.5, 1)])
def test_a_missed_limit_fails(value, code, capsys):
    with pytest.raises(SystemExit) as ending:
        measure.conclude("start", measure.Interval(value, 9, 11), limit=10, unit="ms")
    assert ending.value.code == code
    assert capsys.readouterr().out.startswith("ok" if code == 0 else "MISSED")
