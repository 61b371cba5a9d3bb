"""Inspects a page in headless Chromium: at the width of a phone or a desktop, light or dark. A page that logs an error fails."""

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

# Each page in each of them.
LOOKS = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]

PROLOGUE = """
const frame = document.querySelector('iframe'), d = frame.contentDocument, w = frame.contentWindow;
const r = e => e.getBoundingClientRect(), all = (selector, root = d) => [...root.querySelectorAll(selector)];
const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
const light = color => {const [x, y, z] = color.match(/[\\d.]+/g).slice(0, 3)
  .map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * x + 0.7152 * y + 0.0722 * z};
const behind = e => {for (; e; e = e.parentElement) {const c = w.getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$/.test(c)) return c} return 'rgb(255, 255, 255)'};
"""

# What every page of ours promises.
LEGIBLE = """
wide: d.documentElement.scrollWidth,
labels_on_curves: all('figure').flatMap(f => {const curves = all('path.line, path.faint', f).map(r);
  return all('text', f).filter(t => curves.some(c => overlap(r(t), c))).map(t => t.textContent)}),
labels_on_labels: all('figure').flatMap(f => {const t = all('text', f);
  return t.flatMap((a, i) => t.slice(i + 1).filter(b => overlap(r(a), r(b))).map(b => a.textContent + ' | ' + b.textContent))}),
faint_texts: all('body *').filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) &&
  !['SCRIPT', 'STYLE'].includes(e.tagName) && r(e).width > 0).flatMap(e => {const s = w.getComputedStyle(e);
  const a = light(e instanceof w.SVGElement ? s.fill : s.color), b = light(behind(e));
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  return contrast < 4.5 ? [e.tagName + '.' + e.getAttribute('class') + ' ' + contrast.toFixed(1)] : []})
"""


def look(page: Path, values: str, *, width: int = 390, theme: str = "light") -> dict[str, Any]:
    """The JavaScript values, such as `charts: all('figure').length`, with the page's document `d`."""
    # A frame has the width of a phone, which a headless window cannot have.
    frame = f'<iframe src="{page.name}" width="{width}" height="800" style="border:0"></iframe>'
    script = f"""<script>addEventListener('load', () => setTimeout(() => {{{PROLOGUE}
    document.title = JSON.stringify({{{values}}})}}, 300))</script>"""
    outer = page.parent / "frame.html"
    outer.write_text(f"<!doctype html><title>-</title>{frame}{script}")
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
    ]
    command += ["--v=0", "--allow-file-access-from-files", f"--user-data-dir={page.parent}/browser"]
    command += [f"--blink-settings=preferredColorScheme={0 if theme == 'dark' else 1}", "--virtual-time-budget=3000"]
    done = subprocess.run([*command, "--dump-dom", f"file://{outer}"], capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    title = re.search("<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr
    return json.loads(unescape(title.group(1)))


def assert_legible(page: Path, width: int, theme: str) -> None:
    """It fits the width, no label is on a curve or on a different label, and all text has the contrast of WCAG AA."""
    seen = look(page, LEGIBLE, width=width, theme=theme)
    expected = {"wide": width, "labels_on_curves": [], "labels_on_labels": [], "faint_texts": []}
    assert seen == expected, seen
