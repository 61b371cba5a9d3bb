"""The checker for "every sample exactly once": accepts good receipts and reports errors."""

import struct
import subprocess
import sys
from pathlib import Path

import receipts


def write(run: Path, attempt: int, rank: int, steps: list[tuple[int, int, list[int]]], torn: bytes = b"") -> None:
    folder = run / "attempts" / str(attempt)
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(struct.pack(f"<III{len(ids)}Q", epoch, step, len(ids), *ids) for epoch, step, ids in steps)
    (folder / f"receipts-{rank:04}.bin").write_bytes(data + torn)


def wrong(run: Path, samples: int) -> list[str]:
    return receipts.mistakes(receipts.receipts_of(run), samples)


def test_two_epochs_on_two_ranks_are_accepted(tmp_path):
    write(tmp_path, 1, 0, [(0, 0, [2, 0]), (1, 1, [1, 3])])
    write(tmp_path, 1, 1, [(0, 0, [1, 3]), (1, 1, [0, 2])])
    assert wrong(tmp_path, 4) == []
    command = [sys.executable, receipts.__file__, tmp_path, "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}: 2 ranks, 2 epochs, each of 4 samples seen once in each\n"


def test_repeated_steps_after_a_resume_count_once(tmp_path):
    write(tmp_path, 1, 0, [(0, 0, [0]), (0, 1, [2]), (0, 2, [4])], torn=struct.pack("<IIIQ", 0, 3, 2, 6))
    write(tmp_path, 1, 1, [(0, 0, [1]), (0, 1, [3])])
    write(tmp_path, 2, 0, [(0, 1, [2]), (0, 2, [4])])
    write(tmp_path, 2, 1, [(0, 1, [3]), (0, 2, [5])])
    assert wrong(tmp_path, 6) == []


def test_a_second_attempt_that_starts_too_late_is_detected(tmp_path):
    write(tmp_path, 1, 0, [(0, 0, [0])])
    write(tmp_path, 2, 0, [(0, 2, [2])])
    assert wrong(tmp_path, 3) == ["epoch 0: 1 samples were not seen"]


def test_repeated_missing_and_foreign_samples_are_named(tmp_path):
    write(tmp_path, 1, 0, [(0, 0, [0, 1]), (1, 1, [0, 0])])
    write(tmp_path, 1, 1, [(0, 0, [2, 9]), (1, 1, [1, 2])])
    assert wrong(tmp_path, 4) == [
        "epoch 0: 1 samples were not seen",
        "epoch 0: 1 samples are not of the dataset",
        "epoch 1: 1 samples were not seen",
        "epoch 1: 1 samples were seen again, expected 0",
    ]


def test_padding_is_expected_if_samples_are_not_divisible(tmp_path):
    write(tmp_path, 1, 0, [(0, 0, [0, 2])])
    write(tmp_path, 1, 1, [(0, 0, [1, 0])])
    assert wrong(tmp_path, 3) == []


def test_a_different_number_of_ranks_for_the_rest_of_an_epoch_is_accepted(tmp_path):
    write(tmp_path, 1, 0, [(0, 1, [0]), (0, 2, [2])])
    write(tmp_path, 1, 1, [(0, 1, [1]), (0, 2, [3])])
    write(tmp_path, 2, 0, [(0, 2, [2, 3]), (0, 3, [4, 5]), (0, 4, [6])])
    assert wrong(tmp_path, 7) == []
    write(tmp_path, 3, 0, [(0, 3, [4])])
    write(tmp_path, 3, 1, [(0, 3, [5])])
    write(tmp_path, 3, 2, [(0, 3, [6])])
    assert wrong(tmp_path, 7) == []
    write(tmp_path, 4, 0, [(0, 3, [4, 6])])
    write(tmp_path, 4, 1, [(0, 3, [5, 4])])
    assert wrong(tmp_path, 7) == []
    write(tmp_path, 5, 0, [(0, 3, [4, 6])])
    write(tmp_path, 5, 1, [(0, 3, [5])])
    assert wrong(tmp_path, 7) == ["epoch 0: 0 samples were seen again, expected 1"]


def test_ranks_with_different_steps_are_reported(tmp_path):
    write(tmp_path, 1, 0, [(0, 0, [0]), (0, 1, [1])])
    write(tmp_path, 1, 1, [(0, 2, [2]), (0, 2, [3])])
    assert wrong(tmp_path, 4) == [
        "rank 1: a step appears twice or out of order",
        "rank 1: has other steps than rank 0",
    ]


def test_a_run_without_receipts_proves_nothing(tmp_path):
    (tmp_path / "attempts" / "1").mkdir(parents=True)
    assert wrong(tmp_path, 4) == ["no receipts"]
