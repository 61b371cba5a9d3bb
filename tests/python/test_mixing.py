"""stoker.Loader(mixup=, cutmix=): batches are mixed like torchvision's MixUp and CutMix, with matching labels."""

import itertools

import numpy
import pytest
import stoker


def cifar(dataset, **options):
    chosen = {"batch_size": 64, "transform": "cifar-train", "split": "train", "tensors": "numpy"}
    return stoker.Loader(dataset, **(chosen | options))


def first_batches(dataset, count, **options):
    with cifar(dataset, **options) as loader:
        batches = iter(loader)
        return [{name: numpy.array(value) for name, value in next(batches).items()} for _ in range(count)]


def share_of(plain, mixed):
    """Weight of a sample's own label, for samples whose partner (the previous one) has a different label."""
    labels = plain["label"]
    at = next(i for i in range(len(labels)) if labels[i] != labels[i - 1])
    return mixed["label"][at, labels[at]]


def expected_labels(labels, share):
    one_hot = numpy.eye(10, dtype=numpy.float32)[labels]
    return share * one_hot + (1 - share) * numpy.roll(one_hot, 1, axis=0)


def test_mixup_mixes_images_and_labels_by_the_same_share(example_dataset):
    plain = first_batches(example_dataset, 3)
    shares = []
    for own, mixed in zip(plain, first_batches(example_dataset, 3, mixup=1.0), strict=True):
        share = share_of(own, mixed)
        shares.append(float(share))
        assert mixed["label"].dtype == numpy.float32 and mixed["label"].shape == (64, 10)
        numpy.testing.assert_allclose(mixed["label"], expected_labels(own["label"], share), atol=1e-6)
        images = share * own["image"] + (1 - share) * numpy.roll(own["image"], 1, axis=0)
        numpy.testing.assert_allclose(mixed["image"], images, atol=1e-5)
    assert len(set(shares)) == 3 and all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize("options", [{}, {"channels_last": True, "dtype": "bfloat16", "tensors": "torch"}])
def test_cutmix_pastes_a_rectangle_of_the_previous_sample(example_dataset, options):
    plain, mixed = first_batches(example_dataset, 1)[0], first_batches(example_dataset, 1, cutmix=1.0)[0]
    share = share_of(plain, mixed)
    partner = numpy.roll(plain["image"], 1, axis=0)
    taken = ((mixed["image"] != plain["image"]) | (plain["image"] == partner)).all(axis=(0, 1))
    rows, columns = taken.any(axis=1), taken.any(axis=0)
    assert (taken == numpy.outer(rows, columns)).all(), "one rectangle"
    assert share == pytest.approx(1 - taken.mean())
    numpy.testing.assert_allclose(mixed["label"], expected_labels(plain["label"], share), atol=1e-6)
    assert (mixed["image"] == numpy.where(taken, partner, plain["image"])).all()
    if options:
        torch = pytest.importorskip("torch")
        with cifar(example_dataset, cutmix=1.0, **options) as loader:
            other = next(iter(loader))["image"]
        assert other.shape == (64, 3, 32, 32) and other.dtype == torch.bfloat16
        same = torch.from_numpy(mixed["image"]).to(torch.bfloat16)
        assert (other == same).float().mean() > 0.99, "the same rectangle, rounded"


def test_mixing_is_the_same_for_any_threads_and_after_a_resume(example_dataset):
    both = {"mixup": 0.2, "cutmix": 1.0}
    expected = first_batches(example_dataset, 6, num_workers=1, **both)
    for threads in (2, 5):
        for one, other in zip(expected, first_batches(example_dataset, 6, num_workers=threads, **both), strict=True):
            assert all((one[name] == other[name]).all() for name in one)
    with cifar(example_dataset, **both) as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state = loader.state_dict()
    with cifar(example_dataset, **both) as resumed:
        resumed.load_state_dict(state)
        assert (next(iter(resumed))["label"] == expected[3]["label"]).all()
    assert any((a["label"] != b["label"]).any() for a, b in itertools.pairwise(expected))


def test_labels_work_with_torchs_cross_entropy(example_dataset):
    torch = pytest.importorskip("torch")
    with cifar(example_dataset, mixup=0.4, tensors="torch") as loader:
        batch = next(iter(loader))
    logits = torch.zeros(64, 10)
    assert torch.nn.functional.cross_entropy(logits, batch["label"]).item() == pytest.approx(numpy.log(10), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mixup": -1}, "mixup: alpha -1 is not between 0.05 and 100"),
        ({"cutmix": 1000}, "cutmix: alpha 1000 is not between 0.05 and 100"),
        ({"mixup": 1, "dtype": "float16"}, "mixup: batches of F16 are not supported (F32 is)"),
        ({"cutmix": 1, "transform": None}, "loader: mixup and cutmix need images"),
    ],
)
def test_invalid_mixing_is_rejected(example_dataset, options, text):
    with pytest.raises(stoker.InvalidError) as refused:
        cifar(example_dataset, **options)
    assert str(refused.value) == text


def test_samples_without_labels_are_not_mixed(example_images, request, tmp_path):
    command = request.getfixturevalue("stoker")
    command("data", "pack", example_images / "train/cat", tmp_path / "unlabelled", code=0)
    with pytest.raises(stoker.InvalidError, match=r"^loader: sample '.*' .* has no label to mix \(mixup, cutmix\)$"):
        stoker.Loader(tmp_path / "unlabelled", transform="cifar-train", mixup=0.2)
