"""BatchNorm_view: the statistics and parameters of batch normalization layers in checkpoints."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stoker import notebook_figures
from stoker.errors import InvalidError, NotFoundError, StokerError
from stoker.notebook_logs import Job, jobs, package

_VALUES = ("running_mean", "running_var", "weight", "bias")
# What DistributedDataParallel and torch.compile put before the names.
_WRAPPERS = ("module.", "_orig_mod.")


def BatchNorm_view(jobid: Any, model: Any, labels: Sequence[str] | None = None) -> None:  # noqa: N802 (of the course)
    """Shows the means of running_mean, running_var, weight and bias over each batch normalization layer, with a line for each
    job. `model` gives the layers and is not changed. The checkpoints are checkpoints/JOB_*, or in a run of Stoker."""
    torch = package("torch", "BatchNorm_view")
    given = jobs(jobid, "BatchNorm_view")
    if labels is not None and (isinstance(labels, str) or len(labels) != len(given)):
        raise InvalidError(f"BatchNorm_view: labels={labels!r}: expected a list of {len(given)}, one for each job")
    kind = torch.nn.modules.batchnorm._BatchNorm
    found = {_plain(name): layer for name, layer in model.named_modules() if isinstance(layer, kind)}
    if not found:
        raise InvalidError(f"BatchNorm_view: {type(model).__name__} has no batch normalization layer")
    means: dict[str, list[list[float]]] = {name: [] for name in _VALUES}
    for job in given:
        file = _checkpoint(job)
        state = _state(file, found, torch)
        for value in _VALUES:
            means[value].append([_mean(state, name, value, layer, file) for name, layer in found.items()])
    notebook_figures.layers(list(found), means, None if labels is None else list(labels))


def _mean(state: Mapping[str, Any], layer: str, value: str, module: Any, file: Path) -> float:
    if getattr(module, value, None) is None:
        return math.nan  # affine=False or track_running_stats=False
    tensor = state.get(f"{layer}.{value}")
    if tensor is None or not hasattr(tensor, "detach"):
        raise InvalidError(f"BatchNorm_view: {file}: has no {layer}.{value}; it is of a different model")
    return float(tensor.detach().float().mean())


def _checkpoint(job: Job) -> Path:
    """The newest one."""
    if Path(job.name).is_file():
        return Path(job.name)
    files = [path for path in Path("checkpoints").glob("*") if path.name.startswith(f"{job.name}_")]
    if files:
        return max(files, key=lambda path: path.stat().st_mtime)
    if job.folder is not None:
        from stoker import checkpoint

        saved = [Path(each["folder"]).parent for each in (job.run or {}).get("checkpoints", [])]
        found = checkpoint.latest(saved[-1] if saved else job.folder / "checkpoints", rank=0, world_size=1)
        if found.path is not None:
            return found.path
    raise NotFoundError(
        f"BatchNorm_view: job {job.name}: no checkpoints/{job.name}_* and no checkpoint of a run\n"
        "  try: start the script of the course with --chkpt"
    )


def _state(file: Path, layers: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    """Names and tensors of the model: of the mapping in the checkpoint that has the layers."""
    try:
        if file.is_dir():
            from stoker import checkpoint

            loaded: Any = checkpoint.load(file, tensors="torch", rank=0, world_size=1)
        else:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
    except StokerError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        first = str(error).strip().partition("\n")[0]
        raise InvalidError(
            f"BatchNorm_view: {file}: {first}\n  try: torch.save(model.state_dict(), ...) in the script"
        ) from error
    layer = next(iter(layers))
    for state in _mappings(loaded, 2):
        plain = {_plain(str(name)): value for name, value in state.items()}
        if any(f"{layer}.{value}" in plain for value in _VALUES):
            return plain
    raise InvalidError(f"BatchNorm_view: {file}: has no {layer}; it is of a different model")


def _mappings(value: Any, depth: int) -> Iterator[Mapping[Any, Any]]:
    if isinstance(value, Mapping):
        yield value
        for each in value.values() if depth else ():
            yield from _mappings(each, depth - 1)


def _plain(name: str) -> str:
    while name.startswith(_WRAPPERS):
        name = next(name.removeprefix(wrapper) for wrapper in _WRAPPERS if name.startswith(wrapper))
    return name
