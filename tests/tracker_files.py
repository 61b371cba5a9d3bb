"""Reads the files that `stoker track push` writes, by the descriptions of their formats: event files of TensorBoard and
.wandb files. Checksums are checked."""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from crc import crc32c

BLOCK = 32768


def fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Number and value of the fields of a Protocol Buffers message. A fixed number is a float."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        data = message[at : at + size]
        assert len(data) == size
        at += size
        yield tag >> 3, struct.unpack({1: "<d", 5: "<f"}[kind], data)[0] if kind in (1, 5) else data


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def event_records(file: Path) -> Iterator[bytes]:
    data = file.read_bytes()
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8])
        record = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(record)
        yield record
        at += 16 + size


def scalars(file: Path) -> list[tuple[str, int, float]]:
    """Tag, step and value of all scalars of an event file."""
    found = []
    for record in event_records(file):
        event = dict(fields(record))
        for _, value in fields(event.get(5, b"")):
            parts = dict(fields(value))
            if 2 in parts:
                found.append((parts[1].decode(), event.get(2, 0), parts[2]))
    return found


def wandb_records(file: Path) -> Iterator[tuple[int, bytes]]:
    """Kind and message of the records of a .wandb file."""
    data = file.read_bytes()
    assert data[:7] == b":W&B\xe1\xbe\x00"
    at, parts = 7, b""
    while at < len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        crc, size, kind = struct.unpack_from("<IHB", data, at)
        part = data[at + 7 : at + 7 + size]
        assert crc == zlib.crc32(data[at + 6 : at + 7 + size])
        parts = part if kind in (1, 2) else parts + part
        at += 7 + size
        if kind in (1, 4):
            yield from fields(parts)


def wandb_items(message: bytes, number: int) -> dict[str, object]:
    """The items in the field `number` of a history, summary, config or stats."""
    found = {}
    for field, item in fields(message):
        if field == number:
            parts = dict(fields(item))
            found[parts[1].decode()] = json.loads(parts[16])
    return found


def wandb_rows(file: Path) -> list[dict[str, object]]:
    return [wandb_items(message, 1) for kind, message in wandb_records(file) if kind == 2]
