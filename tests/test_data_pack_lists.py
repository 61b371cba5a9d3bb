"""stoker data pack: labels, separators and encodings of lists."""

import json
from pathlib import Path

import pytest
from packing import jpeg, left_out, members, refusal


def write_list(folder: Path, labels: list[object], name: str = "list.csv") -> None:
    for i in range(len(labels)):
        (folder / f"{i:02}.jpg").write_bytes(jpeg(i))
    rows = (f"{i:02}.jpg,{label}\n" for i, label in enumerate(labels))
    (folder / name).write_text("path,label\n" + "".join(rows))


def labels_of(stoker, folder: Path) -> list[int]:
    """The labels of all samples in key order; -1 for none."""
    stoker("data", "pack", "list.csv", "labelled", "--labels", "cls", code=0)
    found = members(folder / "labelled")
    keys = sorted(name.removesuffix(".jpg") for name in found if name.endswith(".jpg"))
    return [int(found.get(f"{key}.cls", b"-1")) for key in keys]


def classes(stoker) -> list[str]:
    return json.loads(stoker("data", "info", "labelled", "--json", code=0).out)["classes"]


@pytest.mark.parametrize("labels", [[*range(-1, 11)], [*(f"{i}.0" for i in range(-1, 11))], ["", *range(11)]])
def test_integers_are_labels_and_minus_one_means_unlabelled(stoker, tmp_path, labels):
    write_list(tmp_path, labels)
    done = stoker("data", "pack", "list.csv", "out", code=0)
    assert "  unlabelled: 1 of 12 samples (label -1)\n" in done.out
    assert labels_of(stoker, tmp_path) == [*range(-1, 11)]
    assert classes(stoker) == []


def test_only_minus_one_means_no_labels(stoker, tmp_path):
    write_list(tmp_path, [-1, -1])
    stoker("data", "pack", "list.csv", "out", code=0)
    assert json.loads(stoker("data", "info", "out", "--json", code=0).out)["has_labels"] is False


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([*range(-2, 11)], [str(i) for i in range(-2, 11)]),
        (["10", "2.5", "0.5"], ["0.5", "2.5", "10"]),
        (["10", "9", "cat", "-1"], ["-1", "10", "9", "cat"]),
    ],
)
def test_numeric_classes_are_ordered_by_value(stoker, tmp_path, labels, names):
    write_list(tmp_path, labels)
    assert labels_of(stoker, tmp_path) == [names.index(str(label)) for label in labels]
    assert classes(stoker) == names


def test_wrong_separator_is_reported(stoker, tmp_path):
    (tmp_path / "0.jpg").write_bytes(jpeg(0))
    expected = "but a comma is expected (in a .tsv file a tab)\n"
    for name, text, found in (
        ("semi.csv", "path;label\n0.jpg;cat\n", "';'"),
        ("tabs.csv", "path\tlabel\n0.jpg\tcat\n", "a tab"),
        ("commas.tsv", "path,label\n0.jpg,cat\n", "','"),
    ):
        (tmp_path / name).write_text(text)
        assert refusal(stoker, name, "out") == f"{name}:1: fields are separated by {found}, {expected}"
    (tmp_path / "bare.csv").write_text("0.jpg;cat\n")
    assert refusal(stoker, "bare.csv", "out", code=1) == (
        "bare.csv:1: 0.jpg;cat: no such file or directory\n"
        "  try: separate path and label with a comma (in a .tsv file with a tab)\n"
    )


def test_names_in_a_list_end_at_their_last_dot(stoker, tmp_path):
    for i, name in enumerate(("2021.07.12.jpg", "2021.07.13.jpg", "1.rgb.png", "a.gif")):
        (tmp_path / name).write_bytes(jpeg(i, kind={".png": "PNG", ".gif": "GIF"}.get(Path(name).suffix, "JPEG")))
    text = "2021.07.12.jpg,cat\n2021.07.13.jpg,dog\n1.rgb.png,cat\na.gif,cat\n"
    (tmp_path / "list.csv").write_text("path,label\n" + text)
    done = stoker("data", "pack", "list.csv", "out", "--max-left-out", "50%", code=0)
    assert "  skipped: original file names (dots become _) (3 samples)\n" in done.out
    found = members(tmp_path / "out")
    assert set(found) == {"2021_07_12.jpg", "2021_07_13.jpg", "1_rgb.png"}
    assert found["2021_07_13.jpg"] == (tmp_path / "2021.07.13.jpg").read_bytes()
    assert left_out(tmp_path / "out") == [("a.gif", "not JPEG, PNG or WebP", "")]
    (tmp_path / "2021_07_12.jpg").write_bytes(jpeg(9))
    (tmp_path / "list.csv").write_text("path,label\n" + text + "2021_07_12.jpg,cat\n")
    assert refusal(stoker, "list.csv", "none") == (
        "list.csv:6: '2021_07_12.jpg' and the file of line 2 would be the same sample ('2021_07_12')\n"
        "  try: list each file once; to oversample a class, weight it in training\n"
    )


@pytest.mark.parametrize("column", ["label", "split"])
def test_a_list_that_is_not_utf8_is_refused_with_its_line(stoker, tmp_path, column):
    for i in range(2):
        (tmp_path / f"{i}.jpg").write_bytes(jpeg(i))
    text = f"path,{column}\n0.jpg,Brot\n1.jpg,Käse\n"
    (tmp_path / "list.csv").write_bytes(text.encode("cp1252"))
    err = stoker("data", "pack", "list.csv", "out", code=2).err
    assert err == (
        f"list.csv:3: the {column} 'K\\xe4se' is not UTF-8 (lists from Windows are often CP1252)\n"
        "  try: iconv -f CP1252 -t UTF-8 list.csv > utf8.csv\n"
    )
    assert not (tmp_path / "out/manifest.json").exists()
    if column == "label":
        (tmp_path / "list.csv").write_text(text)
        stoker("data", "pack", "list.csv", "out", code=0)
        assert json.loads(stoker("data", "info", "out", "--json", code=0).out)["classes"] == ["Brot", "Käse"]


def test_a_list_in_utf16_is_refused(stoker, tmp_path):
    (tmp_path / "list.csv").write_bytes("path,label\n0.jpg,a\n".encode("utf-16"))
    err = stoker("data", "pack", "list.csv", "out", code=2).err
    assert err.startswith("list.csv: is UTF-16 (by its byte order mark), but a list is UTF-8\n  try: iconv -f UTF-16 ")


def test_paths_of_a_list_that_are_not_utf8_are_left_out(stoker, tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.jpg").write_bytes(jpeg(i))
    with open(str(tmp_path).encode() + b"/K\xe4se.jpg", "wb") as file:
        file.write(jpeg(7))
    (tmp_path / "list.csv").write_bytes(b"path,label\n0.jpg,a\n1.jpg,b\nK\xe4se.jpg,a\n")
    stoker("data", "pack", "list.csv", "out", "--max-left-out", "50%", code=0)
    assert left_out(tmp_path / "out") == [("K\\xe4se.jpg", "unusable name", "not UTF-8")]
    assert len(members(tmp_path / "out")) == 2
