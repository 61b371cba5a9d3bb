"""stoker.Loader(device=): batches copied one ahead on a stream equal the batches of device=None. A substitute on the CPU,
whose copies complete late, replaces the GPU; tests/gpu/test_gpu_loader.py uses a real one."""

import collections
import pickle
import shutil
import threading
import time

import pytest
import stoker
import torch
from late_copies import LateCopyStream, WithoutHolding, WithoutWaiting
from stoker import device_copy
from stoker.errors import CorruptError, WaitTimeoutError

Epoch = list[dict[str, object]]


@pytest.fixture
def late(monkeypatch):
    """The stream of the next loaders with device="cpu"; late.make is its class."""
    made = type("Late", (), {"make": LateCopyStream, "streams": []})()

    def copy_stream(device):
        made.streams.append(made.make())
        return made.streams[-1]

    monkeypatch.setattr(device_copy, "copy_stream", copy_stream)
    return made


def cifar(dataset, **options):
    chosen = {"batch_size": 128, "transform": "cifar-train", "tensors": "torch", "num_workers": 1, "prefetch_factor": 2}
    return stoker.Loader(dataset, **(chosen | options))


def copied(batch):
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in batch.items()}


def epoch_of(loader) -> Epoch:
    return [copied(batch) for batch in loader]


def is_same(one, other):
    if not isinstance(one, torch.Tensor):
        return one == other
    return one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)


def same(a: Epoch, b: Epoch):
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(is_same(x[name], y[name]) for name in x) for x, y in zip(a, b, strict=True)
    )


BYTES = {"dtype": "uint8", "transform": ["RandomHorizontalFlip", ("CenterCrop", {"size": 32})]}
# Small batches: the loader refills reused memory long before a copy completes.
SLOW = {"split": "test", "batch_size": 64}
CONTENTS = [
    {},
    {"dtype": "bfloat16", "channels_last": True},
    BYTES | {"channels_last": True, "fields": ["image", "label", "index"]},
    {"mixup": 0.2, "fields": ["label", "image"]},
    {"transform": None, "fields": ["data", "offset", "key"]},
]


@pytest.mark.parametrize("options", CONTENTS)
def test_late_copies_of_three_epochs_equal_the_batches_on_the_host(example_dataset, late, options):
    options = options | SLOW
    with cifar(example_dataset, **options) as plain, cifar(example_dataset, device="cpu", **options) as ahead:
        for _ in range(3):
            assert same(epoch_of(ahead), epoch_of(plain))
    assert late.streams[0].started == 3 * 16


@pytest.mark.parametrize("make", [WithoutWaiting, WithoutHolding])
def test_the_substitute_shows_a_missing_wait_and_reused_memory(example_dataset, late, make):
    late.make = make
    with cifar(example_dataset, **SLOW) as plain, cifar(example_dataset, device="cpu", **SLOW) as ahead:
        assert not same(epoch_of(ahead), epoch_of(plain))


def places_of(loader, left_after):
    """State, remaining batches and epoch after each batch of three epochs; the second one is left early."""
    places = []
    for count in (None, left_after, None):
        for number, _ in enumerate(loader, 1):
            places.append((loader.state_dict(), loader.batches_left, loader.epoch))
            if number == count:
                break
        places.append((loader.state_dict(), loader.batches_left, loader.epoch))
    return places


@pytest.mark.parametrize("left_after", [1, 17, 40])
def test_state_and_remaining_batches_belong_to_the_returned_batch(example_dataset, late, left_after):
    late.make = lambda: LateCopyStream(delay_s=0.001)
    options = {"fields": ["label"], "transform": "cifar-eval"}
    with cifar(example_dataset, **options) as plain, cifar(example_dataset, device="cpu", **options) as ahead:
        assert places_of(ahead, left_after) == places_of(plain, left_after)


def test_a_run_resumes_at_the_batch_after_the_returned_one(example_dataset, late):
    late.make = lambda: LateCopyStream(delay_s=0.005)
    with cifar(example_dataset) as whole:
        expected = epoch_of(whole) + epoch_of(whole)
    with cifar(example_dataset, device="cpu") as loader:
        batches = iter(loader)
        begun = [copied(next(batches)) for _ in range(13)]
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert same([copied(next(iter(loader)))], expected[13:14])
    with cifar(example_dataset, device="cpu") as resumed:
        resumed.load_state_dict(state)
        assert resumed.batches_left == 27
        assert same(begun + epoch_of(resumed) + epoch_of(resumed), expected)


def test_a_pickled_and_a_closed_loader_continue_after_the_returned_batch(example_dataset, late):
    with cifar(example_dataset) as whole:
        expected = epoch_of(whole)
    loader = cifar(example_dataset, device="cpu")
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    with pickle.loads(pickle.dumps(loader)) as copy:
        assert same([copied(next(iter(copy)))], expected[3:4])
    loader.close()
    assert (loader.state_dict()["position"], loader.batches_left) == (3 * 128, 37)
    with pytest.raises(stoker.CancelledError):
        next(batches)
    loader.load_state_dict(loader.state_dict())
    assert same(epoch_of(loader), expected[3:])
    loader.close()


def test_a_batch_stays_correct_after_the_loop_is_left(example_dataset, late):
    with cifar(example_dataset) as plain:
        expected = epoch_of(plain) + epoch_of(plain)
    with cifar(example_dataset, device="cpu") as loader:
        batch = next(iter(loader))
        second = epoch_of(loader)
    assert same([batch], expected[:1]) and same(second, expected[40:])


