"""The bytes in safetensors files, read without any library."""

import json
import struct
from pathlib import Path


def tensors_of(folder: Path) -> dict[str, bytes]:
    """By file and name, all tensors below a folder; an error without any."""
    found = {}
    for file in sorted(folder.rglob("*.safetensors")):
        data = file.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        for name, entry in json.loads(data[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[f"{file.parent.name}/{file.name}/{name}"] = data[8 + length + begin : 8 + length + end]
    assert found, f"no tensors below {folder}"
    return found
