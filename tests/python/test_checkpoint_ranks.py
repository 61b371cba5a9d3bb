"""stoker.checkpoint on several ranks: with data parallelism ranks share replicated tensors, with FSDP2 each rank saves its
rows, and any number of ranks loads either."""

import json
import os
import socket
import subprocess
import sys

import pytest
import stoker
import torch
from running import Process
from stoker import checkpoint

PROLOGUE = """
import os, sys, torch
import torch.distributed as dist
from stoker import checkpoint
folder = sys.argv[1]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 301), torch.nn.BatchNorm1d(301), torch.nn.Linear(301, 130))
"""
# Without it a gloo thread may free a tensor while the interpreter exits, and the process is aborted
# (pytorch/pytorch#179291).
EPILOGUE = """
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def ranks(tmp_path, module_environment):
    """ranks(world, code) runs `code` between prologue and epilogue on `world` ranks; returns their outputs."""

    def run(world, code):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        processes = []
        for rank in range(world):
            place = {"RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            environment = module_environment | {name: str(value) for name, value in place.items()}
            environment["OMP_NUM_THREADS"] = "1"
            command = [sys.executable, "-c", PROLOGUE + code + EPILOGUE, tmp_path / "ckpt"]
            pipe = subprocess.PIPE
            processes.append(Process(command, env=environment, stdout=pipe, stderr=pipe, text=True))
        results = [process.communicate() for process in processes]
        codes = [process.returncode for process in processes]
        assert codes == [0] * world, "\n".join(err for _, err in results)
        return [out for out, _ in results]

    return run


def test_ranks_share_replicated_tensors_and_rank_0_saves_the_rest(ranks, tmp_path):
    ranks(
        3,
        """
