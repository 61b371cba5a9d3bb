"""stoker.DataLoader beside torch's where things are unusual: what a batch holds, how workers begin and end, what is asked of them."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import stoker
import torch

MODES = ["threads", "processes"]


class Numbers(torch.utils.data.Dataset):
    """Sample i is i."""

    def __init__(self, count=100):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Fails(Numbers):
    def __getitem__(self, index):
        if index in (3, 9):
            raise KeyError(f"no sample {index}")
        return index


def loader(dataset, **options):
    return stoker.DataLoader(dataset, **({"batch_size": 8, "num_workers": 2, "quiet": True} | options))


def of_a_process(value):
    """The same after a worker process has sent it."""
    return next(iter(loader(Numbers(8), mode="processes", collate_fn=lambda _: value)))


@pytest.mark.parametrize(
    "array",
    [
        numpy.array(2.5),
        numpy.arange(3, dtype=numpy.longdouble),
        numpy.arange(6).reshape(2, 3).T,
        numpy.asfortranarray(numpy.arange(24.0).reshape(2, 3, 4)),
        numpy.arange(20)[::3],
        numpy.zeros((0, 3), dtype=numpy.float16),
    ],
)
def test_arrays_come_back_as_they_were(array):
    came = of_a_process(array)
    assert type(came) is numpy.ndarray and came.dtype == array.dtype and came.shape == array.shape
    assert (came == array).all() and came.flags.c_contiguous == (array.flags.c_contiguous or not array.flags.fnc)


@pytest.mark.filterwarnings("error:The given NumPy array is not writable")
def test_arrays_that_may_not_be_written_to_come_without_a_warning():
    array = numpy.arange(4)
    array.flags.writeable = False
    assert of_a_process(array).tolist() == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_come_back_as_they_were():
    last = torch.arange(48.0).view(1, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    assert of_a_process(last).stride() == last.stride() and torch.equal(of_a_process(last), last)
    assert of_a_process(torch.ones(2, requires_grad=True)).requires_grad
    turned = torch.tensor([1 + 2j]).conj()
    assert of_a_process(turned).tolist() == [1 - 2j]
    nested = of_a_process(torch.nested.nested_tensor([torch.zeros(2), torch.ones(3)]))
    assert nested.is_nested and nested[1].tolist() == [1, 1, 1]


def test_what_torch_does_not_collate_is_refused_as_there():
    class Sparse(Numbers):
        def __getitem__(self, index):
            return torch.eye(3).to_sparse()

    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        list(loader(Sparse(), mode="processes"))


def test_torchs_collation_within_somebodys_own_takes_no_shared_memory():
    def collate(samples):
        batch = torch.utils.data.default_collate(samples)
        return batch, batch.is_shared()

    batches = list(loader(Numbers(16), mode="processes", collate_fn=collate))
    assert [batch.tolist() for batch, _ in batches] == [list(range(8)), list(range(8, 16))]
    assert not any(is_shared for _, is_shared in batches)


def test_many_indices_and_long_answers_do_not_wait_for_each_other():
    class Texts(Numbers):
        def __getitem__(self, index):
            return str(index)

    batches = list(loader(Texts(240_000), mode="processes", batch_size=60_000))
    assert [text for batch in batches for text in batch] == [str(i) for i in range(240_000)]


@pytest.mark.parametrize("ahead", [1000, 10**9])
def test_any_number_of_batches_may_be_asked_for_ahead(ahead):
    batches = loader(Numbers(2000), mode="processes", batch_size=1, prefetch_factor=ahead)
    assert [i for batch in batches for i in batch.tolist()] == list(range(2000))


@pytest.mark.parametrize("size", [None, 8])
def test_a_sampler_may_give_tensors(size):
    order = torch.randperm(100)

    class Doubles(Numbers):
        def __getitem__(self, index):
            assert type(index) is torch.Tensor
            return 2 * index

    ours = loader(Doubles(), mode="processes", batch_size=size, sampler=order)
    assert torch.equal(torch.cat([batch.view(-1) for batch in ours]), 2 * order)


def test_workers_that_were_killed_between_epochs_are_replaced():
    ours = loader(Numbers(), mode="processes")
    assert len(list(ours)) == 13
    for process, _, _ in ours._processes._workers:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))


class Draws(Numbers):
    """Sample i is what the worker's own generator draws."""

    def begin(self, number):
        info = torch.utils.data.get_worker_info()
        assert (info.id, info.seed) == (number, torch.initial_seed())
        info.dataset.random = numpy.random.default_rng(info.seed)

    def __getitem__(self, index):
        time.sleep(0.002)
        return self.random.integers(2**40)


@pytest.mark.parametrize("persistent", [True, False])
def test_generators_that_workers_seed_are_others_in_each_worker_and_epoch(persistent):
    dataset = Draws()
    ours = loader(dataset, worker_init_fn=dataset.begin, persistent_workers=persistent)
    drawn = [i for _ in range(3) for batch in ours for i in batch.tolist()]
    assert len(set(drawn)) == len(drawn) == 300


