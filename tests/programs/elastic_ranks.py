"""One rank of tests/python/test_checkpoint_elastic.py: elastic_ranks.py FOLDER. Every kind of state is saved in each way on 1 to
4 ranks and loaded on 1 to 4 ranks. Prints the compared combinations as JSON."""

import collections
import copy
import json
import math
import sys
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from stoker import checkpoint
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard

RANKS = 4
WORLDS = range(1, RANKS + 1)
WAYS = ("new tensors", "background, in place", "retention, a part")
TYPES = (
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float64,
    torch.int64,
    torch.int8,
    torch.bool,
    torch.complex64,
)


def numbers(shape: tuple[int, ...], kind: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * 50).to(kind)


def same(found: object, expected: object) -> bool:
    """The same types and values; of tensors the same bits."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, torch.Tensor)
        one, other = found.detach().contiguous().reshape(-1), expected.detach().contiguous().reshape(-1)
        is_like = (found.dtype, found.shape) == (expected.dtype, expected.shape)
        return is_like and torch.equal(one.view(torch.uint8), other.view(torch.uint8))
    if isinstance(expected, numpy.ndarray):
        assert isinstance(found, numpy.ndarray)
        return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[key], value) for key, value in expected.items())
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == expected or (found != found and expected != expected)


class Kind:
    """A state: what rank `rank` of `world` saves at a step, and what every rank has to load."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def state(self, world: int, step: int) -> dict:
        raise NotImplementedError

    def full(self, state: dict) -> dict:
        """The state with whole tensors. Called on all ranks of the world."""
        return state

    def target(self, world: int) -> dict:
        """A state of other values to be filled."""
        raise NotImplementedError


class Plain(Kind):
    """Tensors of both libraries, large and small, equal on all ranks."""

    def state(self, world: int, step: int) -> dict:
        found = {str(kind)[6:]: numbers((5, 3), kind, step) for kind in TYPES}
        found |= {f"large {kind}"[6:]: numbers((307, 211), kind, step + 1) for kind in TYPES[:4]}
        found |= {
            "scalar": torch.tensor(step),
            "empty": torch.empty(0, 5),
            "one row": numbers((1, 40_000), TYPES[0], step),
        }
        found["turned"] = numbers((211, 307), TYPES[0], step).T
        array = numpy.random.default_rng(step).integers(-9, 9, (303, 70)).astype("i4")
        return {"model": found, "arrays": [array, numpy.float32(step), numpy.arange(step)]}

    def target(self, world: int) -> dict:
        return {"model": self.state(world, 70)["model"]}


def network() -> torch.nn.Sequential:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 301), torch.nn.BatchNorm1d(301), torch.nn.Linear(301, 130))


