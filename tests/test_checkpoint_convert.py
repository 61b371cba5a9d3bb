"""`stoker checkpoint latest` and `convert`: exchange of checkpoints with other tools in both directions."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import BIN, MODULE
from test_checkpoint import expected_tensors, same_bytes


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """world-2 with step-100 and step-200; expected/ has the contents of step-200."""
    folder = tmp_path_factory.mktemp("checkpoints")
    environment = dict(os.environ, STOKER_EXPORT=str(folder))
    command = [BIN / "checkpoint_test", "--gtest_filter=Export.*"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    return folder


def test_a_single_file_contains_whole_tensors(stoker, exported):
    from safetensors.torch import load_file

    done = stoker("checkpoint", "convert", exported / "world-2", "model.safetensors", code=0)
    assert done.out.startswith(f"{exported}/world-2/step-200 → model.safetensors: 8 tensors in 1 file, ")
    expected, found = expected_tensors(exported, "model"), load_file(stoker.folder / "model.safetensors")
    assert set(found) == set(expected) and all(same_bytes(found[name], expected[name]) for name in expected)
    again = stoker("checkpoint", "convert", exported / "world-2", "model.safetensors", code=1)
    assert again.err == "model.safetensors: already exists\n"
    stoker("checkpoint", "convert", exported / "world-2", "state.safetensors", "--part", "optimizer", code=0)
    assert set(load_file(stoker.folder / "state.safetensors")) == set(expected_tensors(exported, "optimizer"))


def test_tensors_are_selected_and_renamed(stoker, exported):
    from safetensors import safe_open

    def names(*words):
        target = stoker.folder / "chosen.safetensors"
        target.unlink(missing_ok=True)
        stoker("checkpoint", "convert", exported / "world-2/step-200", target, *words, code=0)
        with safe_open(target, framework="pt") as file:
            return set(file.keys())

    assert names("--only", "fc") == {"fc.weight", "fc.bias"}
    assert names("--only", "fc", "--strip", "fc.") == {"weight", "bias"}
    assert names("--only", "*.weight", "--only", "half") == {"conv.weight", "fc.weight", "half"}
    convert = ("checkpoint", "convert", exported / "world-2/step-200", "x.safetensors")
    assert stoker(*convert, "--only", "head", code=2).err == (
        f"{exported}/world-2/step-200: model has no tensor with a matching name (--only)\n"
    )
    assert stoker(*convert, "--part", "head", code=2).err == (
        "checkpoint convert: --part: unknown part 'head' (one of: model, optimizer)\n"
    )


def test_a_folder_round_trips_through_torchs_reader(stoker, exported):
    import torch
    import torch.distributed.checkpoint as dcp

    answer = json.loads(
        stoker("checkpoint", "convert", exported / "world-2", "hf", "--file-size", "800KB", "--json", code=0).out
    )
    assert (answer["tensors"], answer["files"]) == (8, 3) and answer["target"] == "hf"
    index = json.loads((stoker.folder / "hf/model.safetensors.index.json").read_text())
    expected = expected_tensors(exported, "model")
    assert set(index["weight_map"]) == set(expected)
    state = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(str(stoker.folder / "hf")), no_dist=True)
    assert all(same_bytes(state[name], expected[name]) for name in expected)
    stoker("checkpoint", "convert", "hf", "ckpt/step-7", code=0)
    assert "step 7, 8 tensors in 1 file," in stoker("checkpoint", "verify", "ckpt/step-7", code=0).out
    diff = stoker("checkpoint", "diff", exported / "world-2/step-200", "ckpt/step-7", "--json")
    assert {tensor["change"] for tensor in json.loads(diff.out)["tensors"]} == {"same"}


def test_sharded_files_of_torchs_writer_are_combined_or_rejected(stoker):
    import torch
    from safetensors.torch import save_file

    whole = torch.arange(60.0).reshape(6, 10)
    (stoker.folder / "dcp").mkdir()

    def put(number, tensor, offsets):
        info = {"DCP_SHARDING_INFO": json.dumps({"w": {"saved_offsets": offsets}}), "DCP_VERSION": "1.0"}
        save_file({"w": tensor.contiguous()}, stoker.folder / f"dcp/shard-{number}.safetensors", metadata=info)

    put(1, whole[:4], [0, 0])
    put(2, whole[4:, :3], [4, 0])
    hole = stoker("checkpoint", "convert", "dcp", "ckpt/step-1", code=1)
    assert hole.err == "dcp: tensor 'w': 56 of 240 bytes are in no file\n"
    put(3, whole[3:, 3:], [3, 3])
    double = stoker("checkpoint", "convert", "dcp", "ckpt/step-1", code=1)
    assert double.err == "dcp: tensor 'w': two files contain the same elements\n"
    put(3, whole[4:, 3:], [4, 3])
    stoker("checkpoint", "convert", "dcp", "ckpt/step-1", code=0)
    stoker("checkpoint", "convert", "ckpt", "back.safetensors", code=0)
    from safetensors.torch import load_file

    assert torch.equal(load_file(stoker.folder / "back.safetensors")["w"], whole)
    named = stoker("checkpoint", "convert", "dcp", "ckpt/first", code=2)
    assert named.err == "ckpt/first: is not a valid step folder name\n  try: ckpt/first/step-0\n"
    assert stoker("checkpoint", "convert", "dcp", "ckpt/step-1", code=1).err == "ckpt/step-1: already exists\n"


def test_pickled_files_are_converted_by_python(stoker):
    import sys

    import torch

    environment = {
        "PYTHONPATH": str(MODULE),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    state = {"model": {"w": torch.randn(30, 3)}, "epoch": 3}
    torch.save(state, stoker.folder / "in.pt")
    stoker("checkpoint", "convert", "in.pt", "ckpt/step-5", code=0, env=environment)
    assert "1 tensor in 1 file," in stoker("checkpoint", "verify", "ckpt", code=0).out
    done = stoker("checkpoint", "convert", "ckpt", "out.pt", code=0, env=environment)
    assert done.out.startswith("ckpt → out.pt: 1 tensor in 1 file")
    back = torch.load(stoker.folder / "out.pt", weights_only=True)
    assert back["epoch"] == 3 and torch.equal(back["model"]["w"], state["model"]["w"])
    again = stoker("checkpoint", "convert", "ckpt", "out.pt", code=1, env=environment)
    assert again.err == "out.pt: already exists\n"
    torch.save({"f": print}, stoker.folder / "code.pt")
    refused = stoker("checkpoint", "convert", "code.pt", "ckpt/step-6", code=2, env=environment)
    assert refused.err.startswith("code.pt: torch.load() with weights_only failed: ")
    without = stoker("checkpoint", "convert", "in.pt", "ckpt/step-7", code=3, env={"PATH": "/nowhere"})
    assert without.err.startswith("in.pt: needs python3 with torch and the module stoker\n  try: pip ")


def test_a_damaged_checkpoint_is_not_converted(stoker, exported):
    import shutil

    shutil.copytree(exported / "world-2/step-200", stoker.folder / "step-200")
    file = stoker.folder / "step-200/model/shard-00001-model-00001-of-00001.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    refused = stoker("checkpoint", "convert", "step-200", "m.safetensors", code=1)
    assert refused.err.startswith("step-200: model/shard-00001-model-00001-of-00001.safetensors: damaged between bytes")
    assert os.listdir(stoker.folder) == ["step-200"]


def test_latest_prints_the_path_and_skipped_checkpoints(stoker, exported):
    import torch

    found = stoker("checkpoint", "latest", exported / "world-2", code=0)
    assert (found.out, found.err) == (f"{exported}/world-2/step-200\n", "")
    out = stoker.folder / "out"
    for number in (500, 1000):
        (out / f"checkpoint-{number}").mkdir(parents=True)
        torch.save({"w": torch.ones(100)}, out / f"checkpoint-{number}/pytorch_model.bin")
        (out / f"checkpoint-{number}/trainer_state.json").write_text(f'{{"global_step": {number}}}')
    whole = (out / "checkpoint-1000/pytorch_model.bin").read_bytes()
    (out / "checkpoint-1000/pytorch_model.bin").write_bytes(whole[:-30])
    found = stoker("checkpoint", "latest", "out", "--settle", "10ms", code=0)
    assert found.out == "out/checkpoint-500\n"
    assert found.err.startswith("skipped checkpoint-1000: pytorch_model.bin: ")
    answer = json.loads(stoker("checkpoint", "latest", "out", "--settle", "10ms", "--json", code=0).out)
    assert (answer["path"], answer["kind"], answer["step"]) == ("out/checkpoint-500", "hugging face", 500)
    assert [entry["path"] for entry in answer["skipped"]] == ["out/checkpoint-1000"]
    none = stoker("checkpoint", "latest", "out", "--match", "*-1000", "--settle", "10ms", code=1)
    assert none.err.splitlines()[-1] == "out: no intact checkpoint"
    (stoker.folder / "empty").mkdir()
    assert stoker("checkpoint", "latest", "empty", code=1).err == "empty: no checkpoint\n"


def test_latest_recognizes_files_of_torch_and_h5py(stoker, tmp_path):
    import torch

    for name, options in {"old.pt": {}, "nocrc.pt": {}, "legacy.pt": {"_use_new_zipfile_serialization": False}}.items():
        torch.save({"w": torch.ones(10)}, tmp_path / name, **options)
    for number, name in enumerate(["old.pt", "nocrc.pt", "legacy.pt"]):
        os.utime(tmp_path / name, (1_700_000_000 + number, 1_700_000_000 + number))
    found = stoker("checkpoint", "latest", ".", code=0)
    assert found.out == "./nocrc.pt\n"
    assert found.err == "skipped legacy.pt: is a plain pickle, which cannot be checked for completeness\n"


def test_files_of_torch_and_safetensors_are_compared_with_their_batch_norms(stoker):
    import sys

    import torch
    from safetensors.torch import save_file

    environment = {
        "PYTHONPATH": str(MODULE),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    means = {}
    for name, shift in (("a", 0.0), ("b", 4.0)):
        model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5))
        model(torch.randn(64, 3) + shift)
        torch.save({"model": model.state_dict(), "epoch": 3}, stoker.folder / f"{name}.pt")
        save_file(model.state_dict(), stoker.folder / f"{name}.safetensors")
        means[name] = model[1].running_mean.mean().item()
    for kind in ("pt", "safetensors"):
        diff = stoker("checkpoint", "diff", f"a.{kind}", f"b.{kind}", "--json", code=1, env=environment)
        found = json.loads(diff.out)
        assert (found["first"]["label"], found["second"]["label"]) == (f"a.{kind}", f"b.{kind}")
        (layer,) = found["batch_norms"]
        assert (layer["first"]["mean"], layer["second"]["mean"]) == pytest.approx((means["a"], means["b"]), rel=1e-5), (
            kind
        )
    same = stoker("checkpoint", "diff", "a.pt", "a.pt", code=0, env=environment)
    assert same.out.endswith(" are identical\n")
    (stoker.folder / "no.pt").write_text("no checkpoint")
    assert "no.pt" in stoker("checkpoint", "diff", "no.pt", "a.pt", code=2, env=environment).err
