"""`data sample` shows the beginning of texts and JSON, and escapes their content."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import packing


def page_of(stoker, folder: Path, files: dict[str, bytes]) -> str:
    packing.indexed_files(stoker, folder, [(f"one.{name}", content) for name, content in files.items()])
    stoker("data", "sample", "shards", code=0)
    return (folder / "sample.html").read_text(encoding="utf-8")


def texts(page: str) -> list[str]:
    return re.findall(r'<div class="numbers text lines">(.*?)</div>', page, re.DOTALL)


def captions(page: str) -> dict[str, str]:
    return dict(re.findall(r'<p class="array"><b>([^<]*)</b> ([^<]*)</p>', page))


class Elements(HTMLParser):
    """The elements that a browser finds in a page."""

    def __init__(self, page: str):
        super().__init__()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


def test_texts_and_json_are_shown_unchanged(stoker, tmp_path):
    page = page_of(
        stoker,
        tmp_path,
        {
            "json": b'{"caption": "a cat", "box": [1, 2, 3, 4]}',
            "txt": "Un chat,\r\n\tsur un mur de 10\u00a0m.\n".encode(),
        },
    )
    assert texts(page) == [
        "{&quot;caption&quot;: &quot;a cat&quot;, &quot;box&quot;: [1, 2, 3, 4]}",
        "Un chat,\n\tsur un mur de 10\u00a0m.\n",
    ]
    assert captions(page) == {"json": "41 B", "txt": "32 B"}
    assert '<figure class="wide">' in page


def test_markup_and_hostile_bytes_are_escaped(stoker, tmp_path):
    hostile = (
        b"</div></figure><script>alert(1)</script><img src=x onerror=alert(2)>"
        b"\x00\x1b[2J\xff\xfe \xe2\x80\xae txt.exe \xc2\x9b31m \xed\xa0\x80 &lt;\r lone"
    )
    page = page_of(stoker, tmp_path, {"caption.txt": hostile, "json": hostile})
    assert Elements(page).names <= {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "b", "div"} | {
        "figure",
        "figcaption",
    }
    shown = texts(page)[0]
    assert shown == texts(page)[1]
    assert shown.startswith("&lt;/div&gt;&lt;/figure&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=")
    assert shown.endswith(r"\x00\x1b[2J\xff\xfe \xe2\x80\xae txt.exe \xc2\x9b31m \xed\xa0\x80 &amp;lt;\x0d lone")
    assert captions(page) == {"caption.txt": f"{len(hostile)} B", "json": f"{len(hostile)} B, no JSON"}


def test_long_texts_are_cut_between_characters(stoker, tmp_path):
    page = page_of(
        stoker,
        tmp_path,
        {
            "a.txt": "é".encode() * 5000,
            "b.txt": b"x\n" * 5000,
            "c.txt": b"\xef\xbb\xbf",
            "d.json": b"[" * 100_000 + b"]" * 100_000,
            "e.txt": b"\xff" * 100_000,
        },
    )
    letters, lines, empty, deep, bytes_ = texts(page)
    assert letters == "é" * 600 + " … 8.80 kB more"
    assert lines == "x\n" * 19 + "x … 9.96 kB more"
    assert empty == "" and captions(page)["c.txt"] == "3 B, empty"
    assert deep == "[" * 600 + " … 199 kB more"
    assert bytes_ == r"\xff" * 600 + " … 99.4 kB more"


def test_texts_are_next_to_pictures_and_damage_is_reported(stoker, tmp_path):
    files = [
        (f"{i}.{name}", content) for i in range(4) for name, content in (("jpg", packing.jpeg(i)), ("txt", b"seen"))
    ]
    shards = packing.indexed_files(stoker, tmp_path, files)
    shard = shards / "train-000000.tar"
    content = bytearray(shard.read_bytes())
    content[content.index(b"seen")] ^= 1
    shard.write_bytes(content)
    result = json.loads(stoker("data", "sample", "shards", "--json", code=0).out)
    page = (tmp_path / "sample.html").read_text()
    assert result["samples"] == 4 and result["broken"] == 1
    assert page.count("<img") == 4 and texts(page) == ["seen"] * 3
    assert '<div class="broken">' in page


def test_other_files_are_not_shown(stoker, tmp_path):
    packing.indexed_files(stoker, tmp_path, [("a.bin", b"\x00\x01"), ("b.bin", b"\x02\x03")])
    assert stoker("data", "sample", "shards", code=2).err == (
        "shards: has neither images nor arrays nor texts to show\n"
    )