def test_a_process_that_cannot_begin_says_why():
    def begin(number):
        raise OSError("no device")

    with pytest.raises(OSError, match=r"^no device") as error:
        list(loader(Numbers(), worker_init_fn=begin))
    assert "in begin" in error.value.__notes__[-1]


def test_what_a_worker_prints_is_not_lost(module_environment):
    code = """
import torch, stoker
class Prints(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, index): print(f"<{index}>", end=""); return index
for batch in stoker.DataLoader(Prints(), num_workers=2, mode="processes"): pass
"""
    environment = {name: value for name, value in module_environment.items() if name != "PYTHONUNBUFFERED"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert sorted(said.stdout.strip("<>").split("><"), key=int) == [str(i) for i in range(20)]


def test_iterations_of_several_threads_each_have_all_batches():
    ours, seen = loader(Numbers(), mode="processes"), {}

    def iterate(number):
        seen[number] = [i for _ in range(3) for batch in ours for i in batch.tolist()]

    threads = [threading.Thread(target=iterate, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == dict.fromkeys(range(3), [*range(100)] * 3)


def test_a_loader_can_be_pickled_after_it_was_used():
    ours = loader(Numbers(), mode="processes")
    assert len(list(ours)) == 13
    assert [i for batch in pickle.loads(pickle.dumps(ours)) for i in batch.tolist()] == list(range(100))


@pytest.mark.parametrize("options", [{"num_workers": 0}, {"mode": "threads"}, {"mode": "processes"}])
def test_an_iteration_goes_on_after_an_error_of_the_dataset(options):
    batches, came, missing = iter(loader(Fails(20), batch_size=2, **options)), [], []
    assert len(batches) == 10
    while True:
        try:
            came += next(batches).tolist()
        except StopIteration:
            break
        except KeyError as error:
            missing.append(error.args[0])
    assert came == [i for i in range(20) if i not in (2, 3, 8, 9)]
    assert missing == ["no sample 3", "no sample 9"]


def test_an_error_that_was_handled_keeps_no_threads(python):
    code = """
import gc, threading, time, torch, stoker
class Fails(torch.utils.data.Dataset):
    def __len__(self): return 100
    def __getitem__(self, index): return {}[index]
def handle():
    batches = iter(stoker.DataLoader(Fails(), num_workers=2, mode="threads"))
    try:
        next(batches)
    except KeyError as error:
        return str(error)
gc.disable()
assert handle() == "0"
end = time.monotonic() + 10
while threading.active_count() > 1 and time.monotonic() < end: time.sleep(0.01)
print(threading.active_count())
"""
    assert python(code) == "1\n"


def test_batches_are_pinned_where_there_is_a_gpu(monkeypatch):
    from torch.utils.data._utils import pin_memory

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(pin_memory, "pin_memory", lambda batch, device: ("pinned", device, batch.tolist()))
    pinned = list(loader(Numbers(16), num_workers=0, pin_memory=True))
    assert pinned == [("pinned", None, list(range(8))), ("pinned", None, list(range(8, 16)))]


def test_an_iteration_that_ended_early_does_not_look_like_the_end_of_an_epoch():
    class Sleeps(Numbers):
        def __getitem__(self, index):
            time.sleep(index)
            return index

    batches = iter(loader(Sleeps(), batch_size=1, mode="processes", timeout=0.3))
    assert next(batches).tolist() == [0]
    with pytest.raises(stoker.WaitTimeoutError):
        next(batches)
    for _ in range(2):
        with pytest.raises(stoker.CancelledError) as error:
            next(batches)
        said = "loader: this iteration has ended early (WaitTimeoutError)\n  try: iterate over the loader anew"
        assert str(error.value) == said


@pytest.mark.parametrize("options", [{"num_workers": 0}, {"mode": "threads"}, {"mode": "processes"}])
def test_a_dataset_that_raises_stop_iteration_does_not_end_the_epoch(options):
    class Stops(Numbers):
        def __getitem__(self, index):
            return next(iter([]))

    with pytest.raises(RuntimeError, match=r"^loader: the dataset raised StopIteration\(\)$"):
        list(loader(Stops(), **options))


@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_a_dataset_that_makes_whole_batches_names_the_samples(mode):
    part = torch.utils.data.Subset(Fails(), range(100))
    with pytest.raises(KeyError) as error:
        list(loader(part, mode=mode))
    assert error.value.__notes__[0] == "in one of the samples 0, 1, 2, 3, ... of Subset"


def test_a_dataset_may_have_no_whole_batches_and_no_length():
    class Bare:
        __getitems__ = None

        def __getitem__(self, index):
            return index

    ours = loader(Bare(), sampler=range(20))
    assert ours.plan() == "2 processes: Bare has no length, by which samples could be measured"
    assert [i for batch in ours for i in batch.tolist()] == list(range(20))


@pytest.mark.parametrize("mode", MODES)
def test_torchs_newest_arguments_are_taken(mode):
    options = {"shuffle": None, "pin_memory_device": "", "in_order": False, "timeout": 1e300}
    ours = loader(Numbers(), mode=mode, **options)
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))
    assert ours.collate_fn is torch.utils.data.default_collate


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
