"""Makes folders of images for the tests of packing, and reads the output."""

import csv
import hashlib
import io
import random
import tarfile
from pathlib import Path

from PIL import Image


def jpeg(seed: int, size: tuple[int, int] = (16, 12), kind: str = "JPEG") -> bytes:
    """A small image that differs for every seed."""
    image = Image.frombytes("RGB", size, random.Random(seed).randbytes(3 * size[0] * size[1]))
    data = io.BytesIO()
    image.save(data, kind)
    return data.getvalue()


def make_images(folder: Path, classes: dict[str, int]) -> Path:
    for c, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            (folder / name / f"{i:04}.jpg").write_bytes(jpeg(1000 * c + i))
    return folder


def make_animals(folder: Path) -> Path:
    """Two classes; some images have additional files, one of them empty."""
    make_images(folder, {"cat": 12, "dog": 8})
    (folder / "cat/0001.json").write_text('{"note": 1}')
    (folder / "cat/0001.mask.png").write_bytes(jpeg(5, kind="PNG"))
    (folder / "dog/0003.txt").write_text("")
    return folder


def indexed_files(stoker, folder: Path, files: list[tuple[str, bytes]]) -> Path:
    """A dataset of these (name, bytes) in a tar shard."""
    shards = folder / "shards"
    shards.mkdir()
    with tarfile.open(shards / "train-000000.tar", "w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    stoker("data", "index", shards, code=0)
    return shards


def tree(folder: Path) -> dict[str, str]:
    """Every file's SHA-256."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def members(dataset: Path, pattern: str = "*.tar") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for shard in sorted(dataset.glob(pattern)):
        with tarfile.open(shard) as archive:
            for member in archive:
                assert member.name not in found
                found[member.name] = archive.extractfile(member).read()
    return found


def left_out(dataset: Path) -> list[tuple[str, str, str]]:
    with (dataset / "left-out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["path", "reason", "detail"]
    return [tuple(row) for row in rows[1:]]


def refusal(stoker, *arguments: object, code: int = 2) -> str:
    """The error of a refused `stoker data pack`, which prints nothing else."""
    done = stoker("data", "pack", *arguments, code=code)
    assert done.out == ""
    return done.err