class Replicas(Kind):
    """DistributedDataParallel: equal parameters, and statistics of each rank: rank 0's are saved."""

    def state(self, world: int, step: int) -> dict:
        ddp = torch.nn.parallel.DistributedDataParallel(
            network(), process_group=MESHES[world].get_group(), broadcast_buffers=False
        )
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(100 * step + self.rank)
        ddp(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        return {"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}

    def target(self, world: int) -> dict:
        return {"model": {name: tensor.clone() for name, tensor in network().state_dict().items()}}


SHAPES = {"w": (301, 70), "few": (3, 9000), "small": (7, 2), "bias": (5,)}


class Rows(Kind):
    """Tensors sharded by rows, as FSDP2 does: with fewer rows than ranks, with a remainder, hybrid, and replicated ones."""

    def state(self, world: int, step: int) -> dict:
        mesh, placements = MESHES[world], [Shard(0)]
        if world == RANKS and step == 2:
            mesh, placements = HYBRID, [Replicate(), Shard(0)]
        found = {}
        for seed, (name, shape) in enumerate(SHAPES.items()):
            kind = TYPES[(seed + step) % 2]
            found[name] = sharded(numbers(shape, kind, seed + 10 * step), mesh, placements)
        found["replicated"] = sharded(numbers((40, 3), TYPES[0], step), MESHES[world], [Replicate()])
        return {"model": found, "step": step}

    def full(self, state: dict) -> dict:
        return {"model": {name: tensor.full_tensor() for name, tensor in state["model"].items()}, "step": state["step"]}

    def target(self, world: int) -> dict:
        found = {}
        for seed, (name, shape) in enumerate(SHAPES.items()):
            found[name] = sharded(torch.full(shape, -1.0).to(TYPES[(seed + 1) % 2]), MESHES[world], [Shard(0)])
        return {"model": found}


def sharded(whole: torch.Tensor, mesh: DeviceMesh, placements: list) -> DTensor:
    parts, at = mesh.size(len(placements) - 1), mesh.get_coordinate()[-1]
    each = -(-whole.shape[0] // parts)
    local = whole[at * each : (at + 1) * each] if placements[-1].is_shard() else whole
    return DTensor.from_local(
        local.clone(), mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride()
    )


class Optimizer(Kind):
    """fully_shard() with AdamW: the optimizer's state is sharded, too."""

    def made(self, world: int, step: int) -> tuple:
        model = network()
        fully_shard(model, mesh=MESHES[world])
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        torch.manual_seed(step)
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        return model, optimizer

    def state(self, world: int, step: int) -> dict:
        model, optimizer = self.made(world, step)
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def full(self, state: object) -> object:
        if isinstance(state, DTensor):
            return state.full_tensor()
        if isinstance(state, dict):
            return type(state)((key, self.full(value)) for key, value in state.items())
        return [self.full(value) for value in state] if isinstance(state, list) else state

    def target(self, world: int) -> dict:
        return self.state(world, 70)


class Objects(Kind):
    """Values without tensors, nested in each other, and values of each rank."""

    def state(self, world: int, step: int) -> dict:
        ordered = collections.OrderedDict([("z", step), ("a", (1, [2, {"b": b"\0\xff" * step}]))])
        numbers = (0, -5, 2**70 + step, 0.1 * step, -0.0, math.inf, math.nan, 1 + 2j, None, True)
        keys = {0: "a", 1.5: ["b"], None: "c", (1, "x"): {"d": collections.Counter({30: step})}}
        return {"model": {"w": torch.tensor([step])}, "plain": [ordered, numbers, keys, "grüße\n\0", numpy.uint8(step)]}

    def target(self, world: int) -> dict:
        return {"model": {"w": torch.tensor([-1])}}


KINDS = {"plain": Plain, "replicas": Replicas, "rows": Rows, "optimizer": Optimizer, "objects": Objects}


def rank_values(rank: int, step: int) -> dict:
    return {"rank": rank, "random": bytes([rank, step]) * 3, "loss": 0.1 * rank, "name": f"ränk {rank}"}


def saved(kind: Kind, way: str, world: int, folder: Path) -> dict:
    """Saves on this rank and returns the whole state of the last step."""
    steps = (1, 2) if way == "retention, a part" else (1,)
    for step in steps:
        state = kind.state(world, step)
        options = {
            "rank": kind.rank,
            "world_size": world,
            "writer": "saved",
            "timeout": 120,
            "rank_state": rank_values(kind.rank, step),
        }
        if len(steps) > 1:
            options["keep_last"] = 1
        if way == "background, in place":
            expected = copy.deepcopy(kind.full(state))
            saving = checkpoint.async_save(state, folder, step=step, **options)
            for tensor in state["model"].values():
                tensor.detach().zero_()  # as a training that continues
            saving.wait()
        else:
            checkpoint.save(state, folder, step=step, hyper_parameters={"lr": 0.1, "step": step}, **options)
            expected = kind.full(state)
    checkpoint.close(folder)
    return expected


def check_loaded(kind: Kind, way: str, worlds: tuple[int, int], folder: Path, expected: dict) -> None:
    world = worlds[1]
    options = {"rank": kind.rank, "world_size": world, "writer": f"loaded{world}", "timeout": 120}
    if way == "background, in place":
        target = kind.target(world)
        loaded = checkpoint.load(folder, into=target, strict=not isinstance(kind, Rows), **options)
        whole = kind.full(target | {"step": 1}) if isinstance(kind, (Rows, Optimizer)) else target
        for part in target:
            for name, value in whole[part].items():
                assert same(value, expected[part][name]), (part, name)
        others = {key: value for key, value in loaded.items() if key not in target}
        assert same(others, {key: value for key, value in expected.items() if key not in target})
    elif way == "retention, a part":
        loaded = checkpoint.load(folder, only="model", **options)
        assert sorted(path.name for path in folder.glob("step-*")) == ["step-2"] and loaded.step == 2
        assert list(loaded) == ["model"] and same(dict(loaded["model"]), dict(expected["model"]))
    else:
        loaded = checkpoint.load(folder, **options)
        assert same(dict(loaded), expected) and loaded.hyper_parameters == {"lr": 0.1, "step": 1}
    assert loaded.skipped == [] and loaded.world_size == worlds[0]
    own = rank_values(kind.rank, loaded.step)
    assert loaded.rank_state == (own if worlds[0] == world else None)


def main(folder: Path) -> None:
    rank, compared = dist.get_rank(), []
    for name, make in KINDS.items():
        for way in WAYS:
            for world in WORLDS:
                here = folder / f"{name}-{WAYS.index(way)}-{world}"
                expected = [None]
                if rank < world:
                    expected = [saved(make(rank), way, world, here)]
                dist.broadcast_object_list(expected, 0)  # rank 0's statistics are the saved ones
                for other in WORLDS:
                    if rank < other:
                        check_loaded(make(rank), way, (world, other), here, expected[0])
                        compared.append([name, way, world, other])
                dist.barrier()
    print(json.dumps(compared))


dist.init_process_group("gloo")
torch.set_num_threads(1)
MESHES = {world: DeviceMesh("cpu", list(range(world))) for world in WORLDS}
HYBRID = DeviceMesh("cpu", [[0, 1], [2, 3]])
main(Path(sys.argv[1]))
dist.barrier()
dist.destroy_process_group()
