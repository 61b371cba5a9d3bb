"""stoker data lint: problems with labels."""

import json
import shutil

from packing import jpeg, make_images


def finding(stoker, source: str, rule: str) -> dict:
    found = json.loads(stoker("data", "lint", source, "--json", code=1).out)["findings"]
    (one,) = (each for each in found if each["rule"] == rule)
    return one


def test_samples_without_label_are_found_in_a_split_that_has_some(stoker, tmp_path):
    rows = [("train", "3.0"), ("train", ""), ("train", "-1"), ("test", ""), ("test", "")]
    for i in range(len(rows)):
        (tmp_path / f"{i}.jpg").write_bytes(jpeg(i))
    text = "".join(f"{i}.jpg,{label},{split}\n" for i, (split, label) in enumerate(rows))
    (tmp_path / "list.csv").write_text("path,label,split\n" + text)
    expected = {
        "rule": "no-label",
        "level": "job",
        "what": "train: 2 of 3 samples have no label",
        "evidence": [{"where": "1.jpg", "text": ""}, {"where": "2.jpg", "text": ""}],
        "cure": "label them, or move them to a separate split",
    }
    assert finding(stoker, "list.csv", "no-label") == expected
    stoker("data", "pack", "list.csv", "out", code=0)
    expected["evidence"] = [{"where": f"train: {i}.jpg", "text": ""} for i in (1, 2)]
    assert finding(stoker, "out", "no-label") == expected


def test_evidence_of_a_conflict_names_two_classes(stoker, tmp_path):
    folder = make_images(tmp_path / "in", {"a": 12, "b": 12})
    for copy in ("a/0001.jpg", "b/copy.jpg"):
        shutil.copy(folder / "a/0000.jpg", folder / copy)
    found = finding(stoker, "in", "label-conflict")
    assert found["evidence"] == [{"where": "a/0000.jpg", "text": "is also b/copy.jpg"}]


def test_evidence_of_a_leak_names_two_splits(stoker, tmp_path):
    for split in ("train", "val"):
        make_images(tmp_path / "in" / split, {"a": 12})
    folder = tmp_path / "in"
    for i in range(12):
        (folder / f"val/a/{i:04}.jpg").write_bytes(jpeg(500 + i))
    for copy in ("train/a/0001.jpg", "val/a/copy.jpg"):
        shutil.copy(folder / "train/a/0000.jpg", folder / copy)
    found = finding(stoker, "in", "split-leak")
    assert found["evidence"] == [{"where": "train/a/0000.jpg", "text": "is also val/a/copy.jpg"}]
