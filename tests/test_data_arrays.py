"""Datasets in HDF5 and Zarr: exchanged with h5py and zarr-python in both directions."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import h5py
import numpy
import packing
import pytest
import zarr
from array_files import all_samples, opened, write_zarr
from packing import jpeg

KINDS = ("hdf5", "zarr")
ENDINGS = {"hdf5": "hdf5", "zarr": "zarr.zip"}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return packing.make_animals(tmp_path / "animals")


@each_kind
@pytest.mark.filterwarnings("error")
def test_h5py_and_zarr_python_read_files_keys_and_labels(stoker, animals, kind):
    stoker("data", "pack", animals, "packed", "--format", kind, "--shards", "3", code=0)
    found = all_samples(stoker.folder / "packed")
    assert len(found) == 20
    for label, name in enumerate(("cat", "dog")):
        for path in (animals / name).glob("*.jpg"):
            sample = found[f"{name}/{path.stem}"]
            assert (sample["jpg"], sample["label"]) == (path.read_bytes(), label)
            for extension in ("json", "mask.png", "txt"):
                beside = path.with_suffix("." + extension)
                assert sample.get(extension) == (beside.read_bytes() if beside.exists() else None)


@each_kind
def test_it_equals_the_tar_dataset(stoker, animals, kind):
    for name in ("tar", kind):
        stoker("data", "pack", animals, name, "--format", name, "-j", "3", code=0)
    stoker("data", "verify", kind, "--full", code=0)
    assert "  20 the same" in stoker("data", "diff", "tar", kind, code=1).out
    assert json.loads(stoker("data", "info", kind, "--json", code=0).out)["format"] == kind
    stoker("data", "sample", kind, code=0)
    stoker("data", "lint", kind, code=0)


@each_kind
@pytest.mark.parametrize("hashes", ["sha256", "crc32c"])
def test_the_hash_covers_the_head_that_is_written_last(stoker, tmp_path, kind, hashes):
    (tmp_path / "large").mkdir()
    content = {f"{i}.bin": bytes([i]) * (70 << 20 if i == 1 else 300_000 * i) for i in range(3)}
    for name, data in content.items():
        (tmp_path / "large" / name).write_bytes(data)
    layout = ("--layout", "files", "--shards", "1", "--hash", hashes)
    stoker("data", "pack", "large", "packed", "--format", kind, *layout, code=0)
    stoker("data", "verify", "packed", "--full", code=0)
    found = all_samples(stoker.folder / "packed")
    assert {key + ".bin": sample["bin"] for key, sample in found.items()} == content


@each_kind
def test_conversion_between_the_kinds_and_back(stoker, animals, kind):
    other = KINDS[1 - KINDS.index(kind)]
    stoker("data", "pack", animals, "first", "--format", kind, "--shards", "2", code=0)
    stoker("data", "convert", "first", "second", "--format", other, "--shards", "2", code=0)
    stoker("data", "convert", "second", "third", "--format", kind, "--shards", "2", code=0)
    first, third = (packing.tree(stoker.folder / name) for name in ("first", "third"))
    shards = [name for name in first if name.startswith("all-")]
    assert len(shards) == 2 and [first[name] for name in shards] == [third[name] for name in shards]


@each_kind
def test_a_killed_packing_resumes_to_the_same_bytes(stoker, tmp_path, kind):
    folder = packing.make_images(tmp_path / "many", {"cat": 300, "dog": 300})
    common = ("--format", kind, "--shards", "60", "-j", "1")
    stoker("data", "pack", folder, "whole", *common, code=0)
    process = stoker.start("data", "pack", folder, "killed", *common)
    pending = stoker.folder / "killed/.packing"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None and len(list(pending.rglob("*"))) < 20:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    stoker("data", "pack", folder, "killed", *common, code=0)
    assert packing.tree(stoker.folder / "whole") == packing.tree(stoker.folder / "killed")


@each_kind
def test_unsupported_names_are_refused(stoker, animals, kind):
    (animals / "cat/0001.json").unlink()
    refused = stoker("data", "pack", "animals", "other", "--format", kind, "--labels", "json", code=2)
    assert (
        refused.err
        == f"animals: samples store labels in the array 'label', not as JSON (--labels json, --format {kind})\n"
    )
    (animals / "cat/0001.__x").write_text("x")
    refused = stoker("data", "pack", "animals", "other", "--format", kind, code=2)
    assert refused.err == (
        "animals: files '.__x': cannot be the name of an array: it begins with __, which is reserved in Zarr "
        f"(--format {kind})\n"
    )


def write_foreign(folder: Path, kind: str, packed: bool, keys: bool = True, lists: bool = False) -> list[bytes]:
    """20 samples as written by a foreign tool: images, labels, and an unrelated array."""
    folder.mkdir()
    images = [jpeg(i, kind="PNG" if i == 3 else "JPEG") for i in range(20)]
    names = [f"photo-{i}".encode() for i in range(20)] if keys else []
    ends = numpy.cumsum([0] + [len(part) for part in images + names])
    places = ends[:21] if lists else numpy.stack([ends[:20], ends[1:21]], 1)
    arrays = {
        "bytes": numpy.frombuffer(b"".join(images + names), "u1"),
        "files/img": places.astype("<i8"),
        "label": numpy.arange(20, dtype="u1") % 3,
        "score": numpy.ones(20, "f4"),
    }
    if keys:
        arrays["key"] = numpy.stack([ends[20:40], ends[21:41]], 1).astype(">u4" if kind == "hdf5" else "u4")
    if kind == "hdf5":
        with h5py.File(folder / "train.h5", "w") as file:
            for name, array in arrays.items():
                options = {"compression": "gzip", "chunks": True} if packed else {}
                file.create_dataset(name, data=array, **options)
        return images
    write_zarr(folder / "train.zarr.zip", kind, packed, arrays)
    return images


CODE = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=20, shuffle=False, transform=None, tensors="dlpack"):
    print(bytes(memoryview(batch["data"])).hex(), list(memoryview(batch["label"])), batch["key"][4])
"""


