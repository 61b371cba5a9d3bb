"""Members of archives as libarchive reads them, through its C interface."""

import ctypes
import ctypes.util
import os
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SUPPORT = ("filter_gzip", "filter_zstd", "format_tar", "format_zip_seekable")
END, LAST_WARNING = 1, -20
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "symbolic_link",
    stat.S_IFDIR: "directory",
    stat.S_IFCHR: "character_device",
    stat.S_IFBLK: "block_device",
    stat.S_IFIFO: "fifo",
}
AT_MOST = 1 << 24  # bytes of a member


@dataclass(frozen=True)
class Member:
    name: bytes
    kind: str
    content: bytes | None  # None: not readable


@cache
def library() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("archive")
    if name is None:
        return None
    found = ctypes.CDLL(name)
    found.archive_read_new.restype = ctypes.c_void_p
    found.archive_read_data.restype = ctypes.c_ssize_t
    for text in ("pathname", "hardlink", "symlink"):
        getattr(found, f"archive_entry_{text}").restype = ctypes.c_char_p
    return found


def members(file: Path) -> list[Member] | None:
    """None if libarchive finds the archive damaged."""
    read = library()
    assert read is not None
    archive, entry, found = ctypes.c_void_p(read.archive_read_new()), ctypes.c_void_p(), []
    try:
        for name in SUPPORT:
            getattr(read, f"archive_read_support_{name}")(archive)
        read.archive_read_set_options(archive, b"!mac-ext")  # resource forks are members, too
        if read.archive_read_open_filename(archive, os.fsencode(file), ctypes.c_size_t(10240)) < LAST_WARNING:
            return None
        while (status := read.archive_read_next_header(archive, ctypes.byref(entry))) != END:
            if status < LAST_WARNING:
                return None
            found.append(_member(read, archive, entry))
        return found
    finally:
        read.archive_read_free(archive)


def _member(read: ctypes.CDLL, archive: ctypes.c_void_p, entry: ctypes.c_void_p) -> Member:
    name = read.archive_entry_pathname(entry) or b""
    if read.archive_entry_hardlink(entry) is not None:
        return Member(name, "hard_link", b"")
    kind = KINDS[read.archive_entry_filetype(entry)]
    if kind == "symbolic_link":
        return Member(name, kind, read.archive_entry_symlink(entry))
    piece, content = ctypes.create_string_buffer(1 << 16), bytearray()
    while (size := read.archive_read_data(archive, piece, ctypes.c_size_t(len(piece)))) > 0 and len(content) < AT_MOST:
        content += piece.raw[:size]
    return Member(name, kind, bytes(content) if size >= 0 else None)
