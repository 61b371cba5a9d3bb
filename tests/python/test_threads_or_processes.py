"""The choice of stoker.DataLoader between threads and processes."""

import sys
import time

import numpy
import pytest
import torch
from own_datasets import Numbers, Random, Squares, loader


class HoldsTheLock(Squares):
    def __getitem__(self, index):
        sum(range(100_000))
        return index


class ReleasesTheLock(Squares):
    def __getitem__(self, index):
        time.sleep(0.004)
        return index


def test_processes_are_chosen_if_the_code_holds_the_gil(capfd):
    ours = loader(HoldsTheLock(), quiet=False)
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))
    output = capfd.readouterr().err
    assert output.startswith("stoker.DataLoader: 2 processes: 2 threads are ")
    assert output.endswith(" times as fast as one: HoldsTheLock holds the GIL\n")
    assert ours.plan() == output.removeprefix("stoker.DataLoader: ").strip()


def test_threads_are_chosen_if_the_code_releases_the_gil(capfd):
    ours = loader(ReleasesTheLock())
    assert ours.plan().startswith("2 threads: 2 threads are ")
    assert ours.plan().endswith(" times as fast as one: ReleasesTheLock releases the GIL")
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))
    assert capfd.readouterr().err == ""  # quiet


def test_processes_are_chosen_if_a_file_is_open(tmp_path):
    class Reads(ReleasesTheLock):
        file = None

        def __getitem__(self, index):
            if self.file is None:  # like datasets over HDF5
                self.file = open(__file__, "rb")  # noqa: SIM115
            return super().__getitem__(index)

    dataset = Reads()
    assert loader(dataset).plan() == "2 processes: Reads.file is an open handle, which threads would share"
    assert dataset.file is None  # the measurement did not change the caller's dataset


def test_processes_are_chosen_if_the_measurement_fails():
    class FailsAtOnce(Squares):
        def __getitem__(self, index):
            raise OSError("no disk")

    ours = loader(FailsAtOnce())
    assert ours.plan() == "2 processes: loading a sample failed while measuring whether threads help"
    with pytest.raises(OSError, match="no disk"):
        list(ours)


def test_fast_batches_need_no_workers():
    assert loader(Squares()).plan().startswith("1 thread: a batch takes 0.")


def test_measuring_does_not_change_random_states():
    torch.manual_seed(1)
    numpy.random.seed(1)
    expected = torch.rand(1), numpy.random.rand()
    torch.manual_seed(1)
    numpy.random.seed(1)
    loader(Random()).plan()
    assert (torch.rand(1), numpy.random.rand()) == expected


def test_a_worker_init_fn_selects_processes(capfd):
    ours = loader(Squares(), worker_init_fn=print, quiet=False)
    assert len(list(ours)) == 13
    output = capfd.readouterr()
    assert output.err == "stoker.DataLoader: 2 processes: worker_init_fn is set\n"
    assert sorted(output.out.replace("\n", "")) == ["0", "1"]
    assert loader(Squares(), worker_init_fn=print, num_workers=0).plan() == "0 threads: num_workers=0"


class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(0.6)
        return index


def test_the_measurement_does_not_wait_for_a_slow_sample():
    started = time.monotonic()
    reason = "samples are too slow to measure within 2 s whether threads help"
    assert loader(Slow()).plan() == f"2 processes: {reason}"
    assert time.monotonic() - started < 60


class Reads(Numbers):
    def __init__(self):
        super().__init__()
        self.file = open(__file__, "rb")  # noqa: SIM115


class ReadsBy(Numbers):
    def __init__(self, reader):
        super().__init__()
        self.reader = reader


def test_an_open_file_is_found_anywhere_in_a_dataset():
    from stoker import gil

    data = torch.utils.data
    assert gil.open_handle(data.ConcatDataset([Numbers(), Reads()])) == "datasets[1].file"
    assert gil.open_handle(data.Subset(data.ConcatDataset([Reads()]), [1])) == "dataset.datasets[0].file"
    assert gil.open_handle(ReadsBy({"train": Reads()})) == "reader['train'].file"
    closed = Reads()
    closed.file.close()
    around = ReadsBy(closed)
    around.myself, around.out = around, sys.__stdout__
    assert gil.open_handle(around) is None
