"""stoker.DataLoader returns the batches of torch's DataLoader over custom datasets, with threads or processes."""

import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import stoker
import torch
from own_datasets import MODES, Fails, Numbers, Squares, loader
from running import Process


@pytest.mark.parametrize("mode", [*MODES, "none"])
def test_batches_match_torchs_data_loader(mode):
    options = {"batch_size": 8, "shuffle": True, "drop_last": True}
    workers = {"num_workers": 0} if mode == "none" else {"mode": mode}
    ours = loader(Squares(), generator=torch.Generator().manual_seed(3), **options, **workers)
    theirs = torch.utils.data.DataLoader(Squares(), generator=torch.Generator().manual_seed(3), **options)
    assert len(ours) == len(theirs) == 12
    for _ in range(2):
        for mine, his in zip(ours, theirs, strict=True):
            assert torch.equal(mine[0], his[0]) and torch.equal(mine[1], his[1])


@pytest.mark.parametrize("mode", MODES)
def test_samplers_collations_and_nested_batches_work(mode):
    def collate(samples):
        return {"x": torch.stack([x for x, _ in samples]), "names": [f"n{i}" for _, i in samples], "a": numpy.arange(3)}

    sampler = torch.utils.data.distributed.DistributedSampler(Squares(), num_replicas=3, rank=1)
    ours = loader(Squares(), sampler=sampler, collate_fn=collate, mode=mode)
    ours.set_epoch(4)
    assert sampler.epoch == 4
    names = [name for batch in ours for name in batch["names"]]
    assert names == [f"n{i}" for i in sampler]
    first = next(iter(ours))
    assert isinstance(first["a"], numpy.ndarray) and first["x"].shape == (8, 3, 4)


@pytest.mark.parametrize("mode", [*MODES, "none"])
@pytest.mark.parametrize("collate", [None, lambda sample: {"x": sample[0], "name": f"n{sample[1]}"}])
def test_without_a_batch_size_samples_are_returned_singly(mode, collate):
    workers = {"num_workers": 0} if mode == "none" else {"mode": mode}
    ours = loader(Squares(), batch_size=None, sampler=range(40, 20, -1), collate_fn=collate, **workers)
    theirs = torch.utils.data.DataLoader(Squares(), batch_size=None, sampler=range(40, 20, -1), collate_fn=collate)
    assert len(ours) == len(theirs) == 20
    for mine, his in zip(ours, theirs, strict=True):
        assert type(mine) is type(his) and len(mine) == len(his)
        keys = ("x", "name") if collate else (0, 1)
        assert torch.equal(mine[keys[0]], his[keys[0]]) and mine[keys[1]] == his[keys[1]]


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_a_slow_single_sample_is_named_after_the_timeout(mode):
    class Sleeps(Squares):
        def __getitem__(self, index):
            time.sleep(0 if index < 2 else 30 if mode == "processes" else 3)
            return index

    with pytest.raises(stoker.WaitTimeoutError, match=r"no batch within 0\.5 s \(timeout\): samples 2$"):
        list(loader(Sleeps(), batch_size=None, mode=mode, timeout=0.5))


@pytest.mark.parametrize("mode", MODES)
def test_kept_batches_do_not_change(mode):
    kept = list(loader(Squares(200), mode=mode))
    assert [batch[1].tolist() for batch in kept] == [list(range(i, i + 8)) for i in range(0, 200, 8)]
    assert all((batch[0][:, 0, 0] == batch[1].square()).all() for batch in kept)


@pytest.mark.parametrize("mode", MODES)
def test_a_dataset_error_is_raised_in_place_of_its_batch(mode):
    batches = iter(loader(Fails(missing=[42]), mode=mode))
    assert [next(batches)[0].item() for _ in range(5)] == [0, 8, 16, 24, 32]
    with pytest.raises(KeyError, match="no sample 42") as error:
        next(batches)
    assert error.value.__notes__[0] == "in sample 42 of Fails"
    if mode == "processes":
        assert "in a worker process of stoker.DataLoader:" in error.value.__notes__[-1]
        assert "__getitem__" in error.value.__notes__[-1]


@pytest.mark.parametrize("mode", MODES)
def test_a_timeout_is_an_error(mode):
    class Sleeps(Squares):
        def __getitem__(self, index):
            time.sleep(0.2)
            return index

    with pytest.raises(TimeoutError) as error:
        list(loader(Sleeps(), mode=mode, timeout=0.05))
    assert str(error.value).startswith("loader: no batch within 0.05 s (timeout): samples ")


class Numbered(Squares):
    """Sample i is the number that `begin` set in the thread or process that loads it."""

    def __init__(self):
        super().__init__()
        self.mine, self.begun = threading.local(), []

    def begin(self, number):
        self.mine.number = number
        self.begun.append(number)

    def __getitem__(self, index):
        time.sleep(0.001)
        return self.mine.number


