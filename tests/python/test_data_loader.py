"""stoker.DataLoader: torch's DataLoader over people's own datasets, with threads or processes."""

import gc
import os
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


class Squares(torch.utils.data.Dataset):
    """Sample i is (a 3 x 4 tensor of i * i, i)."""

    def __init__(self, count=100):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((3, 4), float(index * index)), index


class Random(Squares):
    def __getitem__(self, index):
        return numpy.random.rand(), torch.rand(2)


class HoldsTheLock(Squares):
    def __getitem__(self, index):
        sum(range(100_000))
        return index


class LetsGo(Squares):
    def __getitem__(self, index):
        time.sleep(0.004)
        return index


class Fails(Squares):
    def __getitem__(self, index):
        if index == 42:
            raise KeyError("no sample 42")
        return index


def loader(dataset, **options):
    return stoker.DataLoader(dataset, **({"batch_size": 8, "num_workers": 2, "quiet": True} | options))


@pytest.mark.parametrize("mode", [*MODES, "none"])
def test_batches_are_those_of_torchs_data_loader(mode):
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
def test_without_a_batch_size_samples_come_one_by_one(mode, collate):
    workers = {"num_workers": 0} if mode == "none" else {"mode": mode}
    ours = loader(Squares(), batch_size=None, sampler=range(40, 20, -1), collate_fn=collate, **workers)
    theirs = torch.utils.data.DataLoader(Squares(), batch_size=None, sampler=range(40, 20, -1), collate_fn=collate)
    assert len(ours) == len(theirs) == 20
    for mine, his in zip(ours, theirs, strict=True):
        assert type(mine) is type(his) and len(mine) == len(his)
        keys = ("x", "name") if collate else (0, 1)
        assert torch.equal(mine[keys[0]], his[keys[0]]) and mine[keys[1]] == his[keys[1]]


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_a_sample_without_a_batch_that_does_not_come_is_named(mode):
    class Sleeps(Squares):
        def __getitem__(self, index):
            time.sleep(0 if index < 2 else 30 if mode == "processes" else 3)
            return index

    with pytest.raises(stoker.WaitTimeoutError, match=r"no batch within 0\.5 s \(timeout\): samples 2$"):
        list(loader(Sleeps(), batch_size=None, mode=mode, timeout=0.5))


@pytest.mark.parametrize("mode", MODES)
def test_batches_that_are_kept_stay_what_they_were(mode):
    kept = list(loader(Squares(200), mode=mode))
    assert [batch[1].tolist() for batch in kept] == [list(range(i, i + 8)) for i in range(0, 200, 8)]
    assert all((batch[0][:, 0, 0] == batch[1].square()).all() for batch in kept)


def test_batches_larger_than_a_slot_come_too(monkeypatch):
    from stoker import slots

    monkeypatch.setattr(slots, "_SLOT_BYTES", 4096)

    class Grows(Squares):
        def __getitem__(self, index):
            return torch.full((1 + 5000 * (index > 50),), index)

    batches = list(loader(Grows(), mode="processes", batch_size=1))
    assert [batch.shape[1] for batch in batches] == [1] * 51 + [5001] * 49
    assert all((batch == i).all() for i, batch in enumerate(batches))


@pytest.mark.parametrize("workers", [1, 3])
def test_random_numbers_of_processes_do_not_depend_on_their_number(workers):
    def run(count):
        torch.manual_seed(5)
        return [(float(a.sum()), b.sum().item()) for a, b in loader(Random(), mode="processes", num_workers=count)]

    expected = run(2)
    assert run(workers) == expected
    assert len(set(expected)) == len(expected)


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


@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_the_dataset_comes_in_its_batchs_place(mode):
    batches = iter(loader(Fails(), mode=mode))
    assert [next(batches)[0].item() for _ in range(5)] == [0, 8, 16, 24, 32]
    with pytest.raises(KeyError, match="no sample 42") as error:
        next(batches)
    assert error.value.__notes__[0] == "in sample 42 of Fails"
    if mode == "processes":
        assert "in a worker process of stoker.DataLoader:" in error.value.__notes__[-1]
        assert "__getitem__" in error.value.__notes__[-1]


def test_what_cannot_be_sent_from_a_process_is_an_error_that_says_so():
    def collate(samples):
        return lambda: samples

    with pytest.raises(Exception, match=r"(?i)can't.*(pickle|local)") as error:
        list(loader(Squares(), mode="processes", collate_fn=collate))
    assert "in a worker process of stoker.DataLoader:" in error.value.__notes__[-1]
    assert len(list(loader(Squares(), mode="threads", collate_fn=collate))) == 13


