"""Resizing and re-encoding while packing: the loss is reported, and nothing else changes."""

import io
import json
from pathlib import Path

import numpy
import packing
import pytest
from PIL import Image


def picture(folder: Path, name: str, size: tuple[int, int], **options) -> Path:
    """A smooth picture whose pixels survive re-encoding."""
    x, y = numpy.meshgrid(numpy.linspace(0, 255, size[0]), numpy.linspace(0, 255, size[1]))
    pixels = numpy.stack([x, y, (x + y) / 2], axis=-1).astype(numpy.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    if options.pop("grey", False):
        image = image.convert("L")
    image.save(folder / name, **options)
    return folder / name


def packed(stoker, name: str) -> Image.Image:
    return Image.open(io.BytesIO(packing.members(stoker.folder / "out")[name]))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    exif = Image.Exif()
    exif[0x010E] = "a description"
    picture(tmp_path / "photos/cat", "wide.jpg", (640, 480), quality=95, exif=exif, icc_profile=b"profile")
    picture(tmp_path / "photos/cat", "high.png", (300, 512))
    picture(tmp_path / "photos/dog", "web.webp", (400, 400), quality=95)
    picture(tmp_path / "photos/dog", "grey.jpg", (300, 300), grey=True)
    picture(tmp_path / "photos/dog", "small.jpg", (200, 100))
    return tmp_path / "photos"


def test_resize_fits_the_shorter_side_and_reports_the_loss(stoker, pictures):
    done = stoker("data", "pack", "photos", "out", "--resize", "128", code=0)
    assert "  lossy: 4 of 5 images were re-encoded; the original pixels are only in the source\n" in done.out
    sizes = {name: packed(stoker, name).size for name in packing.members(stoker.folder / "out")}
    assert sizes == {
        "cat/wide.jpg": (171, 128),
        "cat/high.png": (128, 218),
        "dog/web.webp": (128, 128),
        "dog/grey.jpg": (128, 128),
        "dog/small.jpg": (200, 100),
    }
    assert [packed(stoker, name).format for name in sorted(sizes)] == ["PNG", "JPEG", "JPEG", "JPEG", "WEBP"]
    assert packing.members(stoker.folder / "out")["dog/small.jpg"] == (pictures / "dog/small.jpg").read_bytes()
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert (info["images"]["width_max"], info["images"]["height_max"]) == (200, 218)
    stoker("data", "verify", "out", "--full", code=0)


def test_a_loss_of_one_image_is_reported_in_the_singular(stoker, tmp_path):
    (tmp_path / "photos/cat").mkdir(parents=True)
    picture(tmp_path / "photos/cat", "a.png", (300, 200))
    done = stoker("data", "pack", "photos", "out", "--resize", "100", code=0)
    assert "  lossy: 1 of 1 image was re-encoded; the original pixels are only in the source\n" in done.out


def test_resized_pixels_match_pillow(stoker, pictures):
    stoker("data", "pack", "photos", "out", "--resize", "128", "--quality", "100", code=0)
    expected = Image.open(pictures / "cat/high.png").resize((128, 218), Image.Resampling.BILINEAR)
    assert numpy.array_equal(numpy.asarray(packed(stoker, "cat/high.png")), numpy.asarray(expected))
    expected = Image.open(pictures / "cat/wide.jpg").resize((171, 128), Image.Resampling.BILINEAR)
    off = numpy.asarray(packed(stoker, "cat/wide.jpg")).astype(int) - numpy.asarray(expected).astype(int)
    assert abs(off).max() <= 8


def test_exif_profile_and_grey_are_kept(stoker, pictures):
    stoker("data", "pack", "photos", "out", "--resize", "64", code=0)
    wide = packed(stoker, "cat/wide.jpg")
    assert wide.getexif()[0x010E] == "a description"
    assert wide.info["icc_profile"] == b"profile"
    assert packed(stoker, "dog/grey.jpg").mode == "L"


def test_quality_alone_reencodes_jpegs_at_their_size(stoker, pictures):
    done = stoker("data", "pack", "photos", "out", "--quality", "30", "--jpeg", "restart", "--json", code=0)
    assert json.loads(done.out)["images_encoded_anew"] == 4  # not the PNG
    wide = packing.members(stoker.folder / "out")["cat/wide.jpg"]
    assert packed(stoker, "cat/wide.jpg").size == (640, 480)
    assert len(wide) < (pictures / "cat/wide.jpg").stat().st_size / 2
    assert b"\xff\xdd" in wide and b"\xff\xd0" in wide  # restart markers


def test_picture_with_a_mask_is_refused(stoker, pictures):
    picture(pictures / "cat", "wide.mask.png", (640, 480))
    done = stoker("data", "pack", "photos", "out", "--resize", "128", code=2)
    assert done.err.startswith(
        "photos: sample 'cat/wide' has 2 images, which would no longer match after resizing (--resize)\n"
    )


def test_the_bytes_are_the_same_for_any_number_of_threads(stoker, pictures):
    for threads in ("1", "4"):
        stoker("data", "pack", "photos", threads, "--resize", "64", "--shards", "3", "-j", threads, code=0)
    assert packing.tree(stoker.folder / "1") == packing.tree(stoker.folder / "4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--resize", "0"), "data pack: --resize: 0 is not between 1 and 65535\n"),
        (("--quality", "101"), "data pack: --quality: 101 is not between 1 and 100\n"),
    ],
)
def test_invalid_sizes_and_qualities_are_refused(stoker, pictures, words, message):
    assert stoker("data", "pack", "photos", "out", *words, code=2).err == message
