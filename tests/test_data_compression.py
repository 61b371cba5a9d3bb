"""stoker data pack --compression auto: measures the savings and costs of compression; shards are unchanged."""

import json
import random

import packing


def test_photographs_are_compressed_already(stoker):
    packing.make_images(stoker.folder / "images", {"cat": 30, "dog": 30})
    done = stoker("data", "pack", "images", "packed", "--compression", "auto", code=0)
    assert "\nCOMPRESSION   RATIO   WRITE MB/S   READ MB/S\n" in done.out
    assert "\nnone           1.00 " in done.out and "\nzstd 3 " in done.out and "\ngzip 6 " in done.out
    # Such small ones have much in common; each by itself has nothing.
    assert "\n  compression none: " in done.out and "(zstd 3: jpg " in done.out
    stoker("data", "pack", "images", "plain", code=0)
    assert packing.tree(stoker.folder / "packed") == packing.tree(stoker.folder / "plain")


def test_kinds_count_by_their_share_of_the_source(stoker):
    folder = stoker.folder / "notes"
    folder.mkdir()
    for i in range(40):
        (folder / f"{i}.bin").write_bytes(random.Random(i).randbytes(30_000))
        (folder / f"{i}.json").write_text(json.dumps({"words": ["a", "b"] * 1250}))
    done = stoker("data", "pack", "notes", "packed", "--layout", "files", "--compression", "auto", "--json", code=0)
    report = json.loads(done.out)["compression"]
    assert report["verdict"] == "none" and 1_000_000 < report["sampled_bytes"] < 2_000_000
    kinds = {kind["extension"]: kind for kind in report["kinds"]}
    assert kinds["bin"]["ratio"] > 0.99 and kinds["json"]["ratio"] < 0.01
    assert 0.7 < kinds["bin"]["share"] < 0.75 and abs(kinds["bin"]["share"] + kinds["json"]["share"] - 1) < 1e-9
    trials = {trial["name"]: trial for trial in report["trials"]}
    assert list(trials) == ["none", "zstd 1", "zstd 3", "zstd 9", "gzip 6"] and trials["none"]["ratio"] == 1
    assert abs(trials["zstd 3"]["ratio"] - kinds["bin"]["share"] * kinds["bin"]["ratio"]) < 0.01
    assert all(trial["write_mb_s"] > 1 and trial["read_mb_s"] > 1 for trial in trials.values())
    assert "would reach 0.7" in report["why"] and "reading a sample of 42.5 kB would unpack a block" in report["why"]


def test_a_source_without_bytes_and_unknown_words(stoker):
    folder = stoker.folder / "empty"
    folder.mkdir()
    (folder / "1.txt").write_text("")
    done = stoker("data", "pack", "empty", "out", "--layout", "files", "--compression", "auto", code=0)
    assert "\n  compression none: there is no data to measure\n" in done.out
    bad = stoker("data", "pack", "empty", "out2", "--compression", "zstd", code=2)
    assert bad.err.startswith("data pack: --compression: unknown value 'zstd'")


def test_convert_tries_it_too(stoker):
    packing.make_images(stoker.folder / "images", {"cat": 10})
    stoker("data", "pack", "images", "packed", code=0)
    done = stoker("data", "convert", "packed", "out", "--format", "zarr", "--compression", "auto", "--json", code=0)
    assert [kind["extension"] for kind in json.loads(done.out)["compression"]["kinds"]] == ["jpg"]
    plain = stoker("data", "convert", "packed", "other", "--format", "zarr", "--json", code=0)
    assert json.loads(plain.out)["compression"] is None