@pytest.mark.parametrize("kind", [*KINDS, "zarr 2", "zarr in shards"])
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("keys", [False, True])
def test_foreign_plain_files_become_datasets_in_place(stoker, python, tmp_path, kind, keys, lists):
    images = write_foreign(tmp_path / "hub", kind, packed=False, keys=keys, lists=lists)
    before = packing.tree(tmp_path / "hub")
    done = stoker("data", "index", "hub", code=0)
    assert done.out.startswith("hub: 20 samples, 1 shard, ")
    assert before.items() <= packing.tree(tmp_path / "hub").items()
    stoker("data", "verify", "hub", "--full", code=0)
    data, rest = python(CODE, "hub").split(" ", 1)
    assert bytes.fromhex(data) == b"".join(images)
    ending = "h5" if kind == "hdf5" else "zarr.zip"
    assert rest == f"{[i % 3 for i in range(20)]} {'photo-4' if keys else f'train.{ending}/00000004'}\n"


@pytest.mark.parametrize("kind", [*KINDS, "zarr 2", "zarr in shards"])
@pytest.mark.parametrize("keys", [False, True])
def test_foreign_packed_files_become_datasets_in_place(stoker, python, tmp_path, kind, keys):
    images = write_foreign(tmp_path / "hub", kind, packed=True, keys=keys)
    stoker("data", "index", "hub", code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    data, rest = python(CODE, "hub").split(" ", 1)
    assert bytes.fromhex(data) == b"".join(images)
    ending = "h5" if kind == "hdf5" else "zarr.zip"
    assert rest == f"{[i % 3 for i in range(20)]} {'photo-4' if keys else f'train.{ending}/00000004'}\n"


@each_kind
def test_compressed_files_are_converted(stoker, tmp_path, kind):
    images = write_foreign(tmp_path / "hub", kind, packed=True)
    done = stoker("data", "convert", "hub", "out", "--format", kind, code=0)
    assert "  skipped: array 'score' (20 samples)\n" in done.out
    found = all_samples(stoker.folder / "out")
    assert [found[f"photo-{i}"] for i in range(20)] == [{"label": i % 3, "img": images[i]} for i in range(20)]
    stoker("data", "verify", "out", "--full", code=0)


@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_store_that_is_a_folder_is_converted(stoker, tmp_path, version):
    images = [jpeg(i) for i in range(20)]
    ends = numpy.cumsum([0] + [len(image) for image in images])
    group = zarr.create_group(tmp_path / "x.zarr", zarr_format=version)
    for name, array in {"bytes": numpy.frombuffer(b"".join(images), "u1"), "files/jpg": ends.astype("u8")}.items():
        made = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(1000,))
        made[:] = array
    done = stoker("data", "convert", "x.zarr", "out", "--format", "hdf5", code=0)
    assert "20 samples" in done.out
    found = all_samples(stoker.folder / "out")
    assert [found[f"x.zarr/{i:08}"]["jpg"] for i in range(20)] == images


