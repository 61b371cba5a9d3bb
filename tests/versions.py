"""Computes a dataset's version and content from manifest and index (docs/formats/manifest.md)."""

import hashlib
import struct


def version_of(manifest: dict) -> str:
    named = lambda text: f"{len(text.encode())}:{text}"  # noqa: E731
    schema = manifest["schema"]
    lines = ["stoker-dataset-1", f"container {named(schema['container'])}", f"components {len(schema['components'])}"]
    lines += [f"{named(part['name'])} {part['kind']}" for part in schema["components"]]
    lines += [
        f"labels {schema['labels'] or 'none'}",
        f"classes {len(schema['classes'])}",
        *map(named, schema["classes"]),
    ]
    if "blocks-crc32c" in manifest["incompatible_features"]:
        lines += ["blocks crc32c"]
    if "index-content" in manifest["incompatible_features"]:
        lines += [f"content {manifest['index']['content']}"]
    lines += [f"splits {len(manifest['splits'])}"]
    for split in manifest["splits"]:
        lines += [f"{named(split['name'])} {len(split['shards'])}"]
        lines += [shard["sha256"] for shard in split["shards"]]
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def content_of(index: bytes) -> str:
    """Of an index.bin."""
    content = hashlib.sha256()
    (sections,) = struct.unpack_from("<I", index, 20)
    for entry in range(sections):
        begin, size = struct.unpack_from("<QQ", index, 64 + 64 * entry)
        add_section(content, index[begin : begin + size])
    return content.hexdigest()


def add_section(content, section: bytes) -> None:
    (count,) = struct.unpack_from("<H", section, 6)
    (samples,) = struct.unpack_from("<Q", section, 8)
    columns = {}
    for i in range(count):
        tag, begin, size = struct.unpack_from("<H6xQQ", section, 72 + 24 * i)
        columns[tag] = section[begin : begin + size]
    names, at = [], 0
    while at < len(columns[1]):
        (length,) = struct.unpack_from("<H", columns[1], at)
        names.append(columns[1][at + 2 : at + 2 + length])
        at += 2 + length
    firsts = struct.unpack(f"<{samples + 1}I", columns[2])
    keys = struct.unpack(f"<{samples + 1}I", columns[5])
    labels = struct.unpack(f"<{samples}q", columns[4]) if 4 in columns else [-1] * samples
    content.update(struct.pack("<Q", samples))
    for i in range(samples):
        key = columns[6][keys[i] : keys[i + 1]]
        content.update(struct.pack("<I", len(key)) + key + struct.pack("<qI", labels[i], firsts[i + 1] - firsts[i]))
        for which in range(firsts[i], firsts[i + 1]):
            _, packed, crc = struct.unpack_from("<QQI", columns[3], 20 * which)
            name = names[packed >> 48]
            content.update(struct.pack("<H", len(name)) + name + struct.pack("<QI", packed & (1 << 48) - 1, crc))


def without_content(manifest: dict) -> dict:
    """The manifest as written by a release without content hashes."""
    features = [feature for feature in manifest["incompatible_features"] if feature != "index-content"]
    index = {name: value for name, value in manifest["index"].items() if name != "content"}
    old = manifest | {"incompatible_features": features, "index": index}
    return old | {"version": version_of(old)}
