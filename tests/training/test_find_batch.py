"""stoker-train --find-batch: trials and output."""

import re

import pytest
import trained


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images, train=4, test=2)


def find(stoker, *arguments) -> tuple[int, str, str]:
    process = stoker.start("--find-batch", *arguments, program=stoker.train_path)
    out, err = process.communicate()
    return process.returncode, out, err


def test_doubles_the_batch_up_to_the_data_size_and_reports_the_fastest(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "1 epochs")
    code, out, err = find(stoker, "--job", job, "--set", "train.image.crop=none")
    assert (code, err) == (0, "")
    tried = re.findall(r"^batch +(\d+)   step +\S+ \S+ +([\d.]+) samples/s +\d+ MB$", out, re.MULTILINE)
    batches = [int(batch) for batch, _ in tried]
    assert batches == [2 << n for n in range(len(batches))] and 3 <= len(batches) <= 4  # 40 samples, two ranks: 20 each
    fastest = int(re.search(r"^fastest: train: \{batch: (\d+)\} \(one rank on", out, re.MULTILINE)[1])
    speeds = dict(zip(batches, (float(speed) for _, speed in tried), strict=True))
    assert speeds[fastest] >= 0.95 * max(speeds.values()) - 0.1
    assert re.search(
        r"^stopped at batch \d+: (a rank has only 20 samples of the training data|the last two)", out, re.MULTILINE
    )
    assert not (stoker.folder / "runs").exists()


def test_a_failing_job_is_reported(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    code, _, err = find(stoker, "--job", job, "--set", "train.classes=3")
    assert code == 2
    assert err == ("train.batch: 2: exit code 2: train.classes: 3 is too small: the largest label of 'train' is 9\n")