@each_kind
@pytest.mark.parametrize("length", [0, 11, 500, -1])
def test_a_truncated_file_is_refused(stoker, tmp_path, kind, length):
    write_foreign(tmp_path / "hub", kind, packed=False)
    (file,) = (tmp_path / "hub").iterdir()
    file.write_bytes(file.read_bytes()[:length])
    done = stoker("data", "convert", "hub", "out", "--format", kind, code=1)
    assert done.err.startswith(f"hub/{file.name}: ")
    assert not (tmp_path / "out").exists()


@each_kind
def test_no_flip_in_the_metadata_causes_a_crash(stoker, animals, kind):
    stoker("data", "pack", animals, "packed", "--format", kind, "--shards", "1", code=0)
    shard = stoker.folder / f"packed/all-000000.{ENDINGS[kind]}"
    whole = shard.read_bytes()
    lone = stoker.folder / "lone"
    step = (len(whole) - whole.rfind(b"\xff\xd9")) // 24
    for at in [0, 9, 30, 45, *range(whole.rfind(b"\xff\xd9") + 2, len(whole), step)]:
        shutil.rmtree(lone, ignore_errors=True)
        lone.mkdir()
        (lone / shard.name).write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        done = stoker("data", "index", "lone")
        assert done.code in (0, 1, 2), (at, done.code, done.err)
        assert done.code == 0 or shard.name in done.err