def test_the_next_batch_is_copied_while_the_loop_has_the_current_one(example_dataset, late):
    with cifar(example_dataset, device="cpu") as loader:
        batches = iter(loader)
        for number in range(1, 6):
            time.sleep(0.3)  # the loader's threads prepare the next batches
            next(batches)
            assert late.streams[0].started == number + 1


def test_a_damaged_sample_is_reported_after_the_batches_before_it(example_dataset, late, tmp_path):
    dataset = shutil.copytree(example_dataset, tmp_path / "dataset")
    shard = min(dataset.glob("train-*.tar"))
    content = bytearray(shard.read_bytes())
    at = content.find(b".jpg")
    content[at - at % 512 + 512 + 300] ^= 1
    shard.write_bytes(content)
    for options in ({"shuffle": True}, {"errors": "skip", "batch_size": 1000}):
        seen = []
        for device in (None, "cpu"):
            with cifar(dataset, device=device, **options) as loader:
                seen.append([])
                try:
                    seen[-1].extend(len(batch["key"]) for batch in loader)
                except CorruptError as error:
                    seen[-1].append(str(error))
                seen[-1].append(loader.state_dict())
        assert seen[0] == seen[1]


class FakeBatch:
    def __init__(self, number):
        self.number = number

    def __len__(self):
        return 1


class FakeFeed:
    """Batches 0, 1, ...; `raises` maps the number of a call of next() to an error."""

    def __init__(self, count=10, raises=None):
        self.count, self.raises, self.position, self.calls = count, raises or {}, 0, 0

    @property
    def state(self):
        return (0, 0, self.position, self.count)

    @property
    def batches_left(self):
        return self.count - self.position

    def next(self, timeout_s):
        self.calls += 1
        if error := self.raises.get(self.calls):
            raise error
        self.position += 1
        return FakeBatch(self.position - 1) if self.position <= self.count else None


def fake(feed, stream=None):
    numbers = lambda batch: {"number": torch.tensor([batch.number])}  # noqa: E731
    return device_copy.CopiedBatches(feed, stream or LateCopyStream(), numbers)


def take(batches):
    assert batches.advance(0)
    return int(batches.take()["number"])


def test_a_batch_that_is_not_ready_does_not_delay_the_current_one():
    feed = FakeFeed(raises={call: WaitTimeoutError("not ready") for call in (2, 4)})
    batches = fake(feed)
    assert [take(batches) for _ in range(3)] == [0, 1, 2] and feed.position == 4
    batches.close()


def test_an_interrupt_keeps_the_position_of_the_returned_batch():
    feed = FakeFeed(raises={3: KeyboardInterrupt()})
    stream = LateCopyStream()
    batches = fake(feed, stream)
    assert take(batches) == 0 and batches.place.state[2] == 1
    with pytest.raises(KeyboardInterrupt):
        take(batches)
    assert batches.place.state[2] == 1
    batches.close()
    assert not batches._sources


def test_a_failure_of_the_device_does_not_block_the_end():
    class Broken(LateCopyStream):
        def is_complete(self, event):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    batches = fake(FakeFeed(), Broken())
    assert take(batches) == 0
    with pytest.raises(RuntimeError, match=r"^CUDA error"):
        batches.advance(0)
    batches.close()


def test_a_loop_that_never_waits_is_at_most_four_batches_ahead_of_the_device():
    stream = LateCopyStream(delay_s=0)
    stream.completes_work = False
    batches = fake(FakeFeed(count=30), stream)
    most = 0
    done = collections.deque()

    def work():
        while len(done) < 20:
            time.sleep(0.01)
            if len(stream.unfinished_work) > len(done):
                event = stream.unfinished_work[len(done)]
                done.append(event)
                event.set()

    device = threading.Thread(target=work)
    device.start()
    for _ in range(20):
        take(batches)
        most = max(most, len(stream.unfinished_work) - len(done))
    assert 2 <= most <= 4
    device.join()
    batches.close()


@pytest.mark.parametrize(
    ("version", "why"), [(None, "this PyTorch is built without CUDA"), ("13.0", "PyTorch finds no GPU")]
)
def test_a_gpu_without_cuda_is_refused(example_dataset, monkeypatch, version, why):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", version)
    for device in ("cuda", "cuda:1"):
        with pytest.raises(stoker.InvalidError) as refused:
            cifar(example_dataset, device=device)
        assert str(refused.value) == f"loader: device: '{device}' is not available: {why}\n  try: device=None"


def test_the_cpu_as_device_gives_tensors_in_the_loaders_memory(example_dataset):
    for device in ("cpu", torch.device("cpu")):
        with cifar(example_dataset, device=device, tensors="auto") as loader:
            batch = next(iter(loader))
            assert batch["image"].device.type == "cpu" and batch["image"].data_ptr() % 64 == 0
        with cifar(example_dataset) as plain:
            assert same([copied(batch)], [copied(next(iter(plain)))])


@pytest.mark.parametrize(
    ("version", "library"), [("13.0", "libcudart.so.13"), ("12.8", "libcudart.so.12"), ("11.8", "libcudart.so.11.0")]
)
def test_page_locked_memory_comes_from_the_runtime_of_torchs_cuda(monkeypatch, version, library):
    monkeypatch.setattr(torch.version, "cuda", version)
    assert device_copy.page_locked(torch.device("cuda", 2)) == (library, 2)
    assert device_copy.page_locked(torch.device("cpu")) is None
    monkeypatch.setattr(torch.version, "cuda", None)  # ROCm
    assert device_copy.page_locked(torch.device("cuda", 0)) is None
