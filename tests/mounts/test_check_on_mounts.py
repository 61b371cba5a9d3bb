"""stoker check forecasts copies to the nodes from a shared filesystem: here a FUSE mount by bindfs."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from site_profiles import site_with_caches

pytestmark = pytest.mark.needs("fuse", "bindfs")


@pytest.fixture
def mounted(example_dataset: Path, tmp_path: Path):
    mount = tmp_path / "shared"
    mount.mkdir()
    server = shutil.copytree(example_dataset, tmp_path / "server")
    subprocess.run(["bindfs", "-o", "direct_io", server, mount], check=True)
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


def check(stoker, tmp_path: Path, quota: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The facts about places, and the findings."""
    (tmp_path / "nvme").mkdir(exist_ok=True)
    env = site_with_caches(tmp_path, "$NVME", f"quota: {quota}") | {"NVME": tmp_path / "nvme"}
    value = json.loads(stoker("check", "job.yaml", "--json", env=env).out)
    facts = [each["text"] for each in value["facts"] if each["name"] in ("place", "staging")]
    return facts, [(each["rule"], each["what"]) for each in value["findings"] if each["rule"] == "copy-gains-nothing"]


def test_the_quota_that_the_site_gives_caches_counts(stoker, mounted, tmp_path):
    (tmp_path / "job.yaml").write_text(
        f"run: 'true'\nsite: here\ndata: {{train: {{source: {mounted}, place: auto}}}}\n"
    )
    facts, findings = check(stoker, tmp_path, "1kB")
    assert facts[0].startswith("train: staging takes about ")
    ((_, what),) = findings
    assert what.startswith("data.train.place: a copy does not pay as far as this host can tell: ")
    assert what.endswith(" is missing in the cache, and the disk has room for 1.00 kB")
    assert not any("room" in what for _, what in check(stoker, tmp_path, "1TB")[1])


def test_files_to_stage_have_a_forecast(stoker, mounted, tmp_path):
    size = sum(file.stat().st_size for file in mounted.rglob("*") if file.is_file())
    count = sum(file.is_file() for file in mounted.rglob("*"))
    (tmp_path / "job.yaml").write_text(f"run: 'true'\nsite: here\nstage: {{copy: [{mounted}]}}\n")
    ((text,), _) = check(stoker, tmp_path, "1TB")
    assert f", number of files {count}: about " in text
    assert text.endswith(" s")
    assert abs(float(text.split()[0]) * {"kB": 1e3, "MB": 1e6}[text.split()[1].strip(",")] - size) <= 0.01 * size
