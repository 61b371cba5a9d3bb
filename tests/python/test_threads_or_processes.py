"""How stoker.DataLoader chooses between threads and processes."""

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


class LetsGo(Squares):
    def __getitem__(self, index):
        time.sleep(0.004)
        return index


def test_processes_are_chosen_where_the_code_holds_pythons_lock(capfd):
    ours = loader(HoldsTheLock(), quiet=False)
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))
    said = capfd.readouterr().err
    assert said.startswith("stoker.DataLoader: 2 processes: 2 threads are ")
    assert said.endswith(" times as fast as one: HoldsTheLock holds Python's lock\n")
    assert ours.plan() == said.removeprefix("stoker.DataLoader: ").strip()


def test_threads_are_chosen_where_it_lets_go_of_it(capfd):
    ours = loader(LetsGo())
    assert ours.plan().startswith("2 threads: 2 threads are ")
    assert ours.plan().endswith(" times as fast as one: LetsGo lets go of Python's lock")
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))
    assert capfd.readouterr().err == ""  # quiet


def test_processes_are_chosen_where_a_file_is_open(tmp_path):
    class Reads(LetsGo):
        file = None

        def __getitem__(self, index):
            if self.file is None:  # as datasets over HDF5 do it
                self.file = open(__file__, "rb")  # noqa: SIM115
            return super().__getitem__(index)

    dataset = Reads()
    assert loader(dataset).plan() == "2 processes: Reads.file is open, and threads would share it"
    assert dataset.file is None  # measuring left the caller's dataset alone


def test_processes_are_chosen_where_nothing_could_be_measured():
    class FailsAtOnce(Squares):
        def __getitem__(self, index):
            raise OSError("no disk")

    ours = loader(FailsAtOnce())
    assert ours.plan() == "2 processes: a sample could not be taken to measure whether threads help"
    with pytest.raises(OSError, match="no disk"):
        list(ours)


def test_batches_that_are_quick_need_no_workers():
    assert loader(Squares()).plan().startswith("1 thread: a batch takes 0.")


def test_measuring_leaves_the_random_states_as_they_were():
    torch.manual_seed(1)
    numpy.random.seed(1)
    expected = torch.rand(1), numpy.random.rand()
    torch.manual_seed(1)
    numpy.random.seed(1)
    loader(Random()).plan()
    assert (torch.rand(1), numpy.random.rand()) == expected


def test_a_function_that_begins_workers_means_processes(capfd):
    ours = loader(Squares(), worker_init_fn=print, quiet=False)
    assert len(list(ours)) == 13
    said = capfd.readouterr()
    assert said.err == "stoker.DataLoader: 2 processes: worker_init_fn is called in each\n"
    assert sorted(said.out.replace("\n", "")) == ["0", "1"]
    assert loader(Squares(), worker_init_fn=print, num_workers=0).plan() == "0 threads: num_workers=0"


class Slow(Numbers):
    def __getitem__(self, index):
        time.sleep(0.6)
        return index


def test_a_sample_that_takes_long_is_not_waited_for():
    started = time.monotonic()
    reason = "samples take too long to measure within 2 s whether threads help"
    assert loader(Slow()).plan() == f"2 processes: {reason}"
    assert time.monotonic() - started < 10


class Reads(Numbers):
    def __init__(self):
        super().__init__()
        self.file = open(__file__, "rb")  # noqa: SIM115


class ReadsBy(Numbers):
    def __init__(self, reader):
        super().__init__()
        self.reader = reader


def test_an_open_file_is_found_wherever_a_dataset_keeps_it():
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
