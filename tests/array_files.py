"""Shared by the tests of datasets in HDF5 and Zarr: shards read by the original libraries, and foreign files."""

from pathlib import Path

import h5py
import numpy
import zarr


def opened(file: Path):
    if file.suffix == ".hdf5":
        return h5py.File(file)
    return zarr.open_group(zarr.storage.ZipStore(file, mode="r"), mode="r")


def samples(group) -> dict[str, dict]:
    """Reads them according to docs/formats/sample-arrays.md."""
    data, found = group["bytes"], {}
    files = {name: group["files"][name][:] for name in group["files"]}
    for i, (begin, end) in enumerate(group["key"][:].tolist()):
        sample = {"label": int(group["label"][i])} if "label" in group else {}
        for name, places in files.items():
            first, last = places[i].tolist()
            if first <= last:
                sample[name] = bytes(data[first:last])
        found[bytes(data[begin:end]).decode()] = sample
    return found


def all_samples(dataset: Path) -> dict[str, dict]:
    found = {}
    for shard in sorted([*dataset.glob("*.hdf5"), *dataset.glob("*.zarr.zip")]):
        found |= samples(opened(shard))
    return found


def write_zarr(file: Path, kind: str, packed: bool, arrays: dict[str, numpy.ndarray]) -> None:
    """Offsets and labels compressed, as zarr-python does by default; `bytes` only if `packed`."""
    store = zarr.storage.ZipStore(file, mode="w")
    group = zarr.create_group(store, zarr_format=2 if kind == "zarr 2" else 3)
    for name, array in arrays.items():
        options = {"compressors": "auto" if packed or name != "bytes" else None, "chunks": array.shape}
        if kind == "zarr in shards" and name == "bytes":
            options |= {"chunks": (1000,), "shards": (-(-len(array) // 1000) * 1000,)}
        made = group.create_array(name, shape=array.shape, dtype=array.dtype, **options)
        made[:] = array
    store.close()
