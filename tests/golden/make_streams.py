"""Writes streams/: small folders as MosaicML's streaming 0.13.0 and LitData 0.2.76 write them, in every encoding and compression
that is read, and in some that are not.

Needs both (script/bootstrap --for peers), which nothing else here does: run it with a Python that has them."""

import io
import shutil
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy
import torch
from PIL import Image

# Only the writer: the packages' own __init__ wants torchvision, transformers and more.
for name in ("streaming", "streaming.base", "streaming.base.format"):
    sys.modules[name] = package = ModuleType(name)
    package.__path__ = [str(Path(find_spec("numpy").origin).parents[1] / name.replace(".", "/"))]

from litdata.streaming.item_loader import TokensLoader  # noqa: E402
from litdata.streaming.writer import BinaryWriter  # noqa: E402
from streaming.base.format.mds.writer import MDSWriter  # noqa: E402

FOLDER = Path(__file__).parent / "streams"
# Rows of plain values, some of them missing: LitData puts them into a table.
TABLE = [
    {"image": bytes([i]) * i, "label": i % 3, "caption": f"{i} caf\u00e9" if i != 3 else None, "weight": i / 8,
     "rare": None if i % 2 else 2**40 * i, "good": i == 1, "tokens": list(range(i)),
     "boxes": [{"x": i, "name": "a"}, {"x": None, "name": "\u20ac"}][: i % 3]}
    for i in range(6)
]  # fmt: skip


def picture(i: int, kind: str = "JPEG", mode: str = "RGB") -> Image.Image:
    raw = bytes((i * 37 + j * 11) % 256 for j in range(6 * 4 * len(mode)))
    data = io.BytesIO()
    image = Image.frombytes(mode, (6, 4), raw)
    if not kind:
        return image
    image.save(data, kind, **({"quality": 75} if kind == "JPEG" else {}))
    return Image.open(io.BytesIO(data.getvalue()))


def mds(name: str, columns: dict[str, str], rows: list[dict], **options) -> None:
    with MDSWriter(out=str(FOLDER / name), columns=columns, **options) as writer:
        for row in rows:
            writer.write(row)


def litdata(name: str, rows: list, **options) -> None:
    folder = FOLDER / name
    writer = BinaryWriter(str(folder), chunk_size=options.pop("chunk_size", 4), **options)
    for i, row in enumerate(rows):
        writer[i] = row
    writer.done()
    writer.merge()
    index = folder / "index.json"  # without the time
    index.write_text(index.read_text()[: index.read_text().index(', "updated_at"')] + "}")


def write_mds() -> None:
    classified = {"image": "jpeg", "class": "int"}
    rows = [{"image": picture(i), "class": i % 3} for i in range(7)]
    mds("mds", classified, rows, size_limit=2800, hashes=["sha1", "xxh64"])
    mds("mds-zstd", classified, rows, size_limit=2800, compression="zstd:7", hashes=["xxh64"])
    mds("mds-gz", classified, rows, compression="gz", hashes=["xxh3_64"])
    mds("mds-brotli", classified, rows[:2], compression="br:5")
    mds("mds-pickle", {"x": "bytes", "meta": "pkl"}, [{"x": b"abc", "meta": {1, 2}}])
    everything = {
        "id": "str", "json": "json", "raw": "bytes", "label": "uint8", "weight": "float32", "half": "float16",
        "big": "uint64", "small": "int16", "exact": "str_int", "price": "str_decimal", "any": "ndarray", "typed": "ndarray:float32",
        "shaped": "ndarray:int16:2,3", "pixels": "pil", "grey": "pil", "shots": "jpeg_array", "frames": "list[png]",
    }  # fmt: skip
    some = []
    for i in range(3):
        some.append({
            "id": f"photos/{i}.jpg", "json": {"n": i}, "raw": bytes([i]) * i, "label": i, "weight": i / 4, "half": numpy.float16(0.1 * i),
            "big": 2**64 - 1 - i, "small": -i, "exact": 10**20 + i, "price": Decimal(f"{i}.50"), "any": numpy.arange(6, dtype=numpy.uint16).reshape(3, 2) + i,
            "typed": numpy.full((2, 300), i, numpy.float32), "shaped": numpy.full((2, 3), -i, numpy.int16), "pixels": picture(i, ""),
            "grey": picture(i, "", "L"), "shots": [b"\xff\xd8\xff" + bytes([i, j]) for j in range(2)],
            "frames": [picture(i + j, "PNG") for j in range(2)],
        })  # fmt: skip
    mds("mds-everything", everything, some)
    for split, first in (("train", 0), ("val", 5)):
        mds(f"mds-splits/{split}", classified, rows[first : first + (5 if first == 0 else 2)])


def write_litdata() -> None:
    pairs = [(picture(i, ""), i % 3) for i in range(7)]
    arrays = [
        {"x": numpy.arange(6, dtype=numpy.float32).reshape(2, 3) * i, "y": torch.full((2, 2), i, dtype=torch.int16),
         "tokens": torch.arange(i + 1), "name": f"sample-{i}", "score": i / 8, "good": i % 2 == 0, "label": i}
        for i in range(6)
    ]  # fmt: skip
    litdata("litdata", pairs)
    litdata("litdata-arrays", arrays)
    litdata("litdata-chunk", arrays, compression="zstd", compression_level="chunk")
    litdata("litdata-batch", arrays, compression="zstd", compression_level="batch", compression_batch_size=3)
    litdata("litdata-sample", arrays, compression="zstd", compression_level="sample")
    nested = [
        {"image": picture(i, ""), "boxes": {"xs": [i, 2], "names": ["a", "b"], "rows": [{"k": i, "v": 0.5, "w": None}]}}
        for i in range(3)
    ]
    litdata("litdata-nested", nested)
    litdata("litdata-tokens", [torch.arange(10) + i for i in range(4)], chunk_size=40, item_loader=TokensLoader())
    litdata("litdata-table", TABLE)
    litdata("litdata-table-zstd", TABLE, compression="zstd")
    litdata("litdata-pickle", [{"x": picture(0, ""), "meta": {1, 2}}])


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_mds()
    write_litdata()
