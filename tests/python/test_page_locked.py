"""Page-locked memory of stoker.Loader(device="cuda"), from a library that replaces the CUDA runtime."""

import ctypes
import subprocess

import pytest
import stoker
import torch
from late_copies import LateCopyStream
from stoker import device_copy

RUNTIME = """
#include <stdatomic.h>
#include <stdlib.h>
atomic_int allocations, releases, wrong_arguments;
static _Thread_local int device;
int cudaSetDevice(int number) { device = number; return 0; }
int cudaHostAlloc(void** memory, size_t size, unsigned flags) {
  ++allocations;
  if (device != 3 || flags != 1) ++wrong_arguments;
  *memory = SIZE_LIMIT < size ? NULL : aligned_alloc(64, size);
  return *memory ? 0 : 2;
}
int cudaFreeHost(void* memory) {
  ++releases;
  if (device != 3) ++wrong_arguments;
  free(memory);
  return 0;
}
"""


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """Makes loaders with device="cpu" use a CUDA runtime with GPU 3 whose allocations are at most `limit` bytes."""

    def make(limit=1 << 30):
        source, library = tmp_path / "runtime.c", tmp_path / "libcudart.so.0"
        source.write_text(RUNTIME)
        subprocess.run(["gcc", "-shared", "-fPIC", f"-DSIZE_LIMIT={limit}ul", source, "-o", library], check=True)
        monkeypatch.setattr(device_copy, "page_locked", lambda device: (str(library), 3))
        monkeypatch.setattr(device_copy, "copy_stream", lambda device: LateCopyStream(delay_s=0.001))
        return ctypes.CDLL(str(library))

    return make


def value_of(library, name):
    return ctypes.c_int.in_dll(library, name).value


def cifar(dataset, **options):
    chosen = {"batch_size": 128, "transform": "cifar-train", "tensors": "torch", "prefetch_factor": 2, "num_workers": 2}
    return stoker.Loader(dataset, **(chosen | options))


def test_batches_are_filled_in_page_locked_memory_that_is_reused(example_dataset, runtime):
    library = runtime()
    with cifar(example_dataset) as plain, cifar(example_dataset, device="cpu") as loader:
        for _ in range(2):
            for batch, expected in zip(loader, plain, strict=True):
                assert torch.equal(batch["image"], expected["image"]) and torch.equal(batch["label"], expected["label"])
    assert 4 <= value_of(library, "allocations") <= 12  # for 80 batches
    del loader, batch
    assert value_of(library, "releases") == value_of(library, "allocations")
    assert value_of(library, "wrong_arguments") == 0


def test_a_lack_of_page_locked_memory_is_an_error(example_dataset, runtime):
    runtime(limit=1000)
    with cifar(example_dataset, device="cpu") as loader, pytest.raises(stoker.UnavailableError) as refused:
        next(iter(loader))
    assert str(refused.value).startswith("loader: no memory for a batch of 128 samples (")


@pytest.mark.parametrize(
    ("library", "text"),
    [
        (
            "libcudart.so.99",
            "loader: device: page-locked memory needs the CUDA runtime: libcudart.so.99: cannot open shared object file: "
            "No such file or directory",
        ),
        ("libm.so.6", "loader: device: libm.so.6 has no cudaHostAlloc"),
    ],
)
def test_a_missing_cuda_runtime_is_named_with_a_cure(example_dataset, monkeypatch, library, text):
    monkeypatch.setattr(device_copy, "page_locked", lambda device: (library, 0))
    with pytest.raises(stoker.UnavailableError) as refused:
        cifar(example_dataset, device="cpu")
    assert str(refused.value) == f"{text}\n  try: device=None, pin_memory=True"
