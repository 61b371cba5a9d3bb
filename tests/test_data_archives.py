"""stoker data pack: archives that are wrong or hostile."""

import bz2
import gzip
import io
import json
import lzma
import resource
import struct
import subprocess
import tarfile
import zipfile
import zlib

import pytest
from packing import jpeg, left_out, members, refusal


def tar_of(*entries: tuple[tarfile.TarInfo, bytes], end: bool = True) -> bytes:
    data = io.BytesIO()
    archive = tarfile.TarFile(fileobj=data, mode="w")
    for info, content in entries:
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    if end:
        archive.close()
    return data.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_unsafe_members_are_skipped_and_listed(stoker, tmp_path):
    good = [(member(f"./cat/{i}.jpg"), jpeg(i)) for i in range(9)]
    bad = [
        (member("../evil.jpg"), jpeg(20)),
        (member("cat/../../evil.jpg"), jpeg(21)),
        (member("/etc/evil.jpg"), jpeg(22)),
        (member("cat//x.jpg"), jpeg(23)),
        (member("cat/link.jpg", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (member("cat/hard.jpg", tarfile.LNKTYPE, "cat/none.jpg"), b""),
        (member("cat/harder.jpg", tarfile.LNKTYPE, "../evil.jpg"), b""),
        (member("/etc/hard.jpg", tarfile.LNKTYPE, "cat/0.jpg"), b""),
        (member("cat/fifo.jpg", tarfile.FIFOTYPE), b""),
        (member("cat/null.jpg", tarfile.CHRTYPE), b""),
        (member("cat/\x1b[2J.jpg"), jpeg(24)),
    ]
    (tmp_path / "in.tar").write_bytes(tar_of(*good, *bad))
    stoker("data", "pack", "in.tar", "out", "--max-left-out", "60%", code=0)
    assert set(members(tmp_path / "out")) == {f"cat/{i}.jpg" for i in range(9)}
    assert left_out(tmp_path / "out") == [
        ("../evil.jpg", "unsafe member", "'..' in the name"),
        ("/etc/evil.jpg", "unsafe member", "absolute name"),
        ("/etc/hard.jpg", "unsafe member", "absolute name"),
        ("cat/../../evil.jpg", "unsafe member", "'..' in the name"),
        ("cat//x.jpg", "unsafe member", "empty or '.' part in the name"),
        ("cat/\\x1b[2J.jpg", "unsafe member", "control byte or invalid UTF-8 in the name"),
        ("cat/fifo.jpg", "not a file", "a pipe"),
        ("cat/hard.jpg", "not a file", "a hard link to a missing member"),
        ("cat/harder.jpg", "not a file", "a hard link to a missing member"),
        ("cat/link.jpg", "not a file", "a symbolic link"),
        ("cat/null.jpg", "not a file", "a device"),
    ]
    assert not (tmp_path.parent / "evil.jpg").exists()


def test_hard_links_in_a_tar_are_the_files_they_lead_to(stoker, tmp_path):
    for kind in ("cat", "dog"):
        (tmp_path / "in" / kind).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "in" / kind / f"{i}.jpg").write_bytes(jpeg(ord(kind[0]) + i))
    (tmp_path / "in/dog/same.jpg").hardlink_to(tmp_path / "in/cat/1.jpg")
    subprocess.run(["tar", "-C", tmp_path, "-cf", tmp_path / "in.tar", "in/cat", "in/dog"], check=True)
    with tarfile.open(tmp_path / "in.tar") as archive:
        assert sum(found.islnk() for found in archive) == 1
    stoker("data", "pack", "in.tar", "a", "--shards", "1", code=0)
    subprocess.run(
        ["tar", "--hard-dereference", "-C", tmp_path, "-cf", tmp_path / "in.tar", "in/cat", "in/dog"], check=True
    )
    stoker("data", "pack", "in.tar", "b", "--shards", "1", code=0)
    assert members(tmp_path / "a") == members(tmp_path / "b") and len(members(tmp_path / "a")) == 7


def test_damaged_tars_are_rejected(stoker, tmp_path):
    def error_of(data: bytes, code: int) -> str:
        (tmp_path / "in.tar").write_bytes(data)
        return refusal(stoker, "in.tar", "out", code=code)

    two = [(member("cat/1.jpg"), jpeg(1)), (member("./cat/1.jpg"), jpeg(2))]
    assert error_of(tar_of(*two), 2) == "in.tar: member 'cat/1.jpg' appears twice\n"
    assert (
        error_of(tar_of(*two[:1], end=False), 1)
        == "in.tar: has no end-of-archive marker: its last members may be missing\n"
    )
    whole = tar_of((member("cat/1.jpg"), jpeg(1, (64, 64))))
    assert error_of(whole[:2048], 1).startswith("in.tar: byte 0: member 'cat/1.jpg' of ")
    assert error_of(b"", 1) == "in.tar: has no end-of-archive marker: its last members may be missing\n"
    assert error_of(bytes(10240), 2) == "in.tar: no images (JPEG, PNG or WebP by their extension)\n"


def test_members_behind_a_lone_zero_block_are_packed_with_a_note(stoker, tmp_path):
    first, second = (tar_of((member(f"cat/{i}.jpg"), jpeg(i))) for i in (1, 2))
    end = 512 + -(-len(jpeg(1)) // 512) * 512
    (tmp_path / "in.tar").write_bytes(first[: end + 512] + second)
    done = stoker("data", "pack", "in.tar", "out", "--json", code=0)
    assert json.loads(done.out)["notes"] == [
        f"a lone zero block at byte {end} precedes more members: GNU tar lists them with --ignore-zeros"
    ]
    assert members(tmp_path / "out") == {"cat/1.jpg": jpeg(1), "cat/2.jpg": jpeg(2)}
    listed = subprocess.run(["tar", "--ignore-zeros", "-tf", tmp_path / "in.tar"], check=True, capture_output=True)
    assert listed.stdout == b"cat/1.jpg\ncat/2.jpg\n"
    (tmp_path / "in.tar").write_bytes(first[: end + 512])
    assert (
        refusal(stoker, "in.tar", "none", code=1)
        == "in.tar: has no end-of-archive marker: its last members may be missing\n"
    )


@pytest.mark.parametrize(
    ("name", "data", "program", "command"),
    [
        ("in.tar.bz2", bz2.compress(bytes(10240)), "bzip2", "bzip2 -dc"),
        ("in.tar.xz", lzma.compress(bytes(10240)), "xz", "xz -dc"),
        ("in.tar.lzma", lzma.compress(bytes(10240), lzma.FORMAT_ALONE), "lzma", "xz -dc"),
        ("in.tar.Z", b"\x1f\x9d\x90" + bytes(100), "compress", "gzip -dc"),
        ("in.tar.lz", b"LZIP\x01\x0c" + bytes(100), "lzip", "lzip -dc"),
        ("in.tar.lzo", b"\x89LZO\x00\r\n\x1a\n" + bytes(100), "lzop", "lzop -dc"),
        ("in.tar.lz4", b"\x04\x22\x4d\x18" + bytes(100), "lz4", "lz4 -dc"),
        ("in.tar.lz4", b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    ],
)
def test_a_tar_with_an_unsupported_compression_is_rejected(stoker, tmp_path, name, data, program, command):
    (tmp_path / name).write_bytes(data)
    assert refusal(stoker, name, "out") == (
        f"{name}: is compressed with {program}, but only gzip and zstd are supported\n"
        f"  try: {command} {name} | zstd -T0 > in.tar.zst\n"
    )


@pytest.mark.parametrize("name", ["x.tar", "x.tfrecord"])
def test_a_shard_of_a_folder_with_an_unsupported_compression_is_rejected(stoker, tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(bz2.compress(bytes(10240)))
    assert refusal(stoker, "in", "out") == (
        f"in/{name}: is compressed with bzip2, but only gzip and zstd are supported\n"
        f"  try: bzip2 -dc in/{name} | zstd -T0 > in/x.zst\n"
    )


def skippable(content: bytes, kind: int = 0) -> bytes:
    """A frame that decompressors skip; pzstd writes one before each frame of data."""
    return struct.pack("<II", 0x184D2A50 + kind, len(content)) + content


def test_a_zstd_tar_with_skippable_frames_is_read(stoker, tmp_path):
    data = tar_of(*[(member(f"cat/{i}.jpg"), jpeg(i)) for i in range(4)])
    parts = [
        subprocess.run(["zstd", "-qc"], input=part, check=True, capture_output=True).stdout
        for part in (data[:3000], data[3000:])
    ]
    packed = b"".join(skippable(struct.pack("<I", len(part))) + part for part in parts) + skippable(b"", 15)
    (tmp_path / "in.tar.zst").write_bytes(packed)
    stoker("data", "pack", "in.tar.zst", "out", code=0)
    assert members(tmp_path / "out") == {f"cat/{i}.jpg": jpeg(i) for i in range(4)}
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/a.tar.zst").write_bytes(packed)
    stoker("data", "convert", "shards", "converted", "--format", "tar", code=0)
    assert set(members(tmp_path / "converted").values()) == {jpeg(i) for i in range(4)}
    torn = packed + struct.pack("<II", 0x184D2A50, 1 << 31)
    (tmp_path / "in.tar.zst").write_bytes(torn)
    assert (
        refusal(stoker, "in.tar.zst", "none", code=1)
        == f"in.tar.zst: ends inside a zstd frame, which begins at byte {len(packed)}\n"
    )


def test_bytes_after_a_gzip_tar_are_rejected_unless_they_are_zeros(stoker, tmp_path):
    packed = gzip.compress(tar_of((member("cat/1.jpg"), jpeg(1))))
    (tmp_path / "in.tgz").write_bytes(packed + bytes(1000))
    stoker("data", "pack", "in.tgz", "out", code=0)
    (tmp_path / "in.tgz").write_bytes(packed + b"This is text")
    cure = f"head -c {len(packed)} in.tgz > whole-in.tgz"
    assert refusal(stoker, "in.tgz", "none", code=1) == (
        f"in.tgz: 12 bytes after the end of the gzip data at byte {len(packed)}\n  try: {cure}\n"
    )
    subprocess.run(cure, shell=True, check=True, cwd=tmp_path)
    stoker("data", "pack", "whole-in.tgz", "whole", code=0)
    assert members(tmp_path / "whole") == members(tmp_path / "out") == {"cat/1.jpg": jpeg(1)}


def zip_of(names: list[str], content: bytes = b"x" * 10, method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name in names:
            archive.writestr(name, content)
    return bytearray(data.getvalue())


def test_zip_bombs_and_damaged_zips_are_rejected(stoker, tmp_path):
    def error_of(data: bytes, code: int = 1) -> str:
        (tmp_path / "in.zip").write_bytes(data)
        return refusal(stoker, "in.zip", "out", code=code)

    data = zip_of(["cat/1.jpg"])
    directory = data.rindex(b"PK\x01\x02")
    lie = bytearray(data)
    lie[directory + 24 : directory + 28] = struct.pack("<I", 1 << 30)
    assert error_of(lie) == (
        "in.zip: member 'cat/1.jpg': claims 1073741824 bytes of 5 compressed ones, more than 1032 to 1\n"
    )
    two = zip_of(["cat/1.jpg", "cat/2.jpg"])
    second = two.rindex(b"PK\x01\x02")
    two[second + 42 : second + 46] = struct.pack("<I", 0)
    assert error_of(two) == "in.zip: members 'cat/1.jpg' and 'cat/2.jpg' overlap\n"
    assert error_of(data[:-30]) == "in.zip: has no directory at its end: truncated, or not a zip archive\n"
    twice = zip_of(["cat/1.jpg", "cat/2.jpg"])
    twice = bytes(twice).replace(b"cat/2.jpg", b"cat/1.jpg")
    assert error_of(twice, code=2) == "in.zip: member 'cat/1.jpg' appears twice\n"
    (tmp_path / "photos.zip").write_bytes(zip_of(["cat/1.jpg"], jpeg(1)))
    broken = bytearray((tmp_path / "photos.zip").read_bytes())
    broken[60] ^= 0x40
    (tmp_path / "photos.zip").write_bytes(broken)
    done = stoker("data", "pack", "photos.zip", "out", code=1)
    assert done.err in (
        "photos.zip: member 'cat/1.jpg': CRC-32 is wrong\n",
        "photos.zip: member 'cat/1.jpg': compressed data is damaged\n",
    )
    assert not (tmp_path / "out").exists()


def test_a_zip_behind_other_bytes_is_read(stoker, tmp_path):
    archive = zip_of(["cat/1.jpg", "cat/2.jpg"], jpeg(1))
    for name, before in (("in.zip", b"\0" * 511), ("in.exe", b"#!/bin/sh\n" * 9), ("twice.zip", archive)):
        (tmp_path / name).write_bytes(before + archive)
        stoker("data", "pack", name, f"out-{name}", code=0)
        assert members(tmp_path / f"out-{name}") == {"cat/1.jpg": jpeg(1), "cat/2.jpg": jpeg(1)}
    end = archive.rindex(b"PK\x05\x06")
    archive[end + 16 : end + 20] = struct.pack("<I", end)  # its directory would begin at its end
    (tmp_path / "in.zip").write_bytes(b"\0" * 511 + archive)
    assert refusal(stoker, "in.zip", "none", code=1) == "in.zip: its directory ends at member 1 of 2\n"
    archive[end + 16 : end + 20] = struct.pack("<I", end + 512)
    (tmp_path / "in.zip").write_bytes(b"\0" * 511 + archive)
    assert refusal(stoker, "in.zip", "none", code=1) == "in.zip: its directory reaches beyond the end\n"


def zip64_of(names: list[str], content: bytes, volumes: int = 1) -> bytes:
    """An archive whose usual end record has only markers, as some writers leave them."""
    data = zip_of(names, content)
    end = data.rindex(b"PK\x05\x06")
    size, offset = struct.unpack("<II", data[end + 12 : end + 20])
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, len(names), len(names), size, offset)
    locator = struct.pack("<IIQI", 0x07064B50, 0, end, volumes)
    return bytes(data[:end]) + record + locator + b"PK\x05\x06" + b"\xff" * 16 + bytes(2)


def test_a_zip_with_all_numbers_in_its_zip64_record_is_read(stoker, tmp_path):
    (tmp_path / "in.zip").write_bytes(zip64_of(["cat/1.jpg"], jpeg(1)))
    stoker("data", "pack", "in.zip", "out", code=0)
    assert members(tmp_path / "out") == {"cat/1.jpg": jpeg(1)}
    (tmp_path / "in.zip").write_bytes(zip64_of(["cat/1.jpg"], jpeg(1), volumes=2))
    assert refusal(stoker, "in.zip", "none") == "in.zip: is one of several volumes, which is not supported\n"


def test_names_in_a_zip_come_from_its_unicode_path_field(stoker, tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for name, of, other in (("1.jpg", b"cat/1.jpg", "ä.jpg"), ("2.jpg", b"before/2.jpg", "ö.jpg")):
            info = zipfile.ZipInfo(f"cat/{name}")
            text = f"cat/{other}".encode()
            info.extra = struct.pack("<HHBI", 0x7075, 5 + len(text), 1, zlib.crc32(of)) + text
            archive.writestr(info, jpeg(1))
    stoker("data", "pack", "in.zip", "out", code=0)
    assert set(members(tmp_path / "out")) == {"cat/ä.jpg", "cat/2.jpg"}


def test_unsafe_members_of_a_zip_are_left_out(stoker, tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("cat/1.jpg", jpeg(1))
        archive.writestr("../evil.jpg", jpeg(2))
        link = zipfile.ZipInfo("cat/link.jpg")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    stoker("data", "pack", "in.zip", "out", "--max-left-out", "70%", code=0)
    assert left_out(tmp_path / "out") == [
        ("../evil.jpg", "unsafe member", "'..' in the name"),
        ("cat/link.jpg", "not a file", "a symbolic link"),
    ]


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_members_in_folders_without_end_cost_no_memory(stoker, tmp_path, kind):
    names = ["a/" * 1900 + f"{i}.jpg" for i in range(300)]  # each of whose folders would be kept, with its path
    if kind == "tar":
        (tmp_path / "in.tar").write_bytes(tar_of(*[(member(name), b"") for name in names]))
    else:
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
            for name in names:
                archive.writestr(name, b"")
    limit = (768 << 20, 768 << 20)
    done = stoker(
        "data", "pack", f"in.{kind}", "out", code=2, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit)
    )
    assert done.err.startswith(f"in.{kind}: member 'a/a/") and done.err.endswith("' is more than 64 folders deep\n")
