"""stoker data lint: photographs as cameras write them."""

import json

import pytest
from PIL import Image

ORIENTATION = 0x0112


def photograph(path, size: tuple[int, int], orientation: int | None = None, **options) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if orientation is not None:
        options["exif"] = Image.Exif()
        options["exif"][ORIENTATION] = orientation
    Image.linear_gradient("L").resize(size).convert("RGB").save(path, **options)


def findings(stoker, *words) -> dict[str, dict]:
    done = json.loads(stoker("data", "lint", *words, "--json", code=0).out)
    return {each["rule"]: each for each in done["findings"]}


@pytest.mark.parametrize("packed", [False, True])
def test_images_rotated_by_exif_only_are_found(stoker, tmp_path, packed):
    for i, (kind, orientation) in enumerate(
        [("jpg", 6), ("png", 8), ("webp", 3), ("jpg", 1), ("jpg", None), ("png", None), ("webp", None)]
    ):
        photograph(tmp_path / f"photos/cat/{i}.{kind}", (40 + i, 30), orientation)
    if packed:
        stoker("data", "pack", "photos", "out", code=0)
    found = findings(stoker, "out" if packed else "photos")["exif-rotation"]
    assert found["level"] == "advice"
    assert found["what"] == "3 images are rotated by EXIF only, which the loader ignores, as torchvision does"
    names = [f"cat/{i}.{kind}" for i, kind in enumerate(("jpg", "png", "webp"))]
    prefix = "all: " if packed else ""
    assert [(each["where"], each["text"]) for each in found["evidence"]] == [
        (prefix + name, f"orientation {value}") for name, value in zip(names, (6, 8, 3), strict=True)
    ]


def test_very_large_images_are_found(stoker, tmp_path):
    photograph(tmp_path / "photos/cat/phone.jpg", (4000, 4001), quality=5)
    photograph(tmp_path / "photos/cat/limit.jpg", (4000, 4000), quality=5)
    Image.frombytes("RGB", (2700, 2700), bytes(range(256)) * (2700 * 2700 * 3 // 256 + 1)).save(
        tmp_path / "photos/cat/noise.png", compress_level=0
    )
    found = findings(stoker, "photos")["large-image"]
    assert found["level"] == "time"
    assert found["what"] == "2 images are over 16 megapixels or 20 MB: slow to read and decode"
    (noise, phone) = sorted(found["evidence"], key=lambda each: each["where"])
    assert noise["where"] == "cat/noise.png" and noise["text"] == "2700x2700, 21.9 MB"
    assert phone["where"] == "cat/phone.jpg" and phone["text"].startswith("4000x4001, ")
    (tmp_path / "photos/cat/noise.png").unlink()
    assert findings(stoker, "photos")["large-image"]["what"] == (
        "1 image is over 16 megapixels or 20 MB: slow to read and decode"
    )
