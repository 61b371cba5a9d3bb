"""zarr-python 2 in a separate environment: `write FOLDER` makes stores of many kinds, each with the elements that it
must be read as beside it (NAME.elements: C order, little-endian); `read ARRAY...` prints the SHA-256 of the same of each array;
`samples SHARD...` prints how many samples shards have and the SHA-256 of all of their files, in the order of keys."""

import hashlib
import itertools
import json
import sys
from pathlib import Path

import numpy
import zarr
from numcodecs import LZ4, Blosc, GZip, Shuffle, VLenUTF8, Zlib, Zstd

TYPES = ["|b1", "|u1", "|i1", "<u2", ">i2", "<f2", ">f4", "<f8", ">i8", "<u8", "<c8", ">c16", "|S5", "<U4", ">U4"]
TYPES += ["<M8[ns]", "<m8[s]", "|V4"]
BLOSC = itertools.product(
    ("blosclz", "lz4", "lz4hc", "zlib", "zstd"), (Blosc.NOSHUFFLE, Blosc.SHUFFLE, Blosc.BITSHUFFLE)
)
COMPRESSORS = [None, "default", Zlib(5), GZip(1), Zstd(3), Zstd(1, checksum=True), LZ4()]
COMPRESSORS += [Blosc(cname=name, shuffle=shuffle) for name, shuffle in BLOSC]
# Type, fill value; all but one chunk are missing.
FILLS = [("<f4", 0), ("<f4", 1.5), ("<f4", float("nan")), ("<f4", float("-inf")), ("<c8", 1 + 2j), (">i8", -(1 << 40))]
FILLS += [("|b1", True), ("|S3", b"ab"), ("|V3", b"abc"), ("<U3", "h\u00e9\u20ac"), ("<M8[s]", numpy.datetime64("NaT"))]


def values(dtype: str, shape: tuple = (11, 5, 6)) -> numpy.ndarray:
    kind, count = numpy.dtype(dtype), int(numpy.prod(shape))
    if kind.kind in "SUV":
        return numpy.array([f"n{i}" for i in range(count)]).astype(kind).reshape(shape)
    numbers = numpy.random.default_rng(1).integers(0, 100, count)
    return (numbers % 2 if kind.kind == "b" else numbers).astype(kind).reshape(shape)


def elements(array: numpy.ndarray) -> bytes:
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


def expect(folder: Path, name: str, array: numpy.ndarray) -> None:
    (folder / f"{name}.elements").write_bytes(elements(array))


def write_array(folder: Path, name: str, array: numpy.ndarray, **options: object) -> None:
    chunks = (3, 2, 6)[: array.ndim]
    options.setdefault("fill_value", None if array.dtype.kind == "V" else 0)  # its own for bytes it cannot write
    made = zarr.open(str(folder / name), mode="w", shape=array.shape, chunks=chunks, dtype=array.dtype, **options)
    made[...] = array
    expect(folder, name, array)


def write_group(folder: Path, name: str, store: object, consolidated: bool) -> None:
    array = values(">i2")
    group = zarr.group(store)
    group.create_dataset("a/b", data=array, chunks=(3, 2, 6), order="F")
    group.create_dataset("text", shape=(3,), dtype=object, object_codec=VLenUTF8())[:] = numpy.array(
        list("abc"), object
    )
    group["a/b"].attrs["units"] = "K"
    if consolidated:
        zarr.consolidate_metadata(store)
    store.close()
    expect(folder, name, array)


def write(folder: Path) -> None:
    for dtype, order in itertools.product(TYPES, "CF"):
        size = "big" if dtype[0] == ">" else "little"
        name = f"type-{dtype.strip('|<>').replace('[', '-').replace(']', '')}-{size}-{order}"
        write_array(folder, name, values(dtype), order=order)
    for number, compressor in enumerate(COMPRESSORS):
        write_array(folder, f"compressor-{number}", values("<f4"), compressor=compressor)
    nested = {"dimension_separator": "/", "filters": [Shuffle(4)], "compressor": Zlib(1)}
    write_array(folder, "separator", values(">i4"), **nested)
    write_array(folder, "scalar", values("<i4", ()))
    write_array(folder, "nothing", values("<i4", (0, 5)))
    write_array(folder, "empty-chunks", numpy.zeros((11, 5), "<i4"), write_empty_chunks=False)
    for number, (dtype, fill) in enumerate(FILLS):
        options = {"shape": (8, 3), "chunks": (2, 3), "dtype": dtype, "fill_value": fill}
        made = zarr.open(str(folder / f"fill-{number}"), mode="w", **options)
        made[2:4] = values(dtype, (2, 3))
        expect(folder, f"fill-{number}", made[:])
    write_group(folder, "folder", zarr.DirectoryStore(str(folder / "folder")), consolidated=False)
    write_group(folder, "consolidated", zarr.DirectoryStore(str(folder / "consolidated")), consolidated=True)
    write_group(folder, "nested", zarr.NestedDirectoryStore(str(folder / "nested")), consolidated=True)
    write_group(folder, "archive", zarr.ZipStore(str(folder / "archive.zip"), mode="w"), consolidated=True)


def read(paths: list[str]) -> dict[str, str]:
    return {path: hashlib.sha256(elements(zarr.open(path, mode="r")[...])).hexdigest() for path in paths}


def samples(shards: list[str]) -> dict[str, object]:
    found = {}
    for shard in shards:
        group = zarr.open_group(zarr.ZipStore(shard, mode="r"), mode="r")
        data, files = group["bytes"][:].tobytes(), {name: group["files"][name][:].tolist() for name in group["files"]}
        for i, (begin, end) in enumerate(group["key"][:].tolist()):
            places = {name: of[i] for name, of in files.items()}
            found[data[begin:end].decode()] = {name: data[b:e] for name, (b, e) in places.items() if b <= e}
    content = b"".join(of[name] for _, of in sorted(found.items()) for name in sorted(of))
    return {"samples": len(found), "sha256": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    verb, words = sys.argv[1], sys.argv[2:]
    if verb == "write":
        write(Path(words[0]))
    else:
        print(json.dumps({"read": read, "samples": samples}[verb](words)))
