"""stoker.Loader under faults: damaged data is named or skipped, an interrupt ends a wait immediately, nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import h5py
import numpy
import packing
import pytest
import stoker
from running import Process


def cifar(dataset, **options):
    return stoker.Loader(dataset, **({"batch_size": 100, "transform": "cifar-eval", "shuffle": False} | options))


def flip_a_bit(dataset, key):
    """Damages the payload of one file of the split train; returns its shard's name."""
    for shard in sorted(dataset.glob("train-*.tar")):
        content = bytearray(shard.read_bytes())
        at = content.find(f"{key}.jpg".encode())
        if at >= 0:
            content[at - at % 512 + 512 + 300] ^= 1
            shard.write_bytes(content)
            return shard.name
    raise AssertionError(f"no {key} in {dataset}")


def test_the_index_of_other_labels_is_refused(request, tmp_path):
    command = request.getfixturevalue("stoker")
    for name, labels in (("one", "cat dog"), ("two", "dog cat")):
        rows = [f"{i}.jpg,{label}" for i, label in enumerate(labels.split())]
        (tmp_path / f"{name}.csv").write_text("path,label\n" + "\n".join(rows))
    for i in range(2):
        (tmp_path / f"{i}.jpg").write_bytes(packing.jpeg(i))
    for name in ("one", "two"):
        command("data", "pack", f"{name}.csv", name, code=0)
    (tmp_path / "one/index.bin").write_bytes((tmp_path / "two/index.bin").read_bytes())
    with pytest.raises(stoker.CorruptError, match=r"one/index\.bin: does not match the manifest \(SHA-256 expected"):
        stoker.Loader(str(tmp_path / "one"), batch_size=1, transform="cifar-eval")


def keys_of(dataset):
    with cifar(dataset, fields=["key"]) as loader:
        return [key for batch in loader for key in batch["key"]]


def test_one_flipped_bit_is_named_with_sample_and_shard(own_dataset):
    key = keys_of(own_dataset)[4321]
    shard = flip_a_bit(own_dataset, key)
    with cifar(own_dataset) as loader:
        batches = iter(loader)
        for _ in range(43):
            next(batches)  # batches before the damage are returned
        with pytest.raises(stoker.CorruptError) as error:
            next(batches)
        assert str(error.value).startswith(f"{shard}: sample '{key}' (jpg): CRC-32C expected ")
        with pytest.raises(stoker.CorruptError):
            next(iter(loader))


def test_an_iteration_ended_by_damage_raises_again(own_dataset):
    flip_a_bit(own_dataset, keys_of(own_dataset)[150])
    with cifar(own_dataset) as loader:
        batches = iter(loader)
        assert len(next(batches)["label"]) == 100
        with pytest.raises(stoker.CorruptError):
            next(batches)
        with pytest.raises(stoker.CancelledError) as error:
            next(batches)
        message = "loader: this iteration ended early (CorruptError)\n  try: start a new iteration over the loader"
        assert str(error.value) == message


def test_without_check_a_flipped_bit_may_pass(own_dataset):
    flip_a_bit(own_dataset, keys_of(own_dataset)[4321])
    with cifar(own_dataset, check=False, transform=None) as loader:
        assert sum(len(batch["key"]) for batch in loader) == 5000


def test_damaged_samples_are_skipped_and_listed(own_dataset):
    keys = keys_of(own_dataset)
    for number in (7, 1234):
        flip_a_bit(own_dataset, keys[number])
    with cifar(own_dataset, errors="skip") as loader:
        assert [key for batch in loader for key in batch["key"]] == [
            k for i, k in enumerate(keys) if i not in (7, 1234)
        ]
        assert [(skipped["index"], skipped["epoch"]) for skipped in loader.skipped[:2]] == [(7, 0), (1234, 0)]
        assert keys[7] in loader.skipped[0]["error"]
        assert loader.stats()["skipped"] == 2


def test_skipped_samples_are_listed_after_the_threads_have_ended(own_dataset):
    key = keys_of(own_dataset)[7]
    flip_a_bit(own_dataset, key)
    loader = cifar(own_dataset, errors="skip", persistent_workers=False)
    for _ in range(2):
        assert sum(len(batch["label"]) for batch in loader) == 4999
    assert [(skipped["index"], skipped["epoch"]) for skipped in loader.skipped] == [(7, 0), (7, 1)]
    assert loader.stats()["skipped"] == 2


def test_an_iteration_over_a_closed_loader_ends_silently(example_dataset, python):
    code = """
import sys, stoker
sys.unraisablehook = lambda what: print("unheard:", what.exc_value)
loader = stoker.Loader(sys.argv[1], transform="cifar-train", persistent_workers=False)
for batch in loader:
    loader.close()
    break
print("over")
"""
    assert python(code, example_dataset) == "over\n"


def test_more_damage_than_max_skipped_is_an_error(own_dataset):
    keys = keys_of(own_dataset)
    for number in (1, 2, 3):
        flip_a_bit(own_dataset, keys[number])
    with cifar(own_dataset, errors="skip", max_skipped=2) as loader, pytest.raises(stoker.CorruptError) as error:
        next(iter(loader))
    text = "loader: 3 damaged samples exceed the limit of 2 (max_skipped); the last one: "
    assert str(error.value).startswith(text) and keys[3] in str(error.value)


