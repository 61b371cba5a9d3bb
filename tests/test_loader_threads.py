"""The trainer's losses do not depend on the loader's threads and prefetch depth."""

import csv
import shutil

import pytest

JOB = """\
name: threads-{threads}-{prefetch}
train: {{model: cifar-resnet20, epochs: 2, batch: 40, seed: 5, threads: 1, num_workers: {threads}, prefetch: {prefetch}}}
data:
  train: {{source: dataset, split: train}}
  validation: {{source: dataset, split: test}}
resources: {{ranks_per_node: {ranks}, cpus_per_rank: 1}}
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("ranks", [1, 2])
def test_losses_are_the_same_for_any_threads_and_prefetch(stoker, example_images, tmp_path, ranks):
    for split, most in (("train", 16), ("test", 4)):
        for folder in (example_images / split).iterdir():
            (tmp_path / "images" / split / folder.name).mkdir(parents=True)
            for image in sorted(folder.iterdir())[:most]:
                shutil.copy(image, tmp_path / "images" / split / folder.name)
    stoker("data", "pack", "images", "dataset", code=0)
    seen = {}
    for threads, prefetch in ((1, 1), (4, 6)):
        (tmp_path / "job.yaml").write_text(JOB.format(ranks=ranks, threads=threads, prefetch=prefetch))
        stoker("run", "job.yaml", code=0, timeout=280)
        (run,) = tmp_path.glob(f"runs/*threads-{threads}-{prefetch}*")
        losses = []
        for rank in range(ranks):
            with (run / f"attempts/1/metrics-{rank:04}.csv").open() as file:
                losses += [(row["epoch"], row["step"], row["loss"]) for row in csv.DictReader(file)]
        with (run / "attempts/1/epochs.csv").open() as file:
            losses += [(row["val_loss"], row["val_top1"]) for row in csv.DictReader(file)]
        seen[threads] = losses
    assert len(seen[1]) == 8 + 2  # steps of all ranks, epochs
    assert seen[1] == seen[4]
