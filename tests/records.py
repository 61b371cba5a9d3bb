"""Writes TFRecord files of tf.train.Example records, as TensorFlow does."""

import struct
from pathlib import Path

from crc import crc32c
from packing import jpeg


def varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def feature(value: bytes | str | int | float | list) -> bytes:
    """A tf.train.Feature. Whole numbers are written one by one, as older protocol buffers do."""
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], int):
        return field(3, b"".join(bytes([8]) + varint(v) for v in values))
    if isinstance(values[0], float):
        return field(2, field(1, b"".join(struct.pack("<f", v) for v in values)))
    return field(1, b"".join(field(1, v.encode() if isinstance(v, str) else v) for v in values))


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(example: dict) -> bytes:
    entries = b"".join(field(1, field(1, name.encode()) + field(2, feature(v))) for name, v in example.items())
    message = field(1, entries)
    length = struct.pack("<Q", len(message))
    return length + masked(length) + message + masked(message)


def imagenet(number: int) -> dict:
    """Like the records of TensorFlow's build_imagenet_data.py."""
    return {
        "image/height": 12,
        "image/width": 16,
        "image/colorspace": "RGB",
        "image/class/label": number % 3 + 1,
        "image/class/synset": "n0000000" + str(number % 3),
        "image/object/bbox/xmin": [0.25, 0.5],
        "image/object/bbox/label": [1, 1],
        "image/filename": f"n0000000{number % 3}_{number}.JPEG",
        "image/encoded": jpeg(number),
    }


def write_records(folder: Path, files: dict[str, list[dict]]) -> None:
    folder.mkdir()
    for name, examples in files.items():
        (folder / name).write_bytes(b"".join(map(record, examples)))