def damaged(file: Path, what: dict) -> None:
    with h5py.File(file, "r+") as h5:
        for name, array in what.items():
            if name in h5:
                del h5[name]
            if array is not None:
                h5[name] = array


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            {"files/img": numpy.array([[0, 2**60]] * 20, "u8")},
            "array 'files/img': row 0: 0 to 1152921504606846976 are outside 'bytes', which has ",
        ),
        (
            {"files/img": numpy.zeros((20, 3), "u8")},
            "is neither N pairs of offsets nor a list of N + 1: it has uint64 values (shape 20 x 3)\n",
        ),
        (
            {"files/img": numpy.zeros((20, 2), "f8")},
            "is neither N pairs of offsets nor a list of N + 1: it has float64 values (shape 20 x 2)\n",
        ),
        ({"files/other": numpy.zeros((19, 2), "u8")}, "array 'files/img' has 20 samples, 'files/other' has 19"),
        (
            {"label": numpy.zeros(19, "i8")},
            "array 'label': is not a list of one integer per sample: it has int64 values (shape 19)\n",
        ),
        ({"key": numpy.array([[0, 5000]] * 20, "u8")}, "sample 0 has a key of 5000 bytes (at most 4096)\n"),
        ({"files/img": numpy.array([[1, 0]] * 20, "u8")}, "sample 0 has no files"),
        (
            {"files": None},
            "its arrays are not samples: an array of ranges in 'bytes', such as 'files/jpg', is missing\n",
        ),
        (
            {"bytes": numpy.zeros((20, 3), "u1")},
            "array 'bytes': is not a list of bytes: it has uint8 values (shape 20 x 3)\n",
        ),
    ],
)
def test_inconsistent_arrays_are_named(stoker, tmp_path, what, message):
    write_foreign(tmp_path / "hub", "hdf5", packed=False)
    damaged(tmp_path / "hub/train.h5", what)
    done = stoker("data", "index", "hub")
    assert done.code in (1, 2) and message in done.err and done.err.startswith("hub/train.h5: ")


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("files/img", (2**40, 2), "array 'files/img': has 1 099 511 627 776 rows (at most 134 217 728 are supported)"),
        ("label", (2**40,), "array 'label': is not a list of one integer per sample"),
        ("bytes", (2**55,), "unpacks to 36.0 PB, "),
    ],
)
def test_false_sizes_take_no_memory_and_no_disk(stoker, tmp_path, name, shape, message):
    write_foreign(tmp_path / "hub", "zarr", packed=False)
    store = zarr.storage.ZipStore(tmp_path / "hub/train.zarr.zip", mode="r")
    whole = zarr.open_group(store, mode="r")
    group = zarr.create_group(tmp_path / "claims.zarr")
    for other in ("bytes", "key", "label", "files/img"):
        kept = whole[other][:]
        group.create_array(
            other, shape=shape if other == name else kept.shape, dtype=kept.dtype, chunks=(20,) * kept.ndim
        )
        if other != name:
            group[other][:] = kept
    done = stoker("data", "convert", "claims.zarr", "out", "--format", "tar")
    assert done.code in (1, 2) and message in done.err and done.err.startswith("claims.zarr: ")
    assert not (tmp_path / "out").exists()


def test_without_libhdf5_pack_works_and_index_suggests_installing_it(stoker, animals):
    without = {"STOKER_HDF5_LIBRARY": "/nowhere/libhdf5.so"}
    stoker("data", "pack", animals, "packed", "--format", "hdf5", code=0, env=without)
    stoker("data", "verify", "packed", "--full", code=0, env=without)
    (stoker.folder / "packed/index.bin").unlink()
    done = stoker("data", "index", "packed", code=3, env=without)
    assert done.err.startswith("HDF5: /nowhere/libhdf5.so: cannot open shared object file")


@each_kind
@pytest.mark.parametrize(("what", "reader"), [("wids", "webdataset"), ("dali", "DALI"), ("energon", "Energon")])
def test_indexes_for_incompatible_readers_are_not_written(stoker, animals, kind, what, reader):
    stoker("data", "pack", animals, "packed", "--format", kind, code=0)
    done = stoker("data", "index", "packed", "--export", what, code=2)
    assert f"packed: its shards are {kind}, which {reader} cannot read (--export)" in done.err


@pytest.mark.soak
@each_kind
def test_a_shard_over_four_gibibytes(stoker, tmp_path, kind):
    (tmp_path / "large").mkdir()
    with (tmp_path / "large/a.bin").open("wb") as file:
        file.truncate(4500 << 20)
    (tmp_path / "large/b.bin").write_bytes(os.urandom(1_000_000))
    options = ("--layout", "files", "--shards", "1", "--order", "source", "--hash", "crc32c")
    stoker("data", "pack", "large", "packed", "--format", kind, *options, code=0, timeout=300)
    stoker("data", "verify", "packed", "--full", code=0, timeout=300)
    group = opened(tmp_path / f"packed/all-000000.{ENDINGS[kind]}")
    begin, end = group["files"]["bin"][1].tolist()
    assert begin == 4500 << 20
    assert bytes(group["bytes"][begin:end]) == (tmp_path / "large/b.bin").read_bytes()
