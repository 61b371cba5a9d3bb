"""stoker.Loader: batches depend only on seed, epoch and sample, and resume exactly."""

import json
import os
import pickle

import numpy
import pytest
import stoker


def cifar(dataset, **options):
    return stoker.Loader(dataset, **({"batch_size": 128, "transform": "cifar-train", "tensors": "numpy"} | options))


def epoch_of(loader):
    """Copies of an epoch's batches: the loader reuses its memory."""
    return [{name: numpy.array(value) for name, value in batch.items()} for batch in loader]


def version_of(dataset):
    return json.loads((dataset / "manifest.json").read_text())["version"]


def same(a, b):
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all((x[name] == y[name]).all() for name in x) for x, y in zip(a, b, strict=True)
    )


def test_a_batch_is_a_dict_of_image_label_and_key(example_dataset):
    with cifar(example_dataset, split="train") as loader:
        assert len(loader) == 40 and loader.samples == 5000 and len(loader.classes) == 10
        first = next(iter(loader))
        assert first["image"].shape == (128, 3, 32, 32) and first["image"].dtype == numpy.float32
        assert first["label"].shape == (128,) and first["label"].dtype == numpy.int64
        assert [loader.classes[label] for label in first["label"]] == [key.split("/")[0] for key in first["key"]]


def test_images_without_labels_have_label_minus_one(example_images, request, tmp_path):
    command = request.getfixturevalue("stoker")
    command("data", "pack", example_images / "train/cat", tmp_path / "unlabelled", code=0)
    batch = next(iter(cifar(tmp_path / "unlabelled")))
    assert batch["image"].shape[1:] == (3, 32, 32)
    assert set(batch["label"].tolist()) == {-1}


def test_each_epoch_has_every_sample_once_in_a_new_order(example_dataset):
    with cifar(example_dataset, fields=["index"]) as loader:
        first, second = (numpy.concatenate([batch["index"] for batch in epoch_of(loader)]) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(5000))
    assert (first != second).any()


@pytest.mark.parametrize("threads", [2, 5])
def test_batches_are_the_same_for_any_number_of_threads(example_dataset, threads):
    with cifar(example_dataset, num_workers=1) as one, cifar(example_dataset, num_workers=threads) as many:
        assert same(epoch_of(one) + epoch_of(one), epoch_of(many) + epoch_of(many))


def test_batches_do_not_depend_on_residency(example_dataset):
    with cifar(example_dataset, resident=0) as without, cifar(example_dataset, cache=1 << 30) as decoded:
        expected = epoch_of(without)
        assert same(expected, epoch_of(decoded))
        assert same(epoch_of(without), epoch_of(decoded))
        assert decoded.stats()["cached"] > 0 == without.stats()["cached"]


def test_resumes_in_the_middle_of_an_epoch_exactly(example_dataset):
    with cifar(example_dataset) as whole:
        expected = epoch_of(whole) + epoch_of(whole)
    with cifar(example_dataset) as loader:
        batches = iter(loader)
        begun = [{name: numpy.array(value) for name, value in next(batches).items()} for _ in range(13)]
        state = loader.state_dict()
    place = {"seed": 0, "epoch": 0, "position": 13 * 128, "samples": 5000}
    assert state == place | {"dataset": version_of(example_dataset), "split": "train", "order": "shuffle=True"}
    with cifar(example_dataset) as resumed:
        resumed.load_state_dict(state)
        assert resumed.batches_left == 27 and len(resumed) == 40
        assert same(begun + epoch_of(resumed) + epoch_of(resumed), expected)


def test_resumes_on_a_different_world_size_without_repeats_or_gaps(example_dataset):
    def indices(loader, batches=None):
        taken = []
        for number, batch in enumerate(loader):
            taken.extend(batch["index"].tolist())
            if number + 1 == batches:
                break
        return taken

    ranks = [cifar(example_dataset, fields=["index"], rank=r, world_size=2) for r in range(2)]
    seen = [index for rank in ranks for index in indices(rank, batches=7)]
    states = [rank.state_dict() for rank in ranks]
    assert states[0] == states[1]
    for rank in range(3):
        with cifar(
            example_dataset, fields=["index"], rank=rank, world_size=3, batch_size=50, remainder="exact"
        ) as resumed:
            resumed.load_state_dict(states[0])
            seen += indices(resumed)
    assert sorted(seen) == list(range(5000))


