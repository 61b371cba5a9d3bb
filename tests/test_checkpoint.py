"""Checkpoints read by PyTorch's distributed checkpoint and by safetensors, without pickle, and by `stoker checkpoint`. They are
saved by the room's test program with 1, 2 and 3 ranks."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
import run_folders
from crc import crc32c
from exported_checkpoints import export_checkpoints

DTYPES = {"F32": "float32", "BF16": "bfloat16", "I64": "int64", "BOOL": "bool"}


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> Path:
    """world-1, world-2 and world-3, each with step-100 and step-200; expected/ has the contents of step-200."""
    return export_checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def checkpoints(exported, tmp_path) -> Path:
    """A copy of the checkpoints of two ranks, to be damaged."""
    shutil.copytree(exported / "world-2", tmp_path / "ckpt")
    return tmp_path / "ckpt"


def expected_tensors(exported: Path, part: str) -> dict:
    import torch

    tensors = {}
    for line in (exported / "expected/list").read_text().splitlines():
        of_part, name, dtype, *sizes = line.split()
        if of_part == part:
            shape = [int(size) for size in sizes]
            raw = (exported / "expected" / name).read_bytes()
            kind = getattr(torch, DTYPES[dtype])
            if raw:
                tensors[name] = torch.frombuffer(bytearray(raw), dtype=kind).reshape(shape)
            else:
                tensors[name] = torch.empty(shape, dtype=kind)
    return tensors


def same_bytes(one, other) -> bool:
    import torch

    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and torch.equal(
            one.contiguous().reshape(-1).view(torch.uint8), other.contiguous().reshape(-1).view(torch.uint8)
        )
    )


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("part", ["model", "optimizer"])
def test_pytorch_reads_and_combines_the_shards(exported, world, part):
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageReader

    expected = expected_tensors(exported, part)
    state = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    folder = exported / f"world-{world}" / "step-200" / part
    dcp.load(state, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
    assert set(state) == set(expected)
    for name, tensor in expected.items():
        assert same_bytes(state[name], tensor), name


def test_sharding_info_has_full_shapes_and_every_key(exported):
    from torch.distributed.checkpoint import HuggingFaceStorageReader

    expected = expected_tensors(exported, "model")
    folder = exported / "world-3/step-200/model"
    metadata = HuggingFaceStorageReader(str(folder)).read_metadata()
    assert {name: list(entry.size) for name, entry in metadata.state_dict_metadata.items()} == {
        name: list(tensor.shape) for name, tensor in expected.items()
    }


@pytest.mark.parametrize("world", [1, 2, 3])
def test_safetensors_reads_all_rows(exported, world):
    import torch
    from safetensors import safe_open

    for part in ("model", "optimizer"):
        expected = expected_tensors(exported, part)
        found = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
        rows = dict.fromkeys(expected, 0)
        for file in sorted((exported / f"world-{world}/step-200/{part}").iterdir()):
            with safe_open(file, framework="pt") as shard:
                metadata = shard.metadata()
                assert metadata["format"] == "pt"
                offsets = json.loads(metadata["DCP_SHARDING_INFO"])
                names = shard.keys()
                assert set(offsets) == set(names)
                for name in names:
                    tensor = shard.get_tensor(name)
                    if tensor.dim() == 0:
                        found[name] = tensor
                        continue
                    first, *others = offsets[name]["saved_offsets"]
                    assert not any(others)
                    found[name][first : first + tensor.shape[0]] = tensor
                    rows[name] += tensor.shape[0]
        for name, tensor in expected.items():
            assert same_bytes(found[name], tensor), name
            assert rows[name] == (tensor.shape[0] if tensor.dim() else 0)


def test_nothing_is_pickled_and_data_starts_on_a_page(exported):
    names = [path for path in (exported / "world-2/step-200").rglob("*") if path.is_file()]
    assert sorted({path.suffix for path in names}) == [".json", ".safetensors"]
    for path in names:
        content = path.read_bytes()
        if path.suffix == ".json":
            json.loads(content)
        else:
            assert (8 + int.from_bytes(content[:8], "little")) % 4096 == 0


def test_the_manifest_matches_the_format_page(exported):
    manifest = json.loads((exported / "world-2/step-200/manifest.json").read_text())
    assert list(manifest) == [
        "format", "crc32c", "version", "incompatible", "step", "save", "run", "world_size", "written", "stall_s",
        "write_s", "state", "hyper_parameters", "rank_states", "model", "optimizer", "files",
    ]  # fmt: skip
    assert manifest["state"] == {"epoch": 20, "lr": 20.0}
    assert manifest["rank_states"] == [{"rank": 0}, {"rank": 1}]


def test_list_shows_the_newest_first(stoker, checkpoints):
    done = stoker("checkpoint", "list", checkpoints, code=0)
    header, newest, oldest = done.out.splitlines()
    assert header.split() == ["STEP", "AGE", "SIZE", "STALL", "WRITE", "STATE"]
    assert [line.split()[0] for line in (newest, oldest)] == ["200", "100"]
    assert all(line.endswith("valid") for line in (newest, oldest))


def test_list_shows_torn_steps(stoker, checkpoints):
    (checkpoints / "step-200/model/shard-00002-model-00001-of-00001.safetensors").unlink()
    done = stoker("checkpoint", "list", checkpoints, code=0)
    assert done.out.splitlines()[1].endswith(
        "torn: model/shard-00002-model-00001-of-00001.safetensors: rank 1's file is missing; not used"
    )
    (newest, oldest) = json.loads(stoker("checkpoint", "list", checkpoints, "--json", code=0).out)["steps"]
    assert (newest["step"], newest["state"]) == (200, "torn")
    assert (oldest["state"], oldest["world_size"], oldest["run"]) == ("valid", 2, "run-a")


def test_list_shows_checkpoints_of_other_programs(stoker, tmp_path):
    folder = tmp_path / "ckpt"
    folder.mkdir()
    whole, torn = bytes([2] + 7 * [0]) + b"{}", bytes([99] + 7 * [0]) + b"{}"
    (folder / "epoch=1-step=20.safetensors").write_bytes(whole)
    (folder / "torn.safetensors").write_bytes(torn)
    os.utime(folder / "torn.safetensors", (1, 1))
    lines = stoker("checkpoint", "list", "ckpt", code=0).out.splitlines()
    assert lines[0].split() == ["NAME", "STEP", "AGE", "SIZE", "KIND", "STATE"]
    assert lines[1].split()[:2] == ["epoch=1-step=20.safetensors", "20"] and lines[1].endswith("complete")
    assert "torn: " in lines[2] and lines[2].endswith("not used")
    listed = json.loads(stoker("checkpoint", "list", "ckpt", "--json", code=0).out)
    assert listed["steps"] == []
    assert [(each["step"], each["state"]) for each in listed["others"]] == [(20, "complete"), (None, "torn")]
    latest = stoker("checkpoint", "latest", "ckpt", code=0).out
    assert latest == "ckpt/epoch=1-step=20.safetensors\n"


def test_list_of_an_empty_directory(stoker, tmp_path):
    (tmp_path / "empty").mkdir()
    assert stoker("checkpoint", "list", "empty", code=1).err == "empty: no checkpoint\n"
    error = json.loads(stoker("checkpoint", "list", "empty", "--json", code=1).out)["error"]
    assert (error["code"], error["message"]) == ("not_found", "empty: no checkpoint")


def test_verify_reads_every_byte(stoker, checkpoints):
    done = stoker("checkpoint", "verify", "ckpt/step-200", code=0)
    assert done.out == "ckpt/step-200: step 200, 11 tensors in 4 files, 3.20 MB, every byte verified\n"
    file = checkpoints / "step-200/optimizer/shard-00001-optimizer-00001-of-00001.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert stoker("checkpoint", "list", checkpoints, code=0).out.count("valid") == 2  # list does not read the data
    done = stoker("checkpoint", "verify", "ckpt", code=1)
    first, second = done.out.splitlines()
    assert first.startswith(
        f"ckpt/step-200/{file.relative_to(checkpoints / 'step-200')}: damaged between bytes 0 and {len(content)} (crc32c "
    )
    assert ": 'state." in first
    assert second.startswith("ckpt/step-100: step 100")
    assert done.err == "1 of 2 checkpoints damaged; resume skips damaged checkpoints\n"
    damages = json.loads(stoker("checkpoint", "verify", "ckpt/step-200", "--json", code=1).out)["steps"][0]["damages"]
    assert [damage["file"] for damage in damages] == [str(file.relative_to(checkpoints / "step-200"))]


def test_verify_of_a_missing_step_fails(stoker, checkpoints):
    assert stoker("checkpoint", "verify", "ckpt/step-7", code=1).err == "ckpt/step-7: no such checkpoint\n"
    assert stoker("checkpoint", "verify", code=2).err.startswith("checkpoint verify: ")


def test_diff_sorts_by_change(stoker, exported):
    done = stoker("checkpoint", "diff", exported / "world-2/step-100", exported / "world-2/step-200", code=1)
    lines = done.out.splitlines()
    assert lines[:3] == ["step 100 of run-a → step 200 of run-a", "state epoch: 10 → 20", "state lr: 10.0 → 20.0"]
    assert lines[3].split() == ["TENSOR", "SHAPE", "|step", "100|", "|step", "200|", "CHANGE", "LARGEST"]
    assert lines[-1] == "8 tensors: 7 changed, 1 the same, 0 unmatched"
    few = stoker("checkpoint", "diff", exported / "world-2/step-100", exported / "world-2", "--most", "2", code=1)
    assert few.out.splitlines()[-2] == "and 5 more (--most)"


def test_diff_matches_torch(stoker, exported):
    import torch
    from safetensors.torch import load_file

    first, second = (exported / f"world-1/step-{step}" for step in (100, 200))
    answer = json.loads(stoker("checkpoint", "diff", first, second, "--optimizer", "--json", code=1).out)
    tensors = {(tensor["part"], tensor["name"]): tensor for tensor in answer["tensors"]}
    for part in ("model", "optimizer"):
        one, other = (load_file(next((step / part).glob("*.safetensors"))) for step in (first, second))
        assert {name for of_part, name in tensors if of_part == part} == set(one)
        for name in one:
            a, b = one[name].double(), other[name].double()
            finite = torch.isfinite(a) & torch.isfinite(b)
            tensor = tensors[part, name]
            assert tensor["not_finite"] == int((~finite).sum()), name
            for what, expected in (("first_norm", a), ("second_norm", b), ("distance", b - a)):
                assert tensor[what] == pytest.approx(float(expected[finite].norm()), rel=1e-9), name


def test_diff_of_identical_steps(stoker, exported):
    done = stoker("checkpoint", "diff", exported / "world-1/step-200", exported / "world-3/step-200", code=0)
    assert done.out == "first and second are identical\n"


def test_diff_labels_its_columns(stoker, exported):
    steps = [exported / "world-1/step-100", exported / "world-1/step-200"]
    named = stoker("checkpoint", "diff", *steps, "--labels", "before, after", code=1).out
    assert named.splitlines()[0] == "before: step 100 of run-a → after: step 200 of run-a"
    assert "|before|" in named and "|after|" in named
    refused = stoker("checkpoint", "diff", *steps, "--labels", "before", code=2)
    assert refused.err == "checkpoint diff: --labels: 'before' is not two names separated by a comma\n"


def test_diff_rejects_a_damaged_step(stoker, checkpoints):
    (checkpoints / "step-200/model/shard-00002-model-00001-of-00001.safetensors").unlink()
    refused = stoker("checkpoint", "diff", "ckpt/step-100", "ckpt/step-200", code=1)
    assert refused.err == (
        "ckpt/step-200: model/shard-00002-model-00001-of-00001.safetensors: rank 1's file is missing\n"
        "  try: stoker checkpoint verify ckpt/step-200\n"
    )
    assert stoker("checkpoint", "diff", "ckpt/step-100", "ckpt", code=0).out == "first and second are identical\n"


def test_prune_keeps_the_newest(stoker, checkpoints):
    shown = stoker("checkpoint", "prune", "ckpt", "--keep", "1", "--dry-run", code=0).out.splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["200", "100"]
    assert shown[1].endswith("kept: newest") and shown[2].endswith("removed")
    assert shown[3] == "would remove 1 of 2 checkpoints, 3.20 MB"
    assert (checkpoints / "step-100").exists()
    done = stoker("checkpoint", "prune", "ckpt", "--keep", "1", code=0)
    assert done.out.splitlines()[-1] == "removed 1 of 2 checkpoints, 3.20 MB"
    assert os.listdir(checkpoints) == ["step-200"]


def test_prune_keeps_the_best(stoker, checkpoints):
    words = ("checkpoint", "prune", "ckpt", "--keep", "1", "--dry-run", "--best", "1", "--metric")
    shown = stoker(*words, "lr_loss", code=0).out.splitlines()
    assert shown[2].endswith("removed")  # no step has that metric
    manifest = checkpoints / "step-100/manifest.json"
    text = manifest.read_text().replace('"epoch":10', '"val_loss":0.5')
    digits = text.index('"crc32c": "') + len('"crc32c": "')
    zeroed = text[:digits] + "00000000" + text[digits + 8 :]
    manifest.write_text(zeroed[:digits] + f"{crc32c(zeroed.encode()):08x}" + zeroed[digits + 8 :])
    assert stoker(*words, "val_loss", code=0).out.splitlines()[2].endswith("kept: best")


def test_prune_never_removes_the_last_valid_step(stoker, checkpoints):
    (checkpoints / "step-200/manifest.json").unlink()
    answer = json.loads(stoker("checkpoint", "prune", "ckpt", "--keep", "1", "--json", code=0).out)
    assert [(step["step"], step["state"], step["reason"]) for step in answer["steps"]] == [
        (200, "torn", "invalid, but newer than kept steps"),
        (100, "valid", "newest"),
    ]
    (checkpoints / "step-100/manifest.json").unlink()
    refused = stoker("checkpoint", "prune", "ckpt", "--keep", "1", code=2)
    assert refused.err == ("ckpt: no intact checkpoint, so nothing is removed\n  try: stoker checkpoint verify ckpt\n")
    assert sorted(os.listdir(checkpoints)) == ["step-100", "step-200"]


def test_prune_removes_leftovers_of_ended_saves(stoker, checkpoints):
    old = time.time() - 7200
    for name in (".step-300.x.0", ".step-100.abc.removed"):
        (checkpoints / name).mkdir()
    (checkpoints / ".step-300.x.0/lease.json").touch()
    os.utime(checkpoints / ".step-300.x.0", (old, old))
    stoker("checkpoint", "prune", "ckpt", "--keep", "2", "--dry-run", code=0)
    assert len(os.listdir(checkpoints)) == 4
    done = stoker("checkpoint", "prune", "ckpt", "--keep", "2", code=0)
    assert done.out.splitlines()[-1] == "removed 2 leftover folders of ended saves"
    assert sorted(os.listdir(checkpoints)) == ["step-100", "step-200"]


def test_prune_rejects_invalid_options(stoker, checkpoints):
    def error(*words):
        return stoker("checkpoint", "prune", *words).err

    assert error("ckpt") == "checkpoint prune: --keep is required\n  try: --keep 3\n"
    assert error("ckpt", "--keep", "0") == "checkpoint prune: --keep: 0 is not between 1 and 1000000\n"
    both = "checkpoint prune: --best and --metric: set both or neither\n  try: --best 2 --metric val_top1\n"
    assert error("ckpt", "--keep", "1", "--best", "1") == both == error("ckpt", "--keep", "1", "--metric", "lr")
    assert error("ckpt", "--keep", "1", "--every", "0s") == "checkpoint prune: --every: must be at least 1s\n"
    checkpoints.joinpath("none").mkdir()
    assert error("ckpt/none", "--keep", "1") == "ckpt/none: no checkpoint\n"


def test_a_checkpoint_of_a_newer_stoker_is_not_reported_as_damaged(stoker, checkpoints):
    manifest = checkpoints / "step-200/manifest.json"
    text = manifest.read_text().replace('"version": 1', '"version": 9')
    digits = text.index('"crc32c": "') + len('"crc32c": "')
    zeroed = text[:digits] + "00000000" + text[digits + 8 :]
    manifest.write_text(zeroed[:digits] + f"{crc32c(zeroed.encode()):08x}" + zeroed[digits + 8 :])
    done = stoker("checkpoint", "verify", "ckpt/step-200", code=2)
    assert done.err == "ckpt/step-200/manifest.json: version 9 is not supported (this Stoker version reads version 1)\n"


def test_checksums_match_the_format_page(exported):
    text = (exported / "world-2/step-200/manifest.json").read_text()
    manifest = json.loads(text)
    assert crc32c(text.replace(manifest["crc32c"], "00000000", 1).encode()) == int(manifest["crc32c"], 16)
    file = min(manifest["files"], key=lambda file: file["bytes"])
    content = (exported / "world-2/step-200" / file["path"]).read_bytes()
    assert len(content) == file["bytes"] < 4 << 20
    assert crc32c(content) == int(file["crc32c"], 16)


@pytest.fixture
def run(stoker, exported) -> Path:
    """A run with the checkpoints of two ranks."""
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.ended(1, run_folders.BEGIN + 9, "failed", 137)
    (folder.attempt(1) / "job.yaml").write_text("name: resnet20\nrun: 'true'\n")
    shutil.copytree(exported / "world-2", folder.path / "checkpoints")
    return folder.path


def test_a_run_name_selects_its_checkpoints(stoker, run):
    for words in ([], ["last"], [run.name], [run.name[:-4]], [f"runs/{run.name}"], [f"runs/{run.name}/"]):
        listed = json.loads(stoker("checkpoint", "list", *words, "--json", code=0).out)
        assert [(step["step"], step["state"]) for step in listed["steps"]] == [(200, "valid"), (100, "valid")], words
    for word in ("last", run.name, f"runs/{run.name}"):
        done = stoker("checkpoint", "verify", word, code=0)
        assert [line.partition(": ")[2] for line in done.out.splitlines()] == [
            "step 200, 11 tensors in 4 files, 3.20 MB, every byte verified",
            "step 100, 11 tensors in 4 files, 3.20 MB, every byte verified",
        ], word


def test_checkpoints_of_a_run_are_found_in_a_different_directory(stoker, run):
    saved = stoker.folder / "saved" / run.name
    saved.parent.mkdir()
    (run / "checkpoints").rename(saved)
    (run / "attempts/1/job.yaml").write_text(
        f"name: resnet20\nrun: 'true'\ncheckpoint: {{directory: {saved.parent}}}\n"
    )
    for word in ("last", run.name, f"runs/{run.name}/"):
        listed = json.loads(stoker("checkpoint", "list", word, "--json", code=0).out)
        assert (listed["directory"], len(listed["steps"])) == (str(saved), 2)


def test_a_resume_names_skipped_checkpoints(stoker, run):
    manifest = run / "checkpoints/step-200/manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    answer = stoker("checkpoint", "latest", "last", code=0).err
    assert answer.startswith("skipped step-200: manifest.json: ")
    resumed = stoker("resume", "last", code=0)
    begun = f"run {run.name}   attempt 2, from runs/{run.name}/checkpoints/step-100\n{answer}"
    assert resumed.err.startswith(begun + "done, ")


def test_a_run_without_checkpoints_names_the_directory(stoker, run):
    shutil.rmtree(run / "checkpoints")
    for command in ("list", "verify"):
        refused = stoker("checkpoint", command, "last", code=1)
        assert refused.err == f"run {run.name}: no checkpoint yet (runs/{run.name}/checkpoints)\n"
    assert stoker("checkpoint", "list", "nosuch", code=1).err.startswith("run 'nosuch': ")