@pytest.mark.parametrize("resident", [0, None])
def test_a_truncated_shard_is_named(own_dataset, resident):
    shard = sorted(own_dataset.glob("train-*.tar"))[-1]
    size = shard.stat().st_size
    os.truncate(shard, size // 2)
    with cifar(own_dataset, resident=resident) as loader, pytest.raises(stoker.CorruptError, match=shard.name):
        list(loader)


@pytest.mark.parametrize("resident", [0, None])
def test_a_torn_shard_is_an_error_even_with_skip(own_dataset, resident):
    shard = sorted(own_dataset.glob("train-*.tar"))[-1]
    os.truncate(shard, shard.stat().st_size - 512)
    for options in ({}, {"transform": None}):
        with cifar(own_dataset, resident=resident, errors="skip", max_skipped=10**6, **options) as loader:
            with pytest.raises(stoker.CorruptError, match=rf"{shard.name}: has \d+ bytes, the manifest lists \d+$"):
                list(loader)
            assert loader.skipped == []


@pytest.fixture
def packed_rows(request, tmp_path):
    """300 arrays in chunks of 16, in an HDF5 file read in place."""
    (tmp_path / "hub").mkdir()
    with h5py.File(tmp_path / "hub/train.h5", "w") as file:
        rows = numpy.random.default_rng(3).integers(0, 40, (300, 60)).astype("u1")
        file.create_dataset("x", data=rows, compression="gzip", chunks=(16, 60))
    request.getfixturevalue("stoker")("data", "index", "hub", code=0)
    return tmp_path / "hub"


@pytest.mark.parametrize("resident", [0, None])
def test_only_the_samples_of_a_damaged_chunk_are_skipped(packed_rows, resident):
    with h5py.File(packed_rows / "train.h5") as file:
        chunk = file["x"].id.get_chunk_info(5)
    with open(packed_rows / "train.h5", "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(b"\xff" * 8)
    options = {"array": True, "fields": ["index"], "tensors": "numpy", "shuffle": False, "resident": resident}
    with stoker.Loader(packed_rows, errors="skip", **options) as loader:
        for _ in range(2):
            found = [int(index) for batch in loader for index in batch["index"]]
            assert found == [*range(80), *range(96, 300)]
        assert loader.stats()["skipped"] == 32
    with stoker.Loader(packed_rows, **options) as loader, pytest.raises(stoker.CorruptError, match="chunk 5"):
        list(loader)


def test_a_torn_packed_shard_is_an_error_even_with_skip(packed_rows):
    os.truncate(packed_rows / "train.h5", (packed_rows / "train.h5").stat().st_size - 512)
    with stoker.Loader(packed_rows, transform=None, errors="skip") as loader:
        with pytest.raises(stoker.CorruptError, match=r"train.h5: has \d+ bytes, the manifest lists \d+"):
            list(loader)
        assert loader.skipped == []


def test_a_batch_without_intact_samples_is_dropped(own_dataset):
    keys = keys_of(own_dataset)
    for number in (0, 1, 7):
        flip_a_bit(own_dataset, keys[number])
    options = {"errors": "skip", "batch_size": 1, "fields": ["index"], "tensors": "numpy"}
    with cifar(own_dataset, **options) as loader:
        batches = iter(loader)
        assert [next(batches)["index"].tolist() for _ in range(6)] == [[2], [3], [4], [5], [6], [8]]
        state = loader.state_dict()
        assert (state["position"], loader.batches_left, len(loader)) == (9, 4991, 5000)
        loader.load_state_dict(state | {"position": 7})
        assert next(iter(loader))["index"].tolist() == [8]


def test_ranks_in_lockstep_get_a_warning_and_an_empty_batch(own_dataset):
    keys = keys_of(own_dataset)
    for number in (2, 4):
        flip_a_bit(own_dataset, keys[number])
    options = {"errors": "skip", "batch_size": 2, "world_size": 2, "rank": 0, "fields": ["index"], "tensors": "numpy"}
    text = r"^loader: empty batch: all of its samples are damaged; it keeps the number of steps equal "
    with cifar(own_dataset, **options) as loader:
        batches = iter(loader)
        assert next(batches)["index"].tolist() == [0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert next(batches)["index"].tolist() == [6]
        loader.load_state_dict(loader.state_dict() | {"position": 2})
        with pytest.warns(RuntimeWarning, match=text + r"on all ranks \(errors='skip', rank 0\)$"):
            assert next(iter(loader))["index"].tolist() == []
    with cifar(own_dataset, remainder="exact", **options) as loader:
        loader.load_state_dict(loader.state_dict() | {"position": 2})
        assert next(iter(loader))["index"].tolist() == [6, 8]


@pytest.mark.parametrize("resident", [0, None])
def test_a_shard_truncated_during_reads_is_an_error(own_dataset, resident):
    with cifar(own_dataset, resident=resident, errors="skip", max_skipped=10, num_workers=1) as loader:
        batches = iter(loader)
        next(batches)
        for shard in own_dataset.glob("train-*.tar"):
            os.truncate(shard, 512)
        with pytest.raises(stoker.StokerError):
            list(batches)


def test_an_index_of_a_different_version_is_rejected(own_dataset, example_images, request, tmp_path):
    command = request.getfixturevalue("stoker")
    command("data", "pack", example_images, tmp_path / "other", "--order", "source", code=0)
    (own_dataset / "index.bin").write_bytes((tmp_path / "other/index.bin").read_bytes())
    with pytest.raises(stoker.CorruptError):
        cifar(own_dataset)


def test_ctrl_c_ends_a_wait_immediately(example_dataset, module_environment):
    # One batch of the size of 5000 photographs takes seconds: the interrupt arrives during the wait.
    code = """
import sys, stoker
loader = stoker.Loader(sys.argv[1], batch_size=5000, transform="imagenet-eval", prefetch_factor=1, num_workers=1)
print("waiting", flush=True)
next(iter(loader))
print("not interrupted", flush=True)
"""
    process = Process(
        [sys.executable, "-c", code, str(example_dataset)],
        env=module_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)  # during the wait; an earlier interrupt works too
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert out == "" and "KeyboardInterrupt" in err
    assert time.monotonic() - started < 100  # waiting for the batch would take longer


def threads_now():
    return len(os.listdir("/proc/self/task"))


def test_unfinished_loaders_leave_no_thread(example_dataset):
    before = threads_now()
    for batch in cifar(example_dataset):
        del batch
        break
    for batch in (loader := cifar(example_dataset, persistent_workers=False)):
        del batch
        break
    iterator = iter(cifar(example_dataset))
    next(iterator)
    assert threads_now() > before
    del iterator
    assert threads_now() == before
    loader.close()


def test_a_second_thread_may_close_a_waiting_loader(example_dataset):
    loader = stoker.Loader(example_dataset, batch_size=5000, transform="imagenet-eval", num_workers=1)
    closer = threading.Timer(0.3, loader.close)
    closer.start()
    with pytest.raises(stoker.CancelledError):
        next(iter(loader))
    closer.join()


def test_a_timeout_names_the_sample(example_dataset):
    with (
        stoker.Loader(
            example_dataset, batch_size=5000, transform="imagenet-eval", num_workers=1, timeout=0.05
        ) as loader,
        pytest.raises(TimeoutError, match=r"^loader: no batch before the deadline: .*sample '\w+/\d+' \(in shard"),
    ):
        next(iter(loader))


def test_a_forked_child_must_create_its_loader(example_dataset, python):
    code = """
import os, sys, stoker
loader = stoker.Loader(sys.argv[1], transform="cifar-train")
next(iter(loader))
child = os.fork()
if child == 0:
    try:
        next(iter(loader))
    except stoker.InvalidError as error:
        print(error, flush=True)
    del loader  # joins no thread of the parent
    own = stoker.Loader(sys.argv[1], transform="cifar-train")
    print(len(next(iter(own))["key"]), flush=True)
    own.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(len(next(iter(loader))["key"]))
"""
    message, cure, of_child, of_parent = python(code, example_dataset).splitlines()
    assert message.startswith("loader: created before a fork, which does not copy threads (created by process ")
    assert cure == "  try: create the loader in the process that iterates over it"
    assert of_child == of_parent == "64"


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("end", ["sys.exit()", "del batches, batch, loader", "loader.close()", "with loader: pass"])
def test_a_forked_child_exits_silently(example_dataset, module_environment, end, persistent):
    code = f"""
import os, sys, stoker
loader = stoker.Loader(sys.argv[1], transform="cifar-train", persistent_workers={persistent})
batches = iter(loader)
batch = next(batches)
child = os.fork()
if child == 0:
    {end}
    sys.exit()
print(os.waitpid(child, 0)[1], 1 + sum(1 for _ in batches))
"""
    command = [sys.executable, "-c", code, str(example_dataset)]
    done = subprocess.run(command, env=module_environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("0 79\n", "")


def test_a_killed_reader_leaves_nothing_behind(example_dataset, module_environment):
    code = "import sys, stoker\nfor _ in range(10**6):\n  for b in stoker.Loader(sys.argv[1], transform='cifar-train'): print(flush=True)"
    before = sorted(path.name for path in example_dataset.iterdir())
    process = Process(
        [sys.executable, "-c", code, str(example_dataset)], env=module_environment, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    with open(f"/proc/{process.pid}/maps") as maps:
        assert "/dev/shm/" not in maps.read()  # would be left by a killed process
    process.kill()
    process.wait()
    process.stdout.close()
    assert sorted(path.name for path in example_dataset.iterdir()) == before
    with cifar(example_dataset) as loader:
        assert sum(len(batch["key"]) for batch in loader) == 5000


def test_the_interpreter_may_exit_with_open_loaders(example_dataset, python):
    code = "import sys, stoker\nl = stoker.Loader(sys.argv[1], transform='cifar-train')\nb = iter(l)\nfirst = next(b)\nprint('end')"
    assert python(code, example_dataset) == "end\n"
