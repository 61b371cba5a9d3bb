"""`data sample` shows arrays: numbers as text, bars, lines, heat maps and pixels, whatever their content."""

import base64
import io
import json
import re
from pathlib import Path

import browser
import numpy
import packing
import pytest
from PIL import Image


def npy(array) -> bytes:
    data = io.BytesIO()
    numpy.save(data, numpy.asarray(array, order="C"))
    return data.getvalue()


def page_of(stoker, folder: Path, arrays: dict[str, object], **others: bytes) -> str:
    files = [(f"one.{name}", npy(array)) for name, array in arrays.items()]
    files += [(f"one.{name.replace('_', '.')}", content) for name, content in others.items()]
    packing.indexed_files(stoker, folder, files)
    stoker("data", "sample", "shards", code=0)
    page = (folder / "sample.html").read_text()
    assert "<figure>" in page and "http" not in page and "<script" not in page
    return page


def pictures(page: str, kind: str) -> list[Image.Image]:
    found = []
    for encoded in re.findall(rf"data:image/{kind};base64,([^\"]+)", page):
        image = Image.open(io.BytesIO(base64.b64decode(encoded, validate=True)))
        image.load()
        assert max(image.size) <= 144
        found.append(image)
    return found


def caption(page: str, name: str) -> str:
    return re.search(rf"<p class=\"array\"><b>{re.escape(name)}</b> ([^<]*)</p>", page)[1]


def test_scalars_and_lists_of_integers_are_text(stoker, tmp_path):
    tokens = numpy.array([101, 7592, 2088, 102] + [0] * 508, "i4")
    long = numpy.arange(1000, dtype="i8")
    page = page_of(
        stoker,
        tmp_path,
        {
            "a.npy": numpy.float64(0.1),
            "b.npy": numpy.int64(2**62 + 1),
            "c.npy": tokens,
            "d.npy": long,
            "e.npy": numpy.uint8([[[7]]]),
        },
    )
    assert '<div class="numbers text value">0.1</div>' in page
    assert f'<div class="numbers text value">{2**62 + 1}</div>' in page
    assert '<div class="numbers text">101, 7592, 2088, 102, 0 × 508</div>' in page
    assert ", 38, 39, … 960 more</div>" in page
    assert '<div class="numbers text value">7</div>' in page
    assert caption(page, "c.npy") == "int32 (512,), 0 to 7592"
    assert caption(page, "a.npy") == "float64 ()"
    assert "e.npy</b> uint8 (1, 1, 1)" in page


def test_vectors_are_bars_or_lines_without_nan(stoker, tmp_path):
    some = numpy.array([1, -2, numpy.nan, 4, numpy.inf], "f4")
    many = numpy.sin(numpy.arange(5000) / 100)
    many[1000:2000] = numpy.nan
    page = page_of(
        stoker,
        tmp_path,
        {
            "a.npy": some,
            "b.npy": many,
            "c.npy": numpy.full(9, numpy.nan),
            "d.npy": numpy.array([1e308, -1e308, 5e-324]),
        },
    )
    bars, line, huge = re.findall(r"<svg[^>]*aria-label=\"(?:bars|line)\">(.*?)</svg>", page)
    assert bars.count("M") == 3 + 1 and "nan" not in page.split("<body>")[1].replace("NaN", "") and "inf" not in bars
    assert 100 < line.count("V") < 130 and line.count("M") == 2 + 1
    assert huge.count("M") == 3 + 1
    assert caption(page, "a.npy") == "float32 (5,), -2 to 4, 1 NaN, 1 infinite"
    assert caption(page, "b.npy") == "float64 (5000,), -1 to 1, 1 000 NaN"
    assert caption(page, "c.npy") == "float64 (9,), 9 NaN"
    assert '<div class="numbers text">no finite number</div>' in page
    for path in re.findall(r" d=\"([^\"]*)\"", page):
        assert all(-1 <= float(number) <= 146 for number in re.findall(r"[\d.]+", path))


