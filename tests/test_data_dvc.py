"""DVC versions of sources and datasets are recorded and compared."""

import hashlib
import json
from pathlib import Path

import packing
import pytest

JOB = """\
name: pets
train: {model: cifar-resnet20, epochs: 2, batch: 8}
data:
  train: {source: packed}
"""


def add(data: Path) -> str:
    """Writes the .dvc file of `dvc add`."""
    files = sorted(path for path in data.rglob("*") if path.is_file())
    entries = [
        {"md5": hashlib.md5(path.read_bytes()).hexdigest(), "relpath": str(path.relative_to(data))} for path in files
    ]
    md5 = hashlib.md5(json.dumps(sorted(entries, key=lambda e: e["relpath"]), sort_keys=True).encode()).hexdigest()
    size = sum(path.stat().st_size for path in files)
    data.with_name(data.name + ".dvc").write_text(
        f"outs:\n- md5: {md5}.dir\n  size: {size}\n  nfiles: {len(files)}\n  hash: md5\n  path: {data.name}\n"
    )
    return f"{md5}.dir"


@pytest.fixture
def images(stoker) -> Path:
    return packing.make_images(stoker.folder / "images", {"cat": 12, "dog": 8})


def test_source_version_is_recorded_and_shown(stoker, images):
    md5 = add(images)
    done = stoker("data", "pack", "images", "packed", "--dvc", "full", code=0)
    assert f"\n  version images.dvc, MD5 {md5[:8]}, 20 files of " in done.out
    size = sum(path.stat().st_size for path in images.rglob("*.jpg"))
    noted = {"dvc": "images.dvc", "md5": md5, "bytes": size, "files": 20}
    assert json.loads((stoker.folder / "packed/manifest.json").read_text())["source"] == noted
    assert f"\nsource   images.dvc, MD5 {md5[:8]}, 20 files of " in stoker("data", "info", "packed", code=0).out
    info = json.loads(stoker("data", "info", "packed", "--json", code=0).out)
    assert info["source_version"] == noted and info["dvc"] is None
    stoker("data", "convert", "packed", "again", "--format", "tfrecord", code=0)
    assert json.loads((stoker.folder / "again/manifest.json").read_text())["source"] == noted


# A restrictive OpenSSL configuration as with FIPS: no MD5, here no provider at all.
STRICT = """\
openssl_conf = strict
[strict]
alg_section = algorithms
providers = chosen
[algorithms]
default_properties = "fips=yes"
[chosen]
none = missing
[missing]
activate = 1
module = /nonexistent.so
"""


def test_md5_works_with_restricted_openssl(stoker, images):
    md5 = add(images)
    (stoker.folder / "openssl.cnf").write_text(STRICT)
    strict = {"OPENSSL_CONF": str(stoker.folder / "openssl.cnf")}
    done = stoker("data", "pack", "images", "packed", "--dvc", "full", code=0, env=strict)
    assert f"\n  version images.dvc, MD5 {md5[:8]}, 20 files of " in done.out
    stoker("data", "verify", "packed", "--full", code=0)


def test_dvc_version_does_not_affect_the_dataset_version(stoker, images):
    add(images)
    stoker("data", "pack", "images", "packed", code=0)
    done = stoker("data", "pack", "images", "plain", "--dvc", "off", "--json", code=0)
    assert json.loads(done.out)["source_version"] is None
    versions = [
        json.loads((stoker.folder / f"{name}/manifest.json").read_text())["version"] for name in ("packed", "plain")
    ]
    assert versions[0] == versions[1]


def test_merged_parts_keep_the_source_version(stoker, images):
    md5 = add(images)
    for part in (1, 2):
        stoker("data", "pack", "images", "packed", "--shards", "4", "--part", f"{part}/2", code=0)
    stoker("data", "merge", "packed", code=0)
    assert json.loads((stoker.folder / "packed/manifest.json").read_text())["source"]["md5"] == md5


def test_data_of_a_different_version_is_refused(stoker, images):
    add(images)
    content = bytearray((images / "cat/0001.jpg").read_bytes())
    content[-3] ^= 1
    (images / "cat/0001.jpg").write_bytes(content)
    bad = stoker("data", "pack", "images", "packed", "--dvc", "full", code=2)
    assert bad.err.startswith("images: MD5 ") and bad.err.endswith(
        " (--dvc)\n  try: dvc checkout images.dvc, or dvc add images\n"
    )
    (images / "cat/0001.jpg").unlink()
    bad = stoker("data", "pack", "images", "packed", code=2)
    assert bad.err.startswith("images: 19 files of ") and ", images.dvc records 20 of " in bad.err
    assert not (stoker.folder / "packed").exists()


