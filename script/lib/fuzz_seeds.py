"""Writes a few whole files of each kind that a harness of fuzz/ reads, so that it begins behind the first bytes:
fuzz_seeds.py FOLDER fills FOLDER/<harness>, and fails when a harness has none."""

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

from array_seeds import array_seeds
from index_seeds import index_seeds, number_tables
from parquet_seeds import parquet_seeds
from PIL import Image
from run_seeds import run_seeds

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))

from packing import jpeg  # noqa: E402
from records import imagenet, record  # noqa: E402


def images() -> list[bytes]:
    """JPEG (baseline, progressive, grey, with restart markers), PNG, WebP."""
    picture = Image.open(io.BytesIO(jpeg(1, (24, 16))))
    ways: list[tuple[str, Image.Image, dict]] = [
        ("JPEG", picture, {"quality": 80}),
        ("JPEG", picture, {"progressive": True, "comment": b"text"}),
        ("JPEG", picture.convert("L"), {"restart_marker_blocks": 1}),
        ("JPEG", picture.convert("CMYK"), {}),
        ("PNG", picture, {}),
        ("PNG", picture.convert("P"), {}),
        ("WEBP", picture, {"lossless": True}),
        ("WEBP", picture, {"quality": 50}),
    ]
    found = []
    for kind, image, options in ways:
        data = io.BytesIO()
        image.save(data, kind, **options)
        found.append(data.getvalue())
    return found


def archives() -> tuple[bytes, bytes]:
    """A tar with a long name and a zip with both methods."""
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("cat/1.jpg", "cat/1.cls", "x" * 120 + "/é.txt"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"123"))
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("cat/1.txt", b"1" * 100, zipfile.ZIP_DEFLATED)
        archive.writestr("dog/2.txt", b"2", zipfile.ZIP_STORED)
    return tar.getvalue(), packed.getvalue()


def zip64(packed: bytes) -> bytes:
    """The zip with all numbers of its end record in a zip64 record."""
    end = packed.rindex(b"PK\5\6")
    members, size, offset = struct.unpack("<HII", packed[end + 10 : end + 20])
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, members, members, size, offset)
    locator = struct.pack("<IIQI", 0x07064B50, 0, end, 1)
    return packed[:end] + record + locator + b"PK\5\6" + b"\xff" * 16 + bytes(2)


def unicode_path_zip() -> bytes:
    """A zip whose member has Info-ZIP's Unicode Path."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        info = zipfile.ZipInfo("cat/1.txt")
        name = "cat/é.txt".encode()
        info.extra = struct.pack("<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"cat/1.txt")) + name
        archive.writestr(info, b"1")
    return packed.getvalue()


def compressed(tar: bytes) -> list[bytes]:
    """gzip with padding and with other bytes behind it; skippable frames around the beginning of a zstd frame."""
    frame = struct.pack("<II", 0x184D2A50, 4) + b"size"
    zstd = b"\x28\xb5\x2f\xfd\x20\x01\x09\x00\x00a"  # a frame of one raw block
    packed = gzip.compress(tar)
    return [packed + bytes(8), packed + b"text", frame + zstd + frame, frame + b"\x04\x22\x4d\x18"]


def npy(text: str, data: bytes) -> bytes:
    header = (text + " " * (-(len(text) + 11) % 64) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def from_a_dataset(command: Path) -> dict[str, list[bytes]]:
    """What the built command writes: manifest, index, an unfinished packing's plan and fragment (without their CRCs)."""
    with tempfile.TemporaryDirectory() as folder:
        box = Path(folder)
        (box / "in/cat").mkdir(parents=True)
        for i in range(4):
            (box / f"in/cat/{i}.jpg").write_bytes(jpeg(i))
        pack = [command, "data", "pack", box / "in"]
        subprocess.run([*pack, box / "out"], check=True, capture_output=True)
        subprocess.run([*pack, box / "zarr", "--format", "zarr"], check=True, capture_output=True)
        subprocess.run([*pack, box / "parts", "--shards", "2", "--part", "1/2"], check=True, capture_output=True)
        pending = [path.read_bytes() for path in sorted((box / "parts/.packing").iterdir()) if path.suffix != ".tar"]
        return {
            "manifest_fuzz": [(box / "out/manifest.json").read_bytes()],
            "index_fuzz": [(box / "out/index.bin").read_bytes()],
            "sample_arrays_fuzz": [(box / "zarr/all-000000.zarr.zip").read_bytes()],
            "pack_plan_fuzz": [content.split(b"\n", 1)[1] for content in pending if b"\n" in content],
        }


