"""Shard formats: common rules, and the choice between the first two by sample size."""

import json
import struct
from pathlib import Path

import packing
import pytest
from crc import crc32c


def masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def records(path: Path) -> list[bytes]:
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(crc32c(data[at : at + 8]))
        content = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(crc32c(content))
        found.append(content)
        at += 16 + length
    return found


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """The length-delimited fields of a protocol buffer message."""

    def varint(at: int) -> tuple[int, int]:
        value, shift = 0, 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value, at

    at, found = 0, []
    while at < len(message):
        tag, at = varint(at)
        assert tag & 7 == 2
        length, at = varint(at)
        found.append((tag >> 3, message[at : at + length]))
        at += length
    return found


def example(record: bytes) -> dict[str, bytes | int]:
    ((_, features),) = fields(record)
    sample: dict[str, bytes | int] = {}
    for _, entry in fields(features):
        (_, name), (_, feature) = fields(entry)
        ((kind, values),) = fields(feature)
        ((_, value),) = fields(values)
        sample[name.decode()] = value if kind == 1 else value[0]
    return sample


@pytest.fixture
def thumbnails(tmp_path: Path) -> Path:
    return packing.make_images(tmp_path / "thumbnails", {"cat": 12, "dog": 8})


def with_files_beside(folder: Path) -> None:
    (folder / "cat/0001.json").write_text('{"note": 1}')
    (folder / "cat/0001.mask.png").write_bytes(packing.jpeg(5, kind="PNG"))
    (folder / "dog/0003.txt").write_text("")


def test_tiny_samples_become_records_with_a_reason(stoker, thumbnails):
    done = stoker("data", "pack", thumbnails, "packed", "--format", "auto", code=0)
    assert "  as tfrecord: tar's headers and padding would add " in done.out
    samples = {
        s["__key__"].decode(): s
        for p in Path(stoker.folder / "packed").glob("*.tfrecord")
        for s in map(example, records(p))
    }
    assert len(samples) == 20
    for name, label in (("cat", 0), ("dog", 1)):
        for path in (thumbnails / name).iterdir():
            assert samples[f"{name}/{path.stem}"] == {
                "__key__": f"{name}/{path.stem}".encode(),
                "cls": label,
                "jpg": path.read_bytes(),
            }


def test_large_samples_stay_tar_with_a_reason(stoker, tmp_path):
    images = tmp_path / "photos"
    images.mkdir()
    for i in range(3):
        (images / f"{i}.jpg").write_bytes(packing.jpeg(i, (120, 90)))
    done = stoker("data", "pack", images, "packed", "--format", "auto", code=0)
    assert "  as tar: its headers and padding add " in done.out
    assert not list((stoker.folder / "packed").glob("*.tfrecord"))


def test_tar_of_tiny_samples_shows_the_size_as_records(stoker, tmp_path):
    (tmp_path / "many").mkdir()
    for i in range(4500):
        (tmp_path / f"many/{i}.txt").write_text(f"{i}")
    done = stoker("data", "pack", "many", "packed", "--layout", "files", code=0)
    assert "  as tar: its headers and padding add " in done.out
    assert "(--format tfrecord: " in done.out


def test_label_members_select_tar(stoker, thumbnails):
    done = stoker("data", "pack", thumbnails, "packed", "--format", "auto", "--labels", "cls", code=0)
    assert "  as tar: " in done.out
    refused = stoker("data", "pack", thumbnails, "other", "--format", "tfrecord", "--labels", "json", code=2)
    assert "records store labels as the number 'cls', not as JSON (--labels json, --format tfrecord)" in refused.err


def test_both_formats_have_the_same_samples(stoker, thumbnails):
    with_files_beside(thumbnails)
    for kind in ("tar", "tfrecord"):
        stoker("data", "pack", thumbnails, kind, "--format", kind, "-j", "3", code=0)
        stoker("data", "verify", kind, "--full", code=0)
    done = stoker("data", "diff", "tar", "tfrecord", code=1)  # the versions name the shards' bytes
    assert "  20 the same" in done.out
    assert json.loads(stoker("data", "info", "tfrecord", "--json", code=0).out)["format"] == "tfrecord"


KINDS = pytest.mark.parametrize("kind", ["tar", "tfrecord", "parquet", "hdf5", "zarr"])


@KINDS
def test_the_same_bytes_for_any_number_of_threads_and_parts(stoker, thumbnails, kind):
    with_files_beside(thumbnails)
    common = ("--format", kind, "--shards", "5")
    stoker("data", "pack", thumbnails, "one", *common, "-j", "1", code=0)
    stoker("data", "pack", thumbnails, "many", *common, "-j", "4", code=0)
    for part in ("2/2", "1/2"):
        stoker("data", "pack", thumbnails, "parts", *common, "--part", part, code=0)
    stoker("data", "merge", "parts", code=0)
    assert packing.tree(stoker.folder / "one") == packing.tree(stoker.folder / "many")
    assert packing.tree(stoker.folder / "one") == packing.tree(stoker.folder / "parts")


@pytest.mark.parametrize("kind", ["tfrecord", "parquet", "hdf5", "zarr"])
def test_lost_index_is_rebuilt_with_labels(stoker, thumbnails, kind):
    with_files_beside(thumbnails)
    stoker("data", "pack", thumbnails, "packed", "--format", kind, code=0)
    index = stoker.folder / "packed/index.bin"
    before = index.read_bytes()
    index.unlink()
    stoker("data", "index", "packed", code=0)
    assert index.read_bytes() == before


@KINDS
def test_flipped_bit_is_reported(stoker, thumbnails, kind):
    stoker("data", "pack", thumbnails, "packed", "--format", kind, code=0)
    (shard,) = (stoker.folder / "packed").glob("all-000000.*")
    data = bytearray(shard.read_bytes())
    data[data.find(b"\xff\xd8") + 100] ^= 1
    shard.write_bytes(data)
    done = stoker("data", "verify", "packed", "--full", code=1)
    assert ".jpg" in done.out and "CRC-32C" in done.out


def test_dali_index_has_offset_and_size_of_each_record(stoker, thumbnails):
    stoker("data", "pack", thumbnails, "packed", "--format", "tfrecord", code=0)
    stoker("data", "index", "packed", "--export", "dali", code=0)
    lines = (stoker.folder / "packed/all-000000.idx").read_text().splitlines()
    shard = (stoker.folder / "packed/all-000000.tfrecord").read_bytes()
    sizes = [16 + len(record) for record in records(stoker.folder / "packed/all-000000.tfrecord")]
    assert lines == [f"{sum(sizes[:i])} {size}" for i, size in enumerate(sizes)]
    assert sum(sizes) == len(shard)


@pytest.mark.parametrize("kind", ["wids", "energon"])
def test_tar_readers_get_no_index_of_records(stoker, thumbnails, kind):
    stoker("data", "pack", thumbnails, "packed", "--format", "tfrecord", code=0)
    done = stoker("data", "index", "packed", "--export", kind, code=2)
    reader = "webdataset" if kind == "wids" else "Energon"
    assert f"packed: its shards are tfrecord, which {reader} cannot read (--export)" in done.err
    assert "try: stoker data pack SOURCE OUT --format tar --labels cls" in done.err