def test_version_is_read_from_dvc_lock(stoker, images):
    md5 = add(images)
    folder = stoker.folder / "work"
    folder.mkdir()
    out = (stoker.folder / "images.dvc").read_text().removeprefix("outs:\n- ").replace("\n", "\n    ")
    (stoker.folder / "images.dvc").unlink()
    (stoker.folder / ".dvc").mkdir()
    lock = f"schema: '2.0'\nstages:\n  fetch:\n    cmd: x\n    outs:\n    - {out}"
    (stoker.folder / "dvc.lock").write_text(lock.replace("path: images", "path: ../images"))
    (stoker.folder / "dvc.yaml").write_text("stages:\n  fetch: {cmd: x, wdir: work, outs: [../images]}\n")
    done = stoker("data", "pack", "images", "packed", "--dvc", "full", code=0)
    assert f"\n  version dvc.lock, MD5 {md5[:8]}, 20 files of " in done.out
    assert json.loads((stoker.folder / "packed/manifest.json").read_text())["source"]["dvc"] == "dvc.lock"
    (images / "cat/0001.jpg").unlink()
    bad = stoker("data", "pack", "images", "other", code=2)
    assert bad.err.startswith("images: 19 files of ") and ", dvc.lock records 20 of " in bad.err
    assert bad.err.endswith(" (--dvc)\n  try: dvc checkout images, or dvc commit fetch\n")


def test_data_with_dvcignore_is_not_compared(stoker, images):
    add(images)
    (images / "cat/1.tmp").write_text("x")
    (stoker.folder / ".dvc").mkdir()
    (stoker.folder / ".dvcignore").write_text("*.tmp\n")
    stoker("data", "pack", "images", "packed", "--max-left-out", "10%", code=0)
    bad = stoker("data", "pack", "images", "other", "--dvc", "full", code=2)
    assert "/.dvcignore (--dvc full)\n  try: dvc status images.dvc\n" in bad.err


def test_missing_data_suggests_dvc_pull(stoker):
    (stoker.folder / "images.dvc").write_text("outs:\n- md5: 0123456789abcdef0123456789abcdef.dir\n  path: images\n")
    bad = stoker("data", "pack", "images", "packed", code=1)
    assert bad.err == "images: no such folder, archive or list\n  try: dvc pull images.dvc\n"


def test_a_dataset_under_dvc_is_compared_by_verify_info_and_check(stoker, images):
    stoker("data", "pack", "images", "packed", code=0)
    md5 = add(stoker.folder / "packed")
    (stoker.folder / "job.yaml").write_text(JOB)
    good = stoker("data", "verify", "packed", code=0)
    assert f"  packed.dvc, MD5 {md5[:8]}, 3 files of " in good.out
    assert good.out.endswith(": number and size of files match\n")
    assert stoker("data", "verify", "packed", "--full", code=0).out.endswith(": every byte matches\n")
    assert ": number and size of files match\n" in stoker("data", "info", "packed", code=0).out

    def rules() -> list[tuple[str, str]]:
        found = json.loads(stoker("check", "job.yaml", "--json").out)["findings"]
        return [(each["rule"], each["level"]) for each in found if each["rule"] != "no-trainer"]

    assert rules() == []
    (stoker.folder / "packed/notes.txt").write_text("1")
    assert rules() == [("other-version", "job")]
    bad = stoker("data", "verify", "packed", "--json", code=1)
    assert json.loads(bad.out)["damages"] == 0
    assert json.loads(bad.out)["dvc"]["difference"].startswith("4 files of ")
    assert bad.err.endswith("\n  try: dvc checkout packed.dvc, or dvc add packed\n")
    assert ": differs: 4 files of " in stoker("data", "info", "packed", code=0).out
    (stoker.folder / "packed/notes.txt").unlink()
    index = stoker.folder / "packed/left-out.csv"
    assert not index.exists()
    manifest = stoker.folder / "packed/manifest.json"
    manifest.write_text(manifest.read_text().replace('"alpha": 0', '"alpha": 1'))
    assert stoker("data", "verify", "packed", code=0)
    bad = stoker("data", "verify", "packed", "--full", code=1)
    assert bad.err.startswith("packed: MD5 ") and f", packed.dvc records {md5[:8]}" in bad.err