def dvc() -> list[bytes]:
    """.dvc files, and dvc.lock with dvc.yaml: see fuzz/data/dvc_fuzz.cc for the first byte."""
    file = b"md5: 0123456789abcdef0123456789abcdef\n  size: 3\n  nfiles: 2\n  hash: md5\n  path: images\n"
    folder = file.replace(b"ef\n  size", b"ef.dir\n  size")
    out = folder.replace(b"\n", b"\n    ")
    lock = b"schema: '2.0'\nstages:\n  fetch@a:\n    cmd: x\n    outs:\n    - " + out
    pipeline = b"\0stages:\n  fetch:\n    foreach: [a]\n    do: {cmd: x, wdir: data, outs: [images]}\n"
    return [b"\0outs:\n- " + file, b"\4outs:\n- " + folder + b"wdir: .\n", b"\5" + lock, b"\7" + lock + pipeline]


def chunk_maps() -> list[bytes]:
    """Of a plain array of 4 x 4 bytes in two chunks, and of a list of one page that nothing packs; the shard behind it."""
    grid = {
        "name": "x", "shape": [4, 4], "chunks": [2, 4], "element_bytes": 1, "fill": "00", "head": "3c3e",
        "coder": "plain", "coding": '{"swap":1}', "places": 2,
    }  # fmt: skip
    zlib = grid | {"coder": "hdf5", "coding": '{"filters":[[2,[4]],[1,[6]]],"swap":1}'}
    pages = grid | {"shape": [20], "chunks": [], "fill": "", "head": "", "coder": "page", "coding": "{}", "places": 1}
    made = []
    for array, places in ((grid, (0, 8, 0, 8, 8, 0)), (zlib, (0, 8, 0, 8, 8, 0)), (pages, (4, 20, 20))):
        text = json.dumps([array]).encode()
        padding = bytes(-len(text) % 8)
        whole = struct.pack("<Q", len(text)) + text + padding + struct.pack(f"<{len(places)}Q", *places)
        made.append(struct.pack("<Q", len(whole)) + whole + bytes(range(24)))
    return made


def torch_flights() -> list[bytes]:
    folder = Path(__file__).parents[2] / "tests/golden/torch-flight"
    return [path.read_bytes() for path in sorted(folder.glob("*.bin"))]


