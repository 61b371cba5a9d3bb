"""The index.sqlite of Megatron-Energon has the same rows as from `energon prepare`."""

import io
import re
import sqlite3
import tarfile
import uuid
from pathlib import Path

import pytest
from packing import jpeg, make_images

# The pattern for member names in megatron/energon/flavors/webdataset.
NAME = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
FIND_SAMPLE = "SELECT tar_file_id, sample_key, sample_index, byte_offset, byte_size FROM samples WHERE sample_key = ?"
LIST_PARTS = (
    "SELECT s.sample_key || '.' || sp.part_name, sp.content_byte_size, sp.tar_file_id FROM sample_parts AS sp "
    "JOIN samples AS s ON sp.tar_file_id = s.tar_file_id AND sp.sample_index = s.sample_index "
    "ORDER BY sp.tar_file_id, sp.sample_index, sp.content_byte_offset"
)


def prepared(folder: Path) -> tuple[list[tuple], list[tuple]]:
    """The rows of both tables, by reading the shards with Python."""
    samples: list[tuple] = []
    parts: list[tuple] = []
    for number, shard in enumerate(sorted(folder.glob("*.tar"))):
        with tarfile.open(shard) as archive:
            begins: list[tuple[str, int]] = []
            for member in archive:
                match = NAME.match(member.name)
                assert match
                key, part = match.groups()
                if not begins or begins[-1][0] != key:
                    begins.append((key, member.offset))
                parts.append((number, len(begins) - 1, part, member.offset_data, member.size))
            ends = [offset for _, offset in begins[1:]] + [archive.offset]
        samples += [(number, key, i, at, ends[i] - at) for i, (key, at) in enumerate(begins)]
    return samples, parts


def database_of(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{folder}/.nv-meta/index.sqlite?mode=ro&immutable=1", uri=True)


def check(folder: Path) -> None:
    samples, parts = prepared(folder)
    database = database_of(folder)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("SELECT * FROM samples ORDER BY rowid").fetchall() == samples
    assert database.execute("SELECT * FROM sample_parts ORDER BY rowid").fetchall() == parts
    assert database.execute("SELECT sample_key FROM samples ORDER BY sample_key").fetchall() == sorted(
        ((key,) for _, key, *_ in samples), key=lambda row: row[0].encode()
    )
    for sample in samples[:: max(1, len(samples) // 50)]:
        assert database.execute(FIND_SAMPLE, (sample[1],)).fetchall() == [sample]
    by_place = {(tar, index): key for tar, key, index, *_ in samples}
    assert database.execute(LIST_PARTS).fetchall() == [
        (f"{by_place[tar, index]}.{part}", size, tar) for tar, index, part, _, size in parts
    ]
    plan = str(database.execute("EXPLAIN QUERY PLAN " + FIND_SAMPLE, ("x",)).fetchall())
    assert "USING INDEX idx_samples_sample_key" in plan
    whole = (
        "SELECT content_byte_size FROM sample_parts WHERE tar_file_id = 0 AND sample_index = 0 AND part_name = 'jpg'"
    )
    assert "USING COVERING INDEX idx_sample_parts_full" in str(
        database.execute("EXPLAIN QUERY PLAN " + whole).fetchall()
    )
    assert uuid.UUID((folder / ".nv-meta/index.uuid").read_text()).version == 8
    assert not list(folder.glob(".nv-meta/*.part"))


def test_database_matches_energon_prepare(stoker, tmp_path):
    make_images(tmp_path / "in", {"cat": 250, "dog": 150})
    for i in range(0, 250, 3):
        (tmp_path / f"in/cat/{i:04}.JSON").write_text("{}")
    stoker("data", "pack", "in", "out", "--shards", "3", "--labels", "cls", code=0)
    done = stoker("data", "index", "out", "--export", "energon", code=0)
    assert ".nv-meta/index.sqlite" in done.out and "not written" not in done.out
    check(tmp_path / "out")
    before = (tmp_path / "out/.nv-meta/index.sqlite").read_bytes()
    stoker("data", "index", "out", "--export", "energon", code=0)
    assert (tmp_path / "out/.nv-meta/index.sqlite").read_bytes() == before


@pytest.mark.parametrize("samples", [1, 700])
def test_long_keys_make_a_valid_database(stoker, tmp_path, samples):
    (tmp_path / "in").mkdir()
    folder = "/".join("x" * 200 for _ in range(19))
    with tarfile.open(tmp_path / "in/train-000000.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for i in range(samples):
            for extension in ("B.Txt", "a.txt"):
                member = tarfile.TarInfo(f"{folder}/é{i * 7919 % samples:04}.{extension}")
                member.size = i % 3
                archive.addfile(member, io.BytesIO(bytes(member.size)))
    stoker("data", "index", "in", "--export", "energon", code=0)
    check(tmp_path / "in")


def test_duplicate_keys_skip_the_database_with_a_note(stoker, tmp_path):
    for split in ("train", "val"):
        make_images(tmp_path / "in" / split, {"cat": 3})
    stoker("data", "pack", "in", "out", "--labels", "cls", code=0)
    done = stoker("data", "index", "out", "--export", "energon", code=0)
    assert done.out.endswith(
        "  .nv-meta/index.sqlite was not written: two samples have the key 'cat/0000', and it finds samples by key\n"
    )
    assert sorted(path.name for path in (tmp_path / "out/.nv-meta").iterdir()) == [
        ".info.json",
        ".info.yaml",
        "dataset.yaml",
        "split.yaml",
    ]


def test_key_longer_than_a_page_is_found(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    with tarfile.open(tmp_path / "in/train-000000.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("x" * 4090 + ".jpg")
        content = jpeg(1)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    stoker("data", "index", "in", "--export", "energon", code=0)
    check(tmp_path / "in")


def test_interrupted_export_leaves_no_database(stoker, tmp_path):
    make_images(tmp_path / "in", {"cat": 3})
    stoker("data", "pack", "in", "out", "--labels", "cls", code=0)
    (tmp_path / "out/.nv-meta").mkdir()
    (tmp_path / "out/.nv-meta/index.sqlite.part").write_text("left by a crash")
    stoker("data", "index", "out", "--export", "energon", code=0)
    check(tmp_path / "out")
