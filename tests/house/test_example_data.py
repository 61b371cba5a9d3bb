"""The data shipped in examples/ matches its README."""

import hashlib
import importlib.util
import io
import tarfile
from collections import Counter
from pathlib import Path

from PIL import Image

CIFAR10 = Path(__file__).resolve().parents[2] / "examples/cifar10"


def test_the_tar_is_the_one_the_readme_names():
    digest = hashlib.sha256((CIFAR10 / "cifar10-6000.tar").read_bytes()).hexdigest()
    assert digest in (CIFAR10 / "README.md").read_text()


def test_classes_are_balanced_and_every_file_is_a_small_rgb_jpeg():
    files = Counter()
    with tarfile.open(CIFAR10 / "cifar10-6000.tar") as tar:
        for member in tar:
            split, _, _ = member.name.split("/")
            files[split, Path(member.name).parent.name] += 1
            assert (member.mtime, member.uid, member.uname) == (0, 0, "")
            with Image.open(io.BytesIO(tar.extractfile(member).read())) as image:
                assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (32, 32))
    assert {count for (split, _), count in files.items() if split == "train"} == {500}
    assert {count for (split, _), count in files.items() if split == "test"} == {100}
    assert len(files) == 20


def test_the_subset_is_every_tenth_file_of_each_class_and_the_same_bytes_each_time(tmp_path):
    spec = importlib.util.spec_from_file_location("make_subset", CIFAR10 / "make_subset.py")
    make_subset = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_subset)
    with tarfile.open(tmp_path / "whole.tar", "w") as whole:
        for name in [f"{split}/{kind}/{n:04}.jpg" for split in ("train", "test") for kind in "ab" for n in range(25)]:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(name), 1234
            whole.addfile(member, io.BytesIO(name.encode()))
    assert make_subset.make_subset(tmp_path / "whole.tar", tmp_path / "one.tar") == 12
    make_subset.make_subset(tmp_path / "whole.tar", tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as subset:
        assert subset.getnames()[:4] == ["test/a/0000.jpg", "test/a/0010.jpg", "test/a/0020.jpg", "test/b/0000.jpg"]
        assert subset.extractfile("test/a/0010.jpg").read() == b"test/a/0010.jpg"