def seeds() -> dict[str, list[bytes]]:
    tar, packed = archives()
    records = [record(imagenet(1)), record({"image": jpeg(2), "label": 3})]
    messages = [content[12:-4] for content in records]
    pictures = images()
    trial = "1,v,torch,64,2,True,False,2,True,False,0.100000,0.200000,1000,640.0,decode\n"
    found = {
        "tar_fuzz": [tar, tar[:1024] + bytes(512) + tar],
        "zip_fuzz": [packed, b"#!/bin/sh\n" + packed, zip64(packed), unicode_path_zip()],
        "tfrecord_fuzz": records + messages,
        "pack_source_fuzz": [tar, packed, b"#!/bin/sh\n" + packed, *compressed(tar), *records, *messages],
        "decode_fuzz": pictures,
        "jpeg_rewrite_fuzz": pictures,
        "image_check_fuzz": pictures,
        "npy_fuzz": [npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", bytes(24))],
        "npy_names_fuzz": [
            b"X_train.npy\ny_train.npy\nX_test.npy\ny_test.npy",
            b"train-0.npy\ntrain-1.npy\nx.t2m.npy\nt2m.npy",
        ],
        "fields_fuzz": [b'{"a": 1, "b": {"c": "x"}}', b"a,b\n1,x\n"],
        "condition_fuzz": [
            b"n = 3 and (f >= 0.5 or t is null) and not t like 'a%_'",
            b"t in ('apple', 'b''c') or n not between -1 and 2e3 or \"d\" > '2024-10-04 12:00:00.5'",
            b"b and f is not nan and n < f and 3 != n",
            b"features=x1,x_*:float32",
        ],
        "csv_fuzz": [b'path,label\n"a ""b"".jpg",cat\n'],
        "trials_fuzz": [trial.encode()],
        "chunk_map_fuzz": chunk_maps(),
        "dvc_fuzz": dvc(),
        "torch_flight_fuzz": torch_flights(),
        "farm_fuzz": [
            b"x,y\n1,'a b'\n\"2\",3\n",
            b"7 ./sim 'a b' > out 2>&1\n8 sim \"x\" | sort\n",
            b"- {name: a, command: b {x}, cores: 2, memory: 1GB, time: 5m, makes: [m]}\n- {command: c, after: a, needs: m}\n",
            b"end 0 d252b867b3be23ad 1 done 0 0 1795832905.763 0.0032 0 0 4 free #01779e32\n",
            b"worker eaklomoiz6hh vm b%20pid:[4] 31537 4343328 - 746c415d37d24fc5 1795832905.801 #00000000\nclaim a 0-9,12 #0\n",
        ],
        "study_fuzz": [
            b"space: {a: {min: 1, max: 9, log: true}, b: [x, 2], c: {min: 0, max: 1, step: 0.5, when: {b: x}}}\n"
            b"constraints: [a * c <= 3 or b == 'x']\nobjectives: {loss: minimize}\nsampler: grid\n"
            b"pruner: {kind: asha, min_resource: 1}\nfirst: [{a: 2}]\n",
            b"method: bayes\nmetric: {name: loss, goal: minimize}\nearly_terminate: {type: hyperband, min_iter: 3}\n"
            b"parameters: {a: {distribution: log_uniform, min: -2, max: 0}, b: {parameters: {c: {value: 1}}}}\n",
            b"(a + 2 * b) ** -c // 3 % 2 <= 1 and not d in ('x', true)",
        ],
    }
    # Each after the byte that selects the reader: shard, index, packed samples, packed batches.
    streams = REPOSITORY / "tests/golden/streams"
    kinds = {0: "mds*/*.mds", 1: "*/index.json", 3: "litdata-[at]*/*.bin", 4: "litdata-s*/*.bin", 5: "litdata-b*/*.bin"}
    found["streams_fuzz"] = [
        bytes([kind]) + path.read_bytes() for kind, pattern in kinds.items() for path in sorted(streams.glob(pattern))
    ]
    command = REPOSITORY / "build/release/bin/stoker"
    found |= array_seeds() | run_seeds()
    found["parquet_fuzz"] = parquet_seeds()
    # After the byte that selects the table options.
    found["table_layout_fuzz"] = [bytes([which]) + table for table in number_tables() for which in (0, 1, 6)]
    if command.exists():
        found["chunk_map_fuzz"] += index_seeds(command)
        found |= from_a_dataset(command)
    return found


def main() -> int:
    found = seeds()
    for harness, contents in found.items():
        folder = Path(sys.argv[1]) / harness
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(contents):
            (folder / f"seed-{number}").write_bytes(content)
    harnesses = {path.stem for path in (REPOSITORY / "fuzz").rglob("*_fuzz.cc")}
    for harness in sorted(name for name in harnesses if not found.get(name)):
        print(f"fuzz_seeds.py: {harness}: no seeds: add some to the file of its kind in script/lib/*_seeds.py")
    for harness in sorted(found.keys() - harnesses):
        print(f"fuzz_seeds.py: {harness}: seeds for a harness that fuzz/ does not have")
    return 0 if found.keys() == harnesses and all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