@pytest.mark.parametrize("mode", MODES)
def test_each_worker_starts_with_its_number(mode):
    dataset = Numbered()
    batches = list(loader(dataset, mode=mode, num_workers=3, worker_init_fn=dataset.begin))
    assert all(len(set(batch.tolist())) == 1 for batch in batches)
    seen = {batch[0].item() for batch in batches}
    if mode == "processes":
        assert (seen, dataset.begun) == ({0, 1, 2}, [])
    else:  # one may be finished before the next starts
        assert seen <= {0, 1, 2} and sorted(dataset.begun) == [0, 1, 2]


def test_a_failing_worker_init_fn_of_a_thread_is_an_error():
    def begin(number):
        raise OSError(f"no device {number}")

    with pytest.raises(OSError, match=r"^no device \d$"):
        list(loader(Squares(), mode="threads", worker_init_fn=begin))


@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_ends_a_wait_immediately(mode, module_environment):
    code = """
import sys, time, torch, stoker
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index): time.sleep(600); return index
loader = stoker.DataLoader(Slow(), num_workers=2, mode=sys.argv[1])
print("waiting", flush=True)
next(iter(loader))
"""
    command = [sys.executable, "-c", code, mode]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = Process(command, env=module_environment, **pipes)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert "KeyboardInterrupt" in err


@pytest.mark.parametrize("mode", MODES)
def test_a_nested_iteration_has_all_batches(mode):
    ours = loader(Squares(40), mode=mode)
    pairs = [(a[1].tolist()[0], b[1].tolist()[0]) for a in ours for b in ours]
    assert pairs == [(a, b) for a in range(0, 40, 8) for b in range(0, 40, 8)]


@pytest.mark.parametrize("options", [{"num_workers": 0}, {"mode": "threads"}, {"mode": "processes"}])
def test_an_iteration_continues_after_a_dataset_error(options):
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


def test_a_handled_error_leaves_no_threads(python):
    code = """
import gc, threading, time, torch, stoker
class Fails(torch.utils.data.Dataset):
    def __len__(self): return 100
    def __getitem__(self, index): return {}[index]
def fails_to_begin(number): raise KeyError(number)
def handle(**options):
    batches = iter(stoker.DataLoader(Fails(), num_workers=2, mode="threads", **options))
    try:
        next(batches)
    except KeyError as error:
        return str(error)
gc.disable()
assert handle() == "0" and handle(worker_init_fn=fails_to_begin) in "01"
end = time.monotonic() + 10
while threading.active_count() > 1 and time.monotonic() < end: time.sleep(0.01)
print(threading.active_count())
"""
    assert python(code) == "1\n"


def test_batches_are_pinned_with_a_gpu(monkeypatch):
    from torch.utils.data._utils import pin_memory

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(pin_memory, "pin_memory", lambda batch, device: ("pinned", device, batch.tolist()))
    pinned = list(loader(Numbers(16), num_workers=0, pin_memory=True))
    assert pinned == [("pinned", None, list(range(8))), ("pinned", None, list(range(8, 16)))]


def test_an_iteration_that_ended_early_raises_again():
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
        message = "loader: this iteration ended early (WaitTimeoutError)\n  try: start a new iteration over the loader"
        assert str(error.value) == message


@pytest.mark.parametrize("options", [{"num_workers": 0}, {"mode": "threads"}, {"mode": "processes"}])
def test_a_dataset_that_raises_stop_iteration_does_not_end_the_epoch(options):
    class Stops(Numbers):
        def __getitem__(self, index):
            return next(iter([]))

    with pytest.raises(RuntimeError, match=r"^loader: the dataset raised StopIteration\(\)$"):
        list(loader(Stops(), **options))


@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_getitems_names_the_samples(mode):
    part = torch.utils.data.Subset(Fails(), range(100))
    with pytest.raises(KeyError) as error:
        list(loader(part, mode=mode))
    assert error.value.__notes__[0] == "in one of the samples 0, 1, 2, 3, ... of Subset"


def test_a_dataset_needs_neither_getitems_nor_a_length():
    class Bare:
        __getitems__ = None

        def __getitem__(self, index):
            return index

    ours = loader(Bare(), sampler=range(20))
    assert ours.plan() == "2 processes: Bare has no length, so that threads cannot be measured"
    assert [i for batch in ours for i in batch.tolist()] == list(range(20))


@pytest.mark.parametrize("mode", MODES)
def test_torchs_newest_arguments_are_accepted(mode):
    options = {"shuffle": None, "pin_memory_device": "", "in_order": False, "timeout": 1e300}
    ours = loader(Numbers(), mode=mode, **options)
    assert [i for batch in ours for i in batch.tolist()] == list(range(100))
    assert ours.collate_fn is torch.utils.data.default_collate
