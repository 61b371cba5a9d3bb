"""Implements `stoker checkpoint convert` for torch.save's files: python3 -m stoker.checkpoint_convert SOURCE TARGET. Reads with
weights_only, so that no code in the file runs. Prints {"tensors", "files", "bytes"}; exit code 3 without torch."""

import json
import os
import re
import sys
from pathlib import Path

from stoker import checkpoint_tree
from stoker.errors import ExistsError, InvalidError, StokerError, code_of

_PICKLED = (".pt", ".pth", ".bin", ".ckpt")


def _to_step(source: Path, target: Path) -> None:
    import torch

    from stoker import checkpoint

    named = re.fullmatch(r"step-(0|[1-9]\d*)", target.name)
    if named is None:
        raise InvalidError(f"{target}: is not a valid step folder name\n  try: {target}/step-0")
    if target.exists():
        raise ExistsError(f"{target}: already exists")
    try:
        state = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        why = str(error).strip().partition("\n")[0]
        raise InvalidError(f"{source}: torch.load() with weights_only failed: {why}") from None
    if isinstance(state, torch.Tensor):
        state = {"model": {"_": state}}
    checkpoint.save(state, target.parent, step=int(named[1]), rank=0, world_size=1)


def _to_pickled(source: Path, target: Path) -> None:
    import torch

    from stoker import checkpoint

    if target.exists():
        raise ExistsError(f"{target}: already exists")
    state = dict(checkpoint.load(source, rank=0, world_size=1))
    part = target.with_name(target.name + ".part")
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(target)


def _figures(path: Path) -> dict[str, int]:
    import torch

    from stoker import checkpoint
    from stoker import checkpoint_tensors as tensors_of

    if path.is_dir():
        state, files = checkpoint.load(path, rank=0, world_size=1), list(path.rglob("*.safetensors"))
    else:
        state, files = torch.load(path, map_location="cpu", weights_only=True, mmap=True), [path]
    flat = checkpoint_tree.flatten(state, tensors_of.is_tensor, tensors_of.describe)
    return {
        "tensors": len(flat.tensors),
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
    }


def main(source: Path, target: Path) -> int:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(error, file=sys.stderr)
        return 3
    try:
        (_to_step if source.suffix in _PICKLED and not source.is_dir() else _to_pickled)(source, target)
        print(json.dumps(_figures(target)))
    except StokerError as error:
        print(json.dumps({"code": code_of(error), "message": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
