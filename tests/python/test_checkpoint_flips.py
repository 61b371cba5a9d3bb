"""stoker.checkpoint: one wrong bit anywhere in a step is found, or is in a file that carries no values. Never is another value
loaded without an error."""

import collections
import hashlib
import random
from pathlib import Path

import numpy
import pytest
import stoker
import torch
from exported_checkpoints import export_checkpoints
from stoker import checkpoint

FLIPS_OF_FILE = 80
FLIPS_OF_MANIFEST = 320
AT_LEAST = 3284


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, Path]:
    """Folders with two steps each, by who wrote them."""
    folder = export_checkpoints(tmp_path_factory.mktemp("flips"))
    found = {f"C++, ranks: {world}": folder / f"world-{world}" for world in (1, 2, 3)}
    for name, make in {"tensors": tensors, "arrays": arrays, "objects": objects}.items():
        found[f"Python, {name}"] = folder / name
        for step in (1, 2):
            checkpoint.save(make(step), folder / name, step=step, rank_state={"rng": bytes(range(50)), "loss": 0.5})
    checkpoint.close()
    return found


def tensors(step: int) -> dict:
    torch.manual_seed(step)
    model = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 3)).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 40).bfloat16()).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": step}


def arrays(step: int) -> dict:
    random_numbers = numpy.random.default_rng(step)
    kinds = ("<f4", ">f8", "u1", "i8", "?", "c16", "f2")
    return {"a": {kind: (random_numbers.random((7, 9)) * 99).astype(kind) for kind in kinds}, "step": numpy.int64(step)}


def objects(step: int) -> dict:
    random_numbers = random.Random(step)
    ordered = collections.OrderedDict([(f"key {i}", (i, [step, None, b"\0\xff"])) for i in range(9)])
    return {"state": random_numbers.getstate(), "ordered": ordered, "w": torch.tensor([step]), "nan": float("nan")}


def digest(array: numpy.ndarray) -> str:
    return hashlib.blake2b(array.data, digest_size=16).hexdigest()


def as_text(value: object) -> str:
    """Every type, order and bit of a loaded state."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{digest(value.contiguous().reshape(-1).view(torch.uint8).numpy())}"
    if isinstance(value, numpy.ndarray):
        return f"{value.dtype.str}{value.shape}{digest(numpy.ascontiguousarray(value))}"
    if isinstance(value, dict):
        return f"{type(value).__name__}{[(repr(key), as_text(item)) for key, item in value.items()]}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}{[as_text(item) for item in value]}"
    return f"{type(value).__name__} {value!r}"


def all_of(state: checkpoint.Loaded) -> str:
    facts = (state.step, state.run, state.world_size, state.rank_state, state.hyper_parameters)
    return f"{facts}{as_text(dict(state))}"


def flipped(file: Path, bit: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(bit // 8)
        (byte,) = opened.read(1)
        opened.seek(bit // 8)
        opened.write(bytes([byte ^ (1 << bit % 8)]))


def chosen_bits(file: Path) -> list[int]:
    """Spread over the file; of a tensor file half of them in its header, where the bytes have a meaning each."""
    bits = 8 * file.stat().st_size
    if file.name == "lease.json":
        return list(range(0, bits, 97))
    if file.name == "manifest.json":
        return sorted(random.Random(1).sample(range(bits), min(bits, FLIPS_OF_MANIFEST)))
    used = 8 * (8 + int.from_bytes(file.read_bytes()[:8], "little"))
    choose, half = random.Random(file.name), FLIPS_OF_FILE // 2
    header = range(64), range(64, used), range(used, bits)
    return sorted({bit for part in header if part for bit in choose.sample(part, min(len(part), half))})


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_3284_wrong_bits_are_found_or_change_no_value(written):
    count: collections.Counter = collections.Counter()
    for name, folder in written.items():
        newest, older = sorted(folder.glob("step-*"), key=lambda step: -int(step.name[5:]))
        expected, expected_older = (
            all_of(checkpoint.load(folder)),
            all_of(checkpoint.load(folder, step=int(older.name[5:]))),
        )
        assert expected != expected_older
        for file in sorted(path for path in newest.rglob("*") if path.is_file()):
            for bit in chosen_bits(file):
                flipped(file, bit)
                state = checkpoint.load(folder)
                what = f"{name}: {file.relative_to(folder)}: bit {bit}"
                if state.skipped:
                    ((skipped, why),) = state.skipped
                    assert (skipped, all_of(state)) == (newest, expected_older), what
                    # The error names the file, or the tensor of the file.
                    assert file.name in why or newest.name in why, f"{what}: {why}"
                    with pytest.raises(stoker.CorruptError):
                        checkpoint.load(newest)
                    count["found"] += 1
                else:
                    assert all_of(state) == expected, what
                    assert file.name == "lease.json", what
                    count["in a file without values"] += 1
                flipped(file, bit)
        assert all_of(checkpoint.load(folder)) == expected
    print(f"{sum(count.values())} wrong bits: {dict(count)}")
    assert count["found"] >= AT_LEAST