ddp = torch.nn.parallel.DistributedDataParallel(model(), broadcast_buffers=False)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    torch.manual_seed(100 * step + rank)  # different data gives different batch-norm statistics
    optimizer.zero_grad()
    ddp(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    saving = checkpoint.async_save(
        {"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "rank": rank}, folder, step=step,
        rank_state={"rng": torch.get_rng_state().numpy().tobytes(), "rank": rank})
saving.wait()
if rank == 0:
    torch.save({"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict()}, folder + ".pt")
for target in (model(), ):
    state = checkpoint.load(folder, into={"model": target.state_dict()})
    assert state.rank_state["rank"] == rank and state["rank"] == 0
    assert all(torch.equal(a, b) for a, b in zip(target.parameters(), ddp.module.parameters()))
""",
    )
    folder = tmp_path / "ckpt"
    expected, state = torch.load(f"{folder}.pt", weights_only=True), checkpoint.load(folder)
    assert state.step == 1 and state.world_size == 3 and state.rank_state is None and state["rank"] == 0
    assert all(torch.equal(state["model"][name], tensor) for name, tensor in expected["model"].items())
    for number, of_tensor in expected["optimizer"]["state"].items():
        saved = state["optimizer"]["state"][number]["momentum_buffer"]
        assert torch.equal(saved, of_tensor["momentum_buffer"])
    manifest = json.loads((folder / "step-1/manifest.json").read_text())
    sizes = {file["rank"]: 0 for file in manifest["files"]}
    for file in manifest["files"]:
        sizes[file["rank"]] += file["bytes"] - file["header_bytes"]
    assert len(sizes) == 3 and max(sizes.values()) < 0.6 * sum(sizes.values())
    holders = {
        file["rank"] for file in manifest["files"] for piece in file["pieces"] if piece["name"].startswith("1.running")
    }
    assert holders == {0}


FSDP = """
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
mesh = init_device_mesh("cpu", (world,))
sharded = model()
fully_shard(sharded, mesh=mesh)
optimizer = torch.optim.AdamW(sharded.parameters(), lr=0.1)
torch.manual_seed(5)
sharded(torch.randn(8, 64)).square().mean().backward()
optimizer.step()
assert any(isinstance(tensor, DTensor) for tensor in sharded.state_dict().values())
"""


def test_sharded_rows_are_saved_by_their_rank_and_loaded_on_any_number_of_ranks(ranks, tmp_path):
    ranks(
        2,
        FSDP
        + """
checkpoint.save({"model": sharded.state_dict(), "optimizer": optimizer.state_dict()}, folder, step=1)
full = {name: t.full_tensor() if isinstance(t, DTensor) else t for name, t in sharded.state_dict().items()}
if rank == 0:
    torch.save(full, folder + ".pt")
""",
    )
    folder = tmp_path / "ckpt"
    expected, state = torch.load(f"{folder}.pt", weights_only=True), checkpoint.load(folder)
    assert list(state["model"]) == list(expected)
    assert all(torch.equal(state["model"][name], tensor) for name, tensor in expected.items())
    moments = state["optimizer"]["state"][0]["exp_avg"]
    assert moments.shape == expected["0.weight"].shape and moments.abs().sum() > 0
    ranks(
        3,
        FSDP
        + """
before = {name: t.full_tensor().clone() for name, t in sharded.state_dict().items() if isinstance(t, DTensor)}
state = checkpoint.load(folder, into={"model": sharded.state_dict(), "optimizer": optimizer.state_dict()}, strict=False)
expected = torch.load(folder + ".pt", weights_only=True)
for name, t in sharded.state_dict().items():
    full = t.full_tensor() if isinstance(t, DTensor) else t
    assert torch.equal(full, expected[name]), name
assert state.differences == [], state.differences
""",
    )


def test_an_unsupported_value_is_named_and_the_next_step_is_saved(ranks, tmp_path):
    outputs = ranks(
        2,
        """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
mesh = init_device_mesh("cpu", (world,))
def attempt(tensor, step):
    try:
        checkpoint.save({"model": {"w": tensor}}, folder, step=step)
    except ValueError as error:
        print(str(error).splitlines()[0])
attempt(distribute_tensor(torch.arange(12.0).reshape(4, 3), mesh, [Shard(1)]), 1)
attempt(DTensor.from_local(torch.ones(4, 3), mesh, [Partial()]), 1)
attempt(torch.full((200, 200), 1.0 + rank), 1)
attempt(distribute_tensor(torch.arange(12.0).reshape(4, 3), mesh, [Replicate()]), 2)
if rank == 0:
    try:
        checkpoint.save({"a": 1}, folder, step=3, timeout=1)
    except TimeoutError as error:
        print(error)
    print(checkpoint.save({"a": 2}, folder + "-alone", step=3, rank=0, world_size=1).name)
dist.barrier()
""",
    )
    for rank, lines in enumerate(text.splitlines() for text in outputs):
        for line in lines[:2]:
            assert line.startswith("checkpoint: tensor 'model.w': is distributed as (")
            assert line.endswith("; only Shard(0) on one mesh axis is supported, with the rest replicated")
        why = "tensor 'w': values on rank 1 differ from rank 0"
        assert lines[2] == f"checkpoint step 1: {'rank 0: ' if rank else ''}{why}"
    assert outputs[0].splitlines()[3:] == ["checkpoint step 3: rank 1 did not write its share within 1.0 s", "step-3"]
    state = checkpoint.load(tmp_path / "ckpt")
    assert state.step == 2 and torch.equal(state["model"]["w"], torch.arange(12.0).reshape(4, 3))


def test_a_failure_on_one_rank_affects_only_that_step(ranks, tmp_path):
    outputs = ranks(
        2,
        """
for step in (10, 20, 30, 40):
    state = {"model": {"w": torch.full((200, 200), float(step))}}
    if rank == 1 and step == 20:
        state["of this rank alone"] = object()
    try:
        checkpoint.save(state, folder, step=step, timeout=5)
    except Exception as error:
        print(str(error).splitlines()[0])
    dist.barrier()
""",
    )
    assert outputs[0] == "checkpoint step 20: rank 1 did not write its share within 5.0 s\n"
    assert outputs[1] == "checkpoint: 'of this rank alone' is an object, which is not supported\n"
    assert sorted(os.listdir(tmp_path / "ckpt")) == ["step-10", "step-30", "step-40"]
    assert (checkpoint.load(tmp_path / "ckpt")["model"]["w"] == 40).all()


def test_ranks_without_a_common_writer_get_a_cure(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("STOKER_ATTEMPT_DIR", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(stoker.InvalidError, match=r"^checkpoint: the ranks have no common name .* \(writer\)"):
        checkpoint.save({"a": 1}, tmp_path, step=1)
    with pytest.raises(stoker.InvalidError, match=r"^checkpoint: rank 5 is outside a world of 2"):
        checkpoint.save({"a": 1}, tmp_path, step=1, rank=5, world_size=2)
    assert os.listdir(tmp_path) == []
