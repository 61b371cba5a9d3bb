"""Worker processes of stoker.DataLoader: contents of batches, start and end."""

import gc
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
from own_datasets import MODES, Numbers, Random, Squares, loader


def of_a_process(value):
    """The value after a round trip through a worker process."""
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
def test_arrays_round_trip(array):
    came = of_a_process(array)
    assert type(came) is numpy.ndarray and came.dtype == array.dtype and came.shape == array.shape
    assert (came == array).all() and came.flags.c_contiguous == (array.flags.c_contiguous or not array.flags.fnc)


@pytest.mark.filterwarnings("error:The given NumPy array is not writable")
def test_read_only_arrays_cause_no_warning():
    array = numpy.arange(4)
    array.flags.writeable = False
    assert of_a_process(array).tolist() == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_round_trip():
    last = torch.arange(48.0).view(1, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    assert of_a_process(last).stride() == last.stride() and torch.equal(of_a_process(last), last)
    assert of_a_process(torch.ones(2, requires_grad=True)).requires_grad
    turned = torch.tensor([1 + 2j]).conj()
    assert of_a_process(turned).tolist() == [1 - 2j]
    nested = of_a_process(torch.nested.nested_tensor([torch.zeros(2), torch.ones(3)]))
    assert nested.is_nested and nested[1].tolist() == [1, 1, 1]


def test_uncollatable_batches_raise_torchs_error():
    class Sparse(Numbers):
        def __getitem__(self, index):
            return torch.eye(3).to_sparse()

    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        list(loader(Sparse(), mode="processes"))


def test_torchs_collation_in_a_custom_collate_fn_uses_no_shared_memory_files():
    def collate(samples):
        batch = torch.utils.data.default_collate(samples)
        return batch, batch.is_shared()

    batches = list(loader(Numbers(16), mode="processes", collate_fn=collate))
    assert [batch.tolist() for batch, _ in batches] == [list(range(8)), list(range(8, 16))]
    assert not any(is_shared for _, is_shared in batches)


def test_many_indices_and_long_answers_do_not_deadlock():
    class Texts(Numbers):
        def __getitem__(self, index):
            return str(index)

    batches = list(loader(Texts(240_000), mode="processes", batch_size=60_000))
    assert [text for batch in batches for text in batch] == [str(i) for i in range(240_000)]


@pytest.mark.parametrize("ahead", [1000, 10**9])
def test_any_prefetch_factor_works(ahead):
    batches = loader(Numbers(2000), mode="processes", batch_size=1, prefetch_factor=ahead)
    assert [i for batch in batches for i in batch.tolist()] == list(range(2000))


@pytest.mark.parametrize("size", [None, 8])
def test_a_sampler_may_return_tensors(size):
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
    """Sample i is drawn from the worker's generator."""

    def begin(self, number):
        info = torch.utils.data.get_worker_info()
        assert (info.id, info.seed) == (number, torch.initial_seed())
        info.dataset.random = numpy.random.default_rng(info.seed)

    def __getitem__(self, index):
        time.sleep(0.002)
        return self.random.integers(2**40)


@pytest.mark.parametrize("persistent", [True, False])
def test_generators_seeded_by_workers_differ_between_workers_and_epochs(persistent):
    dataset = Draws()
    ours = loader(dataset, worker_init_fn=dataset.begin, persistent_workers=persistent)
    drawn = [i for _ in range(3) for batch in ours for i in batch.tolist()]
    assert len(set(drawn)) == len(drawn) == 300


def test_a_failing_worker_init_fn_of_a_process_is_reported():
    def begin(number):
        raise OSError("no device")

    with pytest.raises(OSError, match=r"^no device") as error:
        list(loader(Numbers(), worker_init_fn=begin))
    assert "in begin" in error.value.__notes__[-1]


def test_output_of_a_worker_is_not_lost(module_environment):
    code = """
import torch, stoker
class Prints(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, index): print(f"<{index}>", end=""); return index
for batch in stoker.DataLoader(Prints(), num_workers=2, mode="processes"): pass
"""
    environment = {name: value for name, value in module_environment.items() if name != "PYTHONUNBUFFERED"}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert sorted(output.stdout.strip("<>").split("><"), key=int) == [str(i) for i in range(20)]


def test_concurrent_iterations_each_have_all_batches():
    ours, seen = loader(Numbers(), mode="processes"), {}

    def iterate(number):
        seen[number] = [i for _ in range(3) for batch in ours for i in batch.tolist()]

    threads = [threading.Thread(target=iterate, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == dict.fromkeys(range(3), [*range(100)] * 3)


def test_a_used_loader_can_be_pickled():
    ours = loader(Numbers(), mode="processes")
    assert len(list(ours)) == 13
    assert [i for batch in pickle.loads(pickle.dumps(ours)) for i in batch.tolist()] == list(range(100))


@pytest.mark.parametrize("workers", [1, 3])
def test_random_numbers_do_not_depend_on_the_number_of_processes(workers):
    def run(count):
        torch.manual_seed(5)
        return [(float(a.sum()), b.sum().item()) for a, b in loader(Random(), mode="processes", num_workers=count)]

    expected = run(2)
    assert run(workers) == expected
    assert len(set(expected)) == len(expected)


def test_batches_larger_than_a_slot_are_returned(monkeypatch):
    from stoker import slots

    monkeypatch.setattr(slots, "_SLOT_BYTES", 4096)

    class Grows(Squares):
        def __getitem__(self, index):
            return torch.full((1 + 5000 * (index > 50),), index)

    batches = list(loader(Grows(), mode="processes", batch_size=1))
    assert [batch.shape[1] for batch in batches] == [1] * 51 + [5001] * 49
    assert all((batch == i).all() for i, batch in enumerate(batches))


def test_an_unpicklable_batch_is_an_error():
    def collate(samples):
        return lambda: samples

    with pytest.raises(Exception, match=r"(?i)can't.*(pickle|local)") as error:
        list(loader(Squares(), mode="processes", collate_fn=collate))
    assert "in a worker process of stoker.DataLoader:" in error.value.__notes__[-1]
    assert len(list(loader(Squares(), mode="threads", collate_fn=collate))) == 13


@pytest.mark.parametrize("mode", MODES)
def test_a_forked_child_does_not_touch_its_parents_workers(mode):
    ours = loader(Squares(400), mode=mode)
    batches = iter(ours)
    first = next(batches)[1].tolist()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(batches)
        except stoker.InvalidError as error:
            os.write(write, str(error).encode())
        if len(list(ours)) != 50:  # with new workers
            os.write(write, b"lacks batches")
        ours.close()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        output = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert output == (
        f"loader: created before a fork, which does not copy threads (created by process {os.getpid()}, used by {child})\n"
        "  try: create the loader in the process that iterates over it"
    )
    assert first + [i for batch in batches for i in batch[1].tolist()] == list(range(400))


def test_a_killed_worker_is_named():
    class Kills(Squares):
        def __getitem__(self, index):
            if index == 20:
                os.kill(os.getpid(), signal.SIGKILL)
            return index

    with pytest.raises(stoker.UnavailableError) as error:
        list(loader(Kills(), mode="processes"))
    assert "ended (killed by signal 9) during the batch of samples 16, 17, 18, 19, ..." in str(error.value)
    assert "try: fewer workers (the kernel kills processes when memory is short)" in str(error.value)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


def files_in_shared_memory():
    """Slots mapped by this process and its children."""
    found = set()
    for pid in ["self", *children()]:
        with open(f"/proc/{pid}/maps") as maps:
            found |= {line.split()[-1] for line in maps if "/dev/shm/" in line}
    return found


def test_worker_processes_persist_between_epochs_by_default():
    ours = loader(Squares(), mode="processes")
    list(ours)
    before = children()
    list(ours)
    assert children() == before != []
    ours.close()
    assert children() == []
    list(loader(Squares(), mode="processes", persistent_workers=False))
    assert children() == []


def test_workers_have_worker_info():
    class Knows(Squares):
        def __getitem__(self, index):
            return torch.utils.data.get_worker_info().num_workers

    assert next(iter(loader(Knows(), mode="processes", num_workers=3))).tolist() == [3] * 8


def test_workers_of_a_killed_caller_end(module_environment):
    code = """
import os, torch, stoker
class Printing(torch.utils.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index): return os.getpid()
for batch in stoker.DataLoader(Printing(), num_workers=2, mode="processes"):
    print(batch.item(), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], env=module_environment, stdout=subprocess.PIPE, text=True)
    worker = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{worker}")


def test_an_unfinished_iteration_leaves_nothing_behind():
    gc.collect()  # iterators kept alive by errors of earlier tests
    for thread in threading.enumerate():
        if thread.name.startswith("stoker-"):
            thread.join()  # of an earlier timeout test
    threads, processes, shared = set(os.listdir("/proc/self/task")), children(), files_in_shared_memory()
    for mode in MODES:
        ours = loader(Squares(1000), mode=mode)
        for batch in ours:
            assert files_in_shared_memory() == shared
            del batch
            break
        del ours
    assert set(os.listdir("/proc/self/task")) <= threads  # a joined thread may remain visible for a moment
    assert children() == processes