def test_rank_and_world_size_come_from_the_environment(example_dataset, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with cifar(example_dataset) as loader:
        assert (loader.rank, loader.world_size, len(loader)) == (1, 4, 10)
        assert "rank 1 of 4" in repr(loader)


def test_an_invalid_rank_is_rejected(example_dataset, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "99999999999")
    with pytest.raises(stoker.InvalidError) as refusal:
        cifar(example_dataset)
    assert str(refusal.value) == "loader: expected 32-bit numbers (RANK=0, WORLD_SIZE=99999999999)"


def test_set_epoch_works_like_distributed_sampler(example_dataset):
    import torch

    data = range(5000)
    sampler = torch.utils.data.distributed.DistributedSampler(data, num_replicas=3, rank=1, seed=7)
    with cifar(example_dataset, fields=["index"], seed=7, rank=1, world_size=3) as loader:
        for epoch in (4, 0, 1):
            sampler.set_epoch(epoch)
            loader.set_epoch(epoch)
            assert numpy.concatenate([batch["index"] for batch in epoch_of(loader)]).tolist() == list(sampler)


def test_an_unfinished_epoch_is_followed_by_the_next(example_dataset):
    with cifar(example_dataset) as left, cifar(example_dataset) as whole:
        next(iter(left))
        epoch_of(whole)
        assert same(epoch_of(left), epoch_of(whole))
        assert left.epoch == 2


def test_a_newer_iterator_invalidates_the_older(example_dataset):
    with cifar(example_dataset) as loader:
        older = iter(loader)
        next(older)
        next(iter(loader))
        with pytest.raises(
            RuntimeError, match=r"^iterator is invalid: a newer iterator over the same stoker.Loader was started$"
        ):
            next(older)


def test_an_iterator_created_before_set_epoch_uses_that_epoch(example_dataset):
    with cifar(example_dataset) as late, cifar(example_dataset) as loader:
        made = [iter(late), iter(late)]  # like Lightning: iter(), then set_epoch, then the first batch
        late.set_epoch(0)
        expected = epoch_of(loader)
        assert same(epoch_of(made[0]), expected)
        late.set_epoch(0)
        assert same(epoch_of(made[1]), expected)
        later = iter(late)
        late.set_epoch(7)
        loader.set_epoch(7)
        assert same(epoch_of(later), epoch_of(loader))


def test_arrays_use_the_loaders_memory_and_stay_valid(example_dataset):
    import torch

    loader = cifar(example_dataset, tensors="torch")
    first = next(iter(loader))
    image, copy = first["image"], first["image"].clone()
    assert isinstance(image, torch.Tensor) and image.data_ptr() % 64 == 0
    del first
    for _ in zip(range(30), loader, strict=False):
        pass
    loader.close()
    assert torch.equal(image, copy)
    image += 1  # batches are writable


def test_numpy_and_torch_share_memory_without_a_copy(example_dataset):
    import torch

    with cifar(example_dataset, tensors="dlpack") as loader:
        image = next(iter(loader))["image"]
    as_torch, as_numpy = torch.from_dlpack(image), numpy.from_dlpack(image)
    assert as_torch.data_ptr() == as_numpy.ctypes.data == numpy.asarray(image).ctypes.data
    as_torch[0, 0, 0, 0] = 5
    assert as_numpy[0, 0, 0, 0] == memoryview(image)[0, 0, 0, 0] == 5


def test_without_a_gpu_pinning_has_no_effect_and_device_is_used(example_dataset):
    import torch

    options = {"tensors": "torch", "fields": ["image", "label"], "shuffle": False, "non_blocking": True}
    with cifar(example_dataset, **options) as plain:
        expected = next(iter(plain))
    with cifar(example_dataset, device="cpu", pin_memory=not torch.cuda.is_available(), **options) as loader:
        batch = next(iter(loader))
    assert batch["image"].device.type == "cpu" and torch.equal(batch["image"], expected["image"])
    with cifar(example_dataset, device="meta", **options) as loader:
        assert next(iter(loader))["label"].device.type == "meta"


@pytest.mark.needs("gpu")
def test_batches_are_copied_to_the_gpu_from_pinned_memory(example_dataset):
    import torch

    options = {"tensors": "torch", "fields": ["image", "label"], "shuffle": False}
    with cifar(example_dataset, **options) as plain, cifar(example_dataset, pin_memory=True, **options) as pinned:
        expected, batch = next(iter(plain)), next(iter(pinned))
        assert batch["image"].is_pinned() and torch.equal(batch["image"], expected["image"])
    with cifar(example_dataset, device="cuda", pin_memory=True, non_blocking=True, **options) as loader:
        batches = [{name: value.clone() for name, value in batch.items()} for batch in loader]
    with cifar(example_dataset, **options) as plain:
        for there, here in zip(batches, plain, strict=True):
            assert there["image"].is_cuda and torch.equal(there["image"].cpu(), here["image"])
            assert torch.equal(there["label"].cpu(), here["label"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_element_types_and_layouts(example_dataset, dtype, channels_last):
    import torch

    operations = [("CenterCrop", {"size": 32}), "RandomHorizontalFlip"]
    with cifar(
        example_dataset, transform=operations, dtype=dtype, channels_last=channels_last, tensors="torch"
    ) as loader:
        image = next(iter(loader))["image"]
    assert image.dtype == getattr(torch, dtype)
    assert image.shape == (128, 3, 32, 32)
    assert image.is_contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def test_channels_last_has_torchs_shape_for_torch_and_the_memorys_shape_for_numpy(example_dataset):
    import torch

    options = {"channels_last": True, "shuffle": False, "transform": "cifar-eval"}
    images = {}
    for kind in ("torch", "numpy", "dlpack"):
        with cifar(example_dataset, tensors=kind, **options) as loader:
            images[kind] = next(iter(loader))["image"]
    assert images["torch"].shape == (128, 3, 32, 32) and images["torch"].stride() == (3072, 1, 96, 3)
    assert images["numpy"].shape == (128, 32, 32, 3) and images["numpy"].flags.c_contiguous
    assert memoryview(images["dlpack"]).shape == (128, 32, 32, 3)
    assert torch.equal(images["torch"], torch.from_numpy(images["numpy"]).permute(0, 3, 1, 2))


def test_bytes_normalised_by_the_model_equal_normalised_batches(example_dataset):
    import torch

    flip = ["RandomHorizontalFlip", ("CenterCrop", {"size": 32})]
    normalize = ("Normalize", {"mean": [0.4914, 0.4822, 0.4465], "std": [0.2470, 0.2435, 0.2616]})
    options = {"tensors": "torch", "device": "cpu", "channels_last": True}
    with (
        cifar(example_dataset, transform=flip, dtype="uint8", **options) as stored,
        cifar(example_dataset, transform=[*flip, normalize], **options) as ready,
    ):
        image, expected = next(iter(stored))["image"], next(iter(ready))["image"]
    mean, std = (255 * torch.tensor(normalize[1][name]).view(3, 1, 1) for name in ("mean", "std"))
    image = (image - mean) / std
    torch.testing.assert_close(image, expected, atol=1e-5, rtol=0)
    assert image.is_contiguous(memory_format=torch.channels_last)


def test_stored_bytes_equal_the_packed_files(example_dataset, example_images):
    with cifar(example_dataset, transform=None, batch_size=100) as loader:
        batch = next(iter(loader))
    ends = batch["offset"]
    for i, key in enumerate(batch["key"]):
        assert batch["data"][ends[i] : ends[i + 1]].tobytes() == (example_images / "train" / f"{key}.jpg").read_bytes()


def test_two_loaders_are_independent(example_dataset):
    with cifar(example_dataset) as alone:
        expected = epoch_of(alone)
    with cifar(example_dataset) as one, cifar(example_dataset) as other:
        pairs = [
            [{name: numpy.array(value) for name, value in batch.items()} for batch in pair]
            for pair in zip(one, other, strict=True)
        ]
    assert same([pair[0] for pair in pairs], expected) and same([pair[1] for pair in pairs], expected)


def test_drop_last_and_remainder(example_dataset):
    with cifar(example_dataset, drop_last=True) as loader:
        assert [len(batch["key"]) for batch in loader] == [128] * 39 == [128] * len(loader)
    counts = []
    for rank in range(3):
        with cifar(example_dataset, rank=rank, world_size=3, remainder="exact") as loader:
            counts.append(sum(len(batch["key"]) for batch in loader))
    assert counts == [1667, 1667, 1666]


def test_num_workers_and_prefetch_factor_set_threads_and_prefetch(example_dataset):
    with cifar(example_dataset, num_workers=3, prefetch_factor=2) as loader:
        assert loader.plan().splitlines()[:2] == [
            "threads 3: as requested",
            "prefetch 6: as requested; batches of 1.57 MB, 9.44 MB in all",
        ]
    with cifar(example_dataset) as loader:
        cores = len(os.sched_getaffinity(0))
        assert loader.plan().startswith(f"threads {cores}: {cores} core")
    with cifar(example_dataset, prefetch_factor=3) as loader:
        assert loader.plan().splitlines()[1].startswith(f"prefetch {3 * cores}: as requested;")


def test_stats_distinguish_stages(example_dataset):
    with cifar(example_dataset) as loader:
        epoch_of(loader)
        stats = loader.stats()
    assert stats["samples"] >= 5000 and stats["read_s"] > 0 and stats["check_s"] > 0 and stats["decode_s"] > 0
    assert stats["limit"]


@pytest.mark.parametrize("persistent", [True, False])
def test_statistics_are_available_after_the_threads_have_ended(example_dataset, persistent):
    loader = cifar(example_dataset, persistent_workers=persistent)
    for epochs in (1, 2):
        epoch_of(loader)
        loader.close()
        stats = loader.stats()
        assert (stats["samples"], stats["batches"]) == (5000 * epochs, 40 * epochs) and stats["limit"]
    assert (len(loader), loader.batches_left, loader.samples, len(loader.classes)) == (40, 40, 5000, 10)
    assert not loader._feed.is_open  # no access above started threads


def test_a_pickled_loader_continues_at_its_position(example_dataset):
    with cifar(example_dataset) as loader:
        batches = iter(loader)
        next(batches)
        with pickle.loads(pickle.dumps(loader)) as copy:
            assert (next(iter(copy))["image"] == next(batches)["image"]).all()


def test_a_closed_loader_continues_at_its_position(example_dataset):
    with cifar(example_dataset) as whole:
        expected = epoch_of(whole)
    loader = cifar(example_dataset, persistent_workers=False)
    assert same(epoch_of(loader), expected)
    loader.close()
    assert loader.epoch == 1 and loader.state_dict()["position"] == 0
    loader.set_epoch(0)
    assert same(epoch_of(loader), expected)


def test_attributes_used_by_frameworks_exist(example_dataset):
    with cifar(example_dataset, drop_last=True) as loader:
        sampler = loader.batch_sampler
        assert sampler.sampler is loader.sampler is loader
        assert (sampler.batch_size, sampler.drop_last) == (128, True)


def test_a_state_of_a_different_dataset_is_rejected(example_dataset):
    with cifar(example_dataset) as loader:
        state = loader.state_dict()
        with pytest.raises(
            stoker.InvalidError, match=r"^loader: the state to load has dataset version 01234567, but this dataset has "
        ):
            loader.load_state_dict(state | {"dataset": "0123456789"})
        with pytest.raises(
            stoker.InvalidError, match=r"^loader: the state to resume has seed 3, this training has seed 0$"
        ):
            loader.load_state_dict(state | {"seed": 3})
        with pytest.raises(
            stoker.InvalidError, match=r"^loader: the state to load has split 'test', but this loader has 'train'$"
        ):
            loader.load_state_dict(state | {"split": "test"})
        with pytest.raises(stoker.InvalidError, match=r"^loader: the state to load has no 'position'$"):
            loader.load_state_dict({"seed": 0, "epoch": 1})
        with pytest.raises(stoker.InvalidError, match=r"^loader: the state to load: epoch: -1 is not at least 0$"):
            loader.load_state_dict(state | {"epoch": -1})
        with pytest.raises(stoker.InvalidError, match=r"^loader: the state to load: None is not a dict$"):
            loader.load_state_dict(None)
        with pytest.raises(stoker.InvalidError, match=r"^loader: set_epoch: 1.5 is not a whole number$"):
            loader.set_epoch(1.5)
        assert len(epoch_of(loader)) == 40


ORDERS = {
    "shuffle=True": {},
    "shuffle=False": {"shuffle": False},
    "shuffle='full'": {"shuffle": "full"},
    "shuffle='by_shard', window=16": {"shuffle": "by_shard"},
    "shuffle='by_shard', window=1": {"shuffle": "by_shard", "window": 1},
    "shuffle='by_chunk', window=256": {"shuffle": "by_chunk"},
    "5000 weights (c4aee9ab)": {"weights": [1.0] * 4999 + [3.0]},
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_state_of_a_different_order_is_rejected(example_dataset, order):
    with cifar(example_dataset, **ORDERS[order]) as loader:
        state = loader.state_dict()
        assert state["order"] == order
        loader.load_state_dict(state)
        loader.load_state_dict({name: value for name, value in state.items() if name != "order"})  # of an older stoker
    for ours, options in ORDERS.items():
        if ours == order:
            continue
        with cifar(example_dataset, **options) as other, pytest.raises(stoker.InvalidError) as refusal:
            other.load_state_dict(state)
        assert str(refusal.value) == f"loader: the state to load has order {order}, but this loader has {ours}"


def test_the_order_of_mixed_datasets_includes_weights(example_dataset):
    with cifar([example_dataset, example_dataset], weights=[3, 1]) as loader:
        assert loader.state_dict()["order"] == "weights=[3.0, 1.0]"


def test_a_missing_dataset_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        stoker.Loader(tmp_path / "nothing")
    assert str(error.value).startswith(f"{tmp_path}/nothing: no such dataset")
