"""stoker.Loader(device="cuda"): batches on a GPU equal the batches of device=None."""

import pytest
import stoker
import torch

pytestmark = pytest.mark.needs("gpu")

BYTES = {"dtype": "uint8", "transform": ["RandomHorizontalFlip", ("CenterCrop", {"size": 32})]}


def cifar(dataset, **options):
    return stoker.Loader(dataset, **({"batch_size": 128, "transform": "cifar-train", "tensors": "torch"} | options))


def on_host(batch):
    return {name: value.cpu().clone() if isinstance(value, torch.Tensor) else value for name, value in batch.items()}


def is_same(one, other):
    if not isinstance(one, torch.Tensor):
        return one == other
    return one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)


def same(a, b):
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(is_same(x[name], y[name]) for name in x) for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": "bfloat16"},
        BYTES,
        {"mixup": 0.2},
        {"fields": ["index", "image"]},
    ],
)
def test_three_epochs_equal_the_batches_on_the_host(example_dataset, options, channels_last):
    options = options | {"channels_last": channels_last}
    with cifar(example_dataset, **options) as plain, cifar(example_dataset, device="cuda", **options) as loader:
        for _ in range(3):
            assert same([on_host(batch) for batch in loader], [on_host(batch) for batch in plain])


def test_the_gpus_work_uses_complete_batches(example_dataset):
    """The loop never waits for the GPU, which is late: every batch is used long after its host memory is free."""
    options = {"shuffle": False, "transform": "cifar-eval"}
    with cifar(example_dataset, **options) as plain:
        expected = torch.stack([batch["image"].double().sum() for batch in plain])
    busy = torch.rand(4096, 4096, device="cuda")
    with cifar(example_dataset, device="cuda", **options) as loader:
        sums = []
        for batch in loader:
            for _ in range(4):
                busy = busy @ busy / 4096
            sums.append(batch["image"].double().sum())
            del batch
    torch.testing.assert_close(torch.stack(sums).cpu(), expected, rtol=1e-9, atol=1e-6)


def test_fields_are_on_the_device_with_channels_last_strides(example_dataset):
    for device in ("cuda", "cuda:0", torch.device("cuda", 0)):
        with cifar(example_dataset, device=device, channels_last=True, dtype="float16") as loader:
            batch = next(iter(loader))
        image, label = batch["image"], batch["label"]
        assert image.device == label.device == torch.device("cuda", torch.cuda.current_device())
        assert image.shape == (128, 3, 32, 32) and image.is_contiguous(memory_format=torch.channels_last)
        assert label.dtype == torch.int64 and isinstance(batch["key"], list)


def test_the_loaders_threads_fill_page_locked_memory(example_dataset):
    from stoker import device_copy

    device = device_copy.resolve("cuda")
    with cifar(example_dataset, device=device) as loader:
        host = torch.from_dlpack(loader._feed.next(0).image.__dlpack__())
    assert host.is_pinned()


def test_a_run_resumes_after_the_returned_batch(example_dataset):
    with cifar(example_dataset) as whole:
        expected = [on_host(batch) for _ in range(2) for batch in whole]
    with cifar(example_dataset, device="cuda") as loader:
        batches = iter(loader)
        begun = [on_host(next(batches)) for _ in range(13)]
        state = loader.state_dict()
    assert state["position"] == 13 * 128
    with cifar(example_dataset, device="cuda") as resumed:
        resumed.load_state_dict(state)
        assert same(begun + [on_host(batch) for _ in range(2) for batch in resumed], expected)


def test_a_batch_stays_correct_after_the_loop_is_left(example_dataset):
    with cifar(example_dataset) as plain:
        expected = [on_host(batch) for _ in range(2) for batch in plain]
    with cifar(example_dataset, device="cuda") as loader:
        batch = next(iter(loader))
        second = [on_host(batch) for batch in loader]
    assert same([on_host(batch)], expected[:1]) and same(second, expected[40:])


def test_a_gpu_that_does_not_exist_is_refused(example_dataset):
    with pytest.raises(stoker.InvalidError) as refused:
        cifar(example_dataset, device="cuda:99")
    assert str(refused.value).startswith("loader: device: 'cuda:99' is not available: ")
    assert str(refused.value).endswith("\n  try: device=None")