@pytest.mark.parametrize("mode", MODES)
def test_a_forks_child_leaves_its_parents_workers_alone(mode):
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
        if len(list(ours)) != 50:  # with workers of its own
            os.write(write, b"lacks batches")
        ours.close()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert said == (
        f"loader: it was made before a fork, which copies no threads (made by process {os.getpid()}, used by {child})\n"
        "  try: make the loader in the process that iterates over it"
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
    assert "ended (killed by signal 9) while it made the batch of samples 16, 17, 18, 19, ..." in str(error.value)
    assert "try: fewer workers: the kernel kills processes when memory is short" in str(error.value)


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_that_is_too_long_is_an_error(mode):
    class Sleeps(Squares):
        def __getitem__(self, index):
            time.sleep(0.2)
            return index

    with pytest.raises(TimeoutError) as error:
        list(loader(Sleeps(), mode=mode, timeout=0.05))
    assert str(error.value).startswith("loader: no batch within 0.05 s (timeout): samples ")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


def files_in_shared_memory():
    """Those that this process and its children have mapped."""
    found = set()
    for pid in ["self", *children()]:
        with open(f"/proc/{pid}/maps") as maps:
            found |= {line.split()[-1] for line in maps if "/dev/shm/" in line}
    return found


def test_nothing_is_left_of_an_iteration_that_ends_early():
    gc.collect()  # iterators that errors of the tests before this one keep
    for thread in threading.enumerate():
        if thread.name.startswith("stoker-"):
            thread.join()  # of a wait that was too long
    threads, processes, shared = set(os.listdir("/proc/self/task")), children(), files_in_shared_memory()
    for mode in MODES:
        ours = loader(Squares(1000), mode=mode)
        for batch in ours:
            assert files_in_shared_memory() == shared
            del batch
            break
        del ours
    assert set(os.listdir("/proc/self/task")) <= threads  # one that was joined may be seen for a moment more
    assert children() == processes


def test_worker_processes_stay_between_epochs_unless_asked_not_to():
    ours = loader(Squares(), mode="processes")
    list(ours)
    before = children()
    list(ours)
    assert children() == before != []
    ours.close()
    assert children() == []
    list(loader(Squares(), mode="processes", persistent_workers=False))
    assert children() == []


def test_workers_know_who_they_are():
    class Knows(Squares):
        def __getitem__(self, index):
            return torch.utils.data.get_worker_info().num_workers

    assert next(iter(loader(Knows(), mode="processes", num_workers=3))).tolist() == [3] * 8


class Numbered(Squares):
    """Sample i is what `begin` last set for the thread or process that makes it."""

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
def test_each_worker_begins_with_its_own_number(mode):
    dataset = Numbered()
    batches = list(loader(dataset, mode=mode, num_workers=3, worker_init_fn=dataset.begin))
    assert all(len(set(batch.tolist())) == 1 for batch in batches)
    seen = {batch[0].item() for batch in batches}
    if mode == "processes":
        assert (seen, dataset.begun) == ({0, 1, 2}, [])
    else:  # where one may be done before another begins
        assert seen <= {0, 1, 2} and sorted(dataset.begun) == [0, 1, 2]


def test_a_function_that_begins_workers_means_processes(capfd):
    ours = loader(Squares(), worker_init_fn=print, quiet=False)
    assert len(list(ours)) == 13
    said = capfd.readouterr()
    assert said.err == "stoker.DataLoader: 2 processes: worker_init_fn is called in each\n"
    assert sorted(said.out.replace("\n", "")) == ["0", "1"]
    assert loader(Squares(), worker_init_fn=print, num_workers=0).plan() == "0 threads: num_workers=0"


def test_a_thread_that_cannot_begin_is_an_error():
    def begin(number):
        raise OSError(f"no device {number}")

    with pytest.raises(OSError, match=r"^no device \d$"):
        list(loader(Squares(), mode="threads", worker_init_fn=begin))


@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_ends_a_wait_at_once(mode, module_environment):
    code = """
import sys, time, torch, stoker
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index): time.sleep(30); return index
loader = stoker.DataLoader(Slow(), num_workers=2, mode=sys.argv[1])
print("waiting", flush=True)
next(iter(loader))
"""
    command = [sys.executable, "-c", code, mode]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=module_environment, **pipes)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err and time.monotonic() - started < 25  # one item takes 30 s


def test_workers_of_a_killed_caller_end(module_environment):
    code = """
import os, torch, stoker
class Tells(torch.utils.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index): return os.getpid()
for batch in stoker.DataLoader(Tells(), num_workers=2, mode="processes"):
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


@pytest.mark.parametrize("mode", MODES)
def test_an_iteration_within_another_has_all_its_batches(mode):
    ours = loader(Squares(40), mode=mode)
    pairs = [(a[1].tolist()[0], b[1].tolist()[0]) for a in ours for b in ours]
    assert pairs == [(a, b) for a in range(0, 40, 8) for b in range(0, 40, 8)]
