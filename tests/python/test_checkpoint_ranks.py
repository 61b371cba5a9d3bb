"""stoker.checkpoint on several ranks: with data parallelism ranks share replicated tensors, with FSDP2 each rank saves its
rows, and any number of ranks loads either."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import stoker
import torch
from running import Process
from stoker import checkpoint, checkpoint_peers

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
PROLOGUE_OF_FILES = """
import os, sys, torch
from stoker import checkpoint
folder = sys.argv[1]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""
# Without it a gloo thread may free a tensor while the interpreter exits, and the process is aborted
# (pytorch/pytorch#179291).
EPILOGUE = """
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def ranks(tmp_path, module_environment):
    """ranks(world, code) runs `code` between prologue and epilogue on `world` ranks; returns their outputs. Without
    `has_group` no process group exists, and the ranks agree through files, by the name of torchrun's attempt."""

    def run(world, code, has_group=True):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        processes = []
        for rank in range(world):
            place = {"RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            environment = module_environment | {name: str(value) for name, value in place.items()}
            environment["OMP_NUM_THREADS"] = "1"
            program = PROLOGUE + code + EPILOGUE
            if not has_group:
                environment["TORCHELASTIC_RUN_ID"] = str(port)
                program = PROLOGUE_OF_FILES + code
            command = [sys.executable, "-c", program, tmp_path / "ckpt"]
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
        checkpoint.save(state, folder, step=step)
    except Exception as error:
        print(str(error).splitlines()[0])
    dist.barrier()
""",
    )
    refused = "checkpoint: 'of this rank alone' is an object, which is not supported\n"
    assert outputs[0] == f"checkpoint step 20: rank 1: {refused}"  # at once, not after the timeout
    assert outputs[1] == refused
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


def test_a_refused_folder_is_refused_on_all_ranks_at_once(ranks, tmp_path):
    checkpoint.save({"a": 1}, tmp_path / "ckpt", step=1, run="one")
    checkpoint.close()
    outputs = ranks(
        2,
        """
for run in ("two", "one"):
    try:
        print(checkpoint.save({"a": 2}, folder, step=2, run=run).name)
    except Exception as error:
        print(type(error).__name__, error)
""",
    )
    refused = f"ExistsError {tmp_path}/ckpt: contains checkpoints of run 'one', not of 'two' (checkpoint.directory)"
    assert [text.splitlines() for text in outputs] == [[refused, "step-2"]] * 2


@pytest.mark.parametrize("late", [0, 1])
def test_a_save_after_a_refused_one_succeeds_whichever_rank_is_late(ranks, tmp_path, late):
    checkpoint.save({"a": 1}, tmp_path / "ckpt", step=1, run="one")
    checkpoint.close()
    outputs = ranks(
        2,
        f"""
import time
for run in ("two", "two", "one", "one"):
    if rank == {late}:
        time.sleep(0.5)
    try:
        print(checkpoint.save({{"a": 2}}, folder, step=2, run=run, timeout=60).name)
    except Exception as error:
        print(type(error).__name__)
""",
    )
    assert [text.split() for text in outputs] == [["ExistsError", "ExistsError", "step-2", "step-2"]] * 2


def test_a_rank_without_a_saver_keeps_step_with_its_peers(ranks, tmp_path):
    outputs = ranks(
        2,
        """
from stoker import _core
create = _core.CheckpointSaver
class Fails:
    def __init__(self, options):
        raise OSError("no space")
for step, is_failing in ((1, True), (1, False), (2, True), (3, False)):
    _core.CheckpointSaver = Fails if is_failing and rank == 1 else create
    checkpoint.close() if rank == 1 and is_failing else None
    try:
        print(checkpoint.save({"a": 2}, folder, step=step, timeout=60).name)
    except Exception as error:
        print("refused" if "no space" in str(error) else error)
""",
    )
    assert [text.splitlines() for text in outputs] == [["refused", "step-1", "refused", "step-3"]] * 2


def test_ranks_of_one_name_load_whatever_other_names_have_loaded(ranks, tmp_path):
    checkpoint.save({"a": 1}, tmp_path / "ckpt", step=1)
    checkpoint.close()
    outputs = ranks(
        3,
        """
for load in range(2):
    if rank < 2:
        checkpoint.load(folder, rank=rank, world_size=2, writer="pair", timeout=60)
print(checkpoint.load(folder, writer="all", timeout=60).step)
""",
    )
    assert outputs == ["1\n"] * 3


def test_one_row_that_differs_between_replicas_is_found(ranks, tmp_path):
    outputs = ranks(
        2,
        """
torch.manual_seed(1)
weights = torch.randn(5000, 64)
for step, row in enumerate((None, 0, 4999, 2345)):
    replica = weights.clone()
    if rank == 1 and row is not None:
        replica[row, 5] += 1
    try:
        checkpoint.save({"model": {"w": replica}, "small": weights[0] + rank}, folder, step=step)
        print("saved")
    except ValueError as error:
        print(str(error).partition("tensor ")[2])
""",
    )
    assert [text.splitlines() for text in outputs] == [["saved"] + ["'w': values on rank 1 differ from rank 0"] * 3] * 2


# A tensor of 3 rows per rank, so that each rank reads other files of a step.
SHARDED = """
import json
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from stoker import checkpoint_load
mesh = init_device_mesh("cpu", (world,))
def sharded(value):
    return distribute_tensor(torch.full((3 * world, 5000), float(value)), mesh, [Shard(0)])
def attempt(load, target):
    try:
        state = load()
        assert (target.to_local() == state.step).all()
        return [state.step, [why for _, why in state.skipped]]
    except Exception as error:
        assert (target.to_local() == -1).all()  # nothing is written before all ranks have verified
        return [type(error).__name__, str(error)]
"""

DAMAGES = ("flipped", "truncated", "missing", "no manifest", "torn manifest", "extra", "removed")


def damage(step, kind, number):
    files = sorted((step / "model").iterdir())
    file = files[number % len(files)]
    manifest = step / "manifest.json"
    if kind == "flipped":
        content = bytearray(file.read_bytes())
        content[-1 - 997 * number] ^= 1
        file.write_bytes(content)
    elif kind == "truncated":
        os.truncate(file, file.stat().st_size - 1 - number)
    elif kind == "missing":
        file.unlink()
    elif kind == "no manifest":
        manifest.unlink()
    elif kind == "torn manifest":
        os.truncate(manifest, manifest.stat().st_size // 2)
    elif kind == "extra":
        shutil.copy(file, file.with_name("shard-00009-model-00001-of-00001.safetensors"))
    elif kind == "removed":
        shutil.rmtree(step)


@pytest.mark.parametrize("world", [2, pytest.param(3, marks=pytest.mark.soak)])
def test_all_ranks_load_the_same_step_or_raise_the_same_error(ranks, tmp_path, world):
    ranks(world, SHARDED + "for step in (1, 2, 3): checkpoint.save({'model': {'w': sharded(step)}}, folder, step=step)")
    choose, expected = random.Random(world), {}
    for number in range(14):
        folder = tmp_path / "ckpt" / f"layout-{number}"
        valid = [1, 2, 3]
        for step in (1, 2, 3):
            shutil.copytree(tmp_path / f"ckpt/step-{step}", folder / f"step-{step}")
        kinds = [DAMAGES[number % len(DAMAGES)]] + [choose.choice([None, *DAMAGES]) for _ in range(2)]
        for step, kind in zip((3, 2, 1), kinds, strict=True):
            if kind is not None:
                damage(folder / f"step-{step}", kind, choose.randrange(world))
                valid.remove(step)
        # Views of the ranks: one of them does not see one of the steps.
        blind, unseen = choose.randrange(world), choose.choice([0, 1, 2, 3])
        for rank in range(world):
            view = tmp_path / "ckpt" / f"layout-{number}-of-{rank}"
            view.mkdir()
            for step in sorted(path.name for path in folder.iterdir()):
                if (rank, step) != (blind, f"step-{unseen}"):
                    (view / step).symlink_to(folder / step)
        if unseen in valid:
            valid.remove(unseen)
        expected[number] = max(valid, default="NotFoundError")
    outputs = ranks(
        world,
        SHARDED
        + """
import re
checkpoint_load._APPEARS_WITHIN_S = 0.5
for number in range(14):
    view = f"{folder}/layout-{number}-of-{rank}"
    results = []
    for step in (None, 1, 2, 3):
        target = sharded(-1)
        result = attempt(lambda: checkpoint.load(view, step=step, into={"model": {"w": target}}), target)
        results.append(json.loads(re.sub("-of-[0-9]", "", json.dumps(result))))
    print(json.dumps(results))
""",
    )
    for lines in zip(*(text.splitlines() for text in outputs), strict=True):
        assert len(set(lines)) == 1, lines
    found = [json.loads(line) for line in outputs[0].splitlines()]
    assert {number: results[0][0] for number, results in enumerate(found)} == expected
    for results in found:
        loadable = [step for step, result in zip((1, 2, 3), results[1:], strict=True) if result[0] == step]
        assert results[0][0] == max(loadable, default="NotFoundError")


def test_a_step_that_appears_late_on_a_node_is_awaited(ranks, tmp_path):
    for step in (1, 2):
        checkpoint.save({"model": {"w": torch.full((6, 5000), float(step))}}, tmp_path / "ckpt", step=step)
    (tmp_path / "ckpt/view").mkdir()
    (tmp_path / "ckpt/view/step-1").symlink_to(tmp_path / "ckpt/step-1")
    outputs = ranks(
        2,
        SHARDED
        + """
import threading, time
def appear():
    time.sleep(1)
    os.symlink(f"{folder}/step-2", f"{folder}/view/step-2")
if rank == 1:
    threading.Thread(target=appear).start()
target = sharded(-1)
view = folder if rank == 0 else f"{folder}/view"
print(attempt(lambda: checkpoint.load(view, into={"model": {"w": target}}), target))
print(checkpoint.latest(view).step)
""",
    )
    assert outputs == ["[2, []]\n2\n"] * 2


@pytest.mark.parametrize("has_group", [True, False])
def test_a_load_that_one_rank_cannot_do_ends_on_all_ranks_with_one_error(ranks, tmp_path, has_group):
    for step in (1, 2):
        checkpoint.save({"model": {"w": torch.full((40,), float(step))}}, tmp_path / "ckpt", step=step)
    shutil.copytree(tmp_path / "ckpt/step-1", tmp_path / "ckpt/other/step-1")
    outputs = ranks(
        2,
        """
def attempt(**arguments):
    try:
        print(checkpoint.load(arguments.pop("folder", folder), **arguments).step)
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "))
attempt()
attempt(step=1 + rank)
attempt(step=None if rank else 1)
attempt(step="x" if rank else 1)
attempt(into={"model": {"w": torch.zeros(40 + rank)}})
attempt(into=5 if rank else None)
attempt(only="nothing" if rank else "model")
attempt(step=9)
attempt(folder=folder + "/step-2")
attempt(folder=folder + "/step-9")
""",
        has_group,
    )
    assert outputs[0] == outputs[1]
    lines = outputs[0].splitlines()
    assert lines[0] == "2" and lines[8] == "2"
    assert lines[1] == "InvalidError checkpoint: rank 1 loads step 2, but rank 0 step 1"
    assert lines[2] == "InvalidError checkpoint: rank 1 loads the newest step, but rank 0 step 1"
    assert lines[3] == "InvalidError rank 1: checkpoint: step: 'x' is not a whole number of at least 0"
    assert lines[4].startswith(f"InvalidError rank 1: {tmp_path}/ckpt/step-2: does not fit: 'model.w' is F32 [41], but")
    assert lines[5] == "InvalidError rank 1: checkpoint: into is int, expected a dict"
    assert lines[6] == f"InvalidError rank 1: {tmp_path}/ckpt/step-2: has no values named 'nothing' (only)"
    assert lines[7] == f"NotFoundError {tmp_path}/ckpt/step-9: no such checkpoint"
    assert lines[9] == f"NotFoundError {tmp_path}/ckpt/step-9: no checkpoint"
    assert sorted(os.listdir(tmp_path / "ckpt")) == ["other", "step-1", "step-2"]


@pytest.mark.parametrize(
    ("absent", "has_group"),
    [
        (0, True),
        (1, False),
        pytest.param(0, False, marks=pytest.mark.soak),
        pytest.param(1, True, marks=pytest.mark.soak),
    ],
)
def test_a_rank_that_does_not_load_is_named(ranks, tmp_path, absent, has_group):
    checkpoint.save({"a": 1}, tmp_path / "ckpt", step=1)
    outputs = ranks(
        2,
        f"absent = {absent}"
        """
import time
for call in (checkpoint.load, checkpoint.latest):
    if rank != absent:
        try:
            call(folder, timeout=1)
        except TimeoutError as error:
            print(error)
    else:
        time.sleep(0.1)
print(checkpoint.load(folder, rank=0, world_size=1).step)
""",
        has_group,
    )
    cure = "  try: call load() on every rank, or on one rank with rank=0, world_size=1"
    lines = outputs[1 - absent].splitlines()
    assert lines[:2] == [f"checkpoint: rank {absent} did not call load() within 1 s", cure]
    assert lines[2] == f"checkpoint: rank {absent} did not call latest() within 1 s" and lines[4] == "1"
    assert outputs[absent] == "1\n"


def test_steps_removed_by_retention_while_ranks_load_do_not_divide_them(ranks, tmp_path, module_environment):
    code = """
import itertools, sys, time, torch
from stoker import checkpoint
for step in itertools.count(1):
    checkpoint.save({"model": {"w": torch.full((6, 5000), float(step))}}, sys.argv[1], step=step, keep_last=1)
    print(step, flush=True)
    time.sleep(0.05)
"""
    command = [sys.executable, "-c", code, tmp_path / "ckpt"]
    saving = Process(command, env=module_environment, stdout=subprocess.PIPE, text=True)
    try:
        saving.stdout.readline()
        outputs = ranks(
            2,
            SHARDED
            + """
for _ in range(20):
    target = sharded(-1)
    print(attempt(lambda: checkpoint.load(folder, into={"model": {"w": target}}), target)[0])
""",
        )
    finally:
        saving.kill()
        saving.wait()
    assert outputs[0] == outputs[1]
    steps = [line for line in outputs[0].splitlines() if line.isdigit()]
    assert len(steps) > 10 and int(steps[-1]) > int(steps[0])


def test_ranks_that_cannot_agree_get_a_cure(tmp_path, monkeypatch):
    checkpoint.save({"a": 1}, tmp_path, step=1)
    for name in ("STOKER_ATTEMPT_DIR", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    assert checkpoint.load(tmp_path, rank=1, world_size=2).step == 1  # alone, as rank 1
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for call in (checkpoint.load, checkpoint.latest):
        with pytest.raises(
            stoker.InvalidError, match=r"^checkpoint: the ranks have no way to agree on a step\n  try: "
        ):
            call(tmp_path)
        with pytest.raises(TimeoutError, match=r"^checkpoint: rank 1 did not call"):
            call(tmp_path, writer="shared", timeout=0.2)
    assert checkpoint.load(tmp_path, rank=0, world_size=1).step == 1
    assert os.listdir(tmp_path) == ["step-1"]


def test_files_of_an_earlier_attempt_with_the_same_name_are_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_peers, "_count", lambda _name: 0)  # both ranks are threads of this process
    folder = tmp_path / ".load-shared.0"
    folder.mkdir()
    (folder / "0.verdict").write_text(json.dumps({"step": 1, "marks": ["0123456789abcdef"]}))

    def agree(rank: int) -> dict:
        group = checkpoint_peers.peers(rank, 2, tmp_path, is_given=True, writer="shared", timeout=60, call="load()")
        _, verdict = group.agree(lambda: (None, {"step": 2}), lambda votes: {"step": min(v["step"] for v in votes)})
        group.part()
        return verdict

    with ThreadPoolExecutor(2) as pool:
        peer = pool.submit(agree, 1)
        time.sleep(0.2)  # rank 1 sees the old verdict first
        assert [agree(0)["step"], peer.result()["step"]] == [2, 2]
    assert not folder.exists()