def test_tables_are_heat_maps(stoker, tmp_path):
    ramp = numpy.linspace(0, 1, 12).reshape(3, 4)
    holes = numpy.array([[numpy.nan, numpy.inf], [-numpy.inf, 0.5]])
    page = page_of(
        stoker,
        tmp_path,
        {
            "a.npy": ramp,
            "b.npy": holes,
            "c.npy": numpy.random.default_rng(1).normal(size=(2000, 3)),
            "d.npy": numpy.zeros((4, 5, 6)),
            "e.npy": numpy.full((2, 2), numpy.nan),
        },
    )
    first, second, tall, flat, none = pictures(page, "png")
    assert first.size == (4, 3) and first.getpixel((0, 0)) == (38, 25, 84) and first.getpixel((3, 2)) == (250, 230, 80)
    assert second.getpixel((0, 0)) == (136, 136, 136) and second.getpixel((1, 0)) == (250, 230, 80)
    assert second.getpixel((0, 1)) == (38, 25, 84)
    assert tall.size == (3, 144) and 'style="width:12px;height:144px"' in page
    assert flat.size == (6, 5) and caption(page, "d.npy") == "float64 (4, 5, 6), 0 to 0, the first 5 x 6"
    assert none.getcolors() == [(4, (136, 136, 136))]


def test_pixels_are_images_with_channels_first_or_last(stoker, tmp_path):
    image = numpy.zeros((20, 30, 3), "u1")
    image[:, :15, 0] = 255
    page = page_of(
        stoker,
        tmp_path,
        {
            "a.npy": image,
            "b.npy": image.transpose(2, 0, 1),
            "c.npy": image[:, :, :1],
            "d.npy": image[:, :, 0][None],
            "e.npy": numpy.tile(image, (40, 20, 1)),
        },
    )
    last, first, grey, plane, large = pictures(page, "jpeg")
    for shown in (last, first):
        assert shown.size == (30, 20) and shown.getpixel((2, 10))[0] > 200 and shown.getpixel((2, 10))[1] < 60
    for shown in (grey, plane):
        assert min(shown.convert("RGB").getpixel((2, 10))) > 200
    assert large.size == (108, 144)


def test_empty_or_damaged_arrays_are_reported(stoker, tmp_path):
    files = [
        ("one.a.npy", npy(numpy.zeros((3, 0, 2)))),
        ("one.b.npy", npy(numpy.zeros(0))),
        ("one.c.npy", b"\x93NUMPY no array"),
        ("one.d.npy", npy(numpy.zeros(4, ">f8"))),
        ("one.e.npy", npy(numpy.zeros(4, "f8"))[:-1]),
        ("one.<b>.npy", npy(numpy.zeros(1))),
        ("two.bin", b"no array"),
    ]
    packing.indexed_files(stoker, tmp_path, files)
    done = stoker("data", "sample", "shards", code=0)
    assert re.fullmatch(r"wrote sample.html: 1 sample, \S+ k?B, 1 broken\n", done.out)
    page = (tmp_path / "sample.html").read_text()
    assert page.count('<div class="numbers text">empty</div>') == 2
    assert page.count('class="broken"') == 3
    assert "&lt;b&gt;.npy" in page and "<b>.npy" not in page
    assert caption(page, "a.npy") == "float64 (3, 0, 2)"


def test_a_table_is_shown_by_class_and_an_image_next_to_its_numbers(stoker, tmp_path):
    files = []
    for i in range(30):
        files += [
            (f"{i}.jpg", packing.jpeg(i)),
            (f"{i}.x.npy", npy(numpy.arange(4.0) + i)),
            (f"{i}.cls", str(i % 2).encode()),
        ]
        files += [(f"{i}.{k:02}.npy", npy(numpy.float32(k))) for k in range(20)]
    packing.indexed_files(stoker, tmp_path, files)
    result = json.loads(stoker("data", "sample", "shards", "--count", "10", "--json", code=0).out)
    page = (tmp_path / "sample.html").read_text()
    assert result["samples"] == page.count("<figure>") == len(pictures(page, "jpeg")) == 10
    assert len(re.findall(r"<h2>label [01]</h2>", page)) == 2
    assert page.count('<p class="array">and 9 more</p>') == 10
    assert len(re.findall(r"<figcaption>\d+<br>16x12, ", page)) == 10


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_arrays_fit_into_a_page_of_any_width(stoker, tmp_path, width):
    arrays = {
        "a.npy": numpy.arange(9.0),
        "b.npy": numpy.arange(600.0),
        "c.npy": numpy.eye(8),
        "d.npy": numpy.arange(2000),
    }
    page_of(stoker, tmp_path, arrays)
    seen = browser.look(
        tmp_path / "sample.html",
        "boxes: all('.numbers').map(e => [r(e).width, r(e).right]), wide: d.documentElement.scrollWidth",
        width=width,
    )
    assert len(seen["boxes"]) == 4 and all(0 < size <= 144 and right <= width for size, right in seen["boxes"])
    assert seen["wide"] == width
