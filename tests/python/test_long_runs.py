"""Fifty epochs: memory, threads, open files and processes do not grow after the first few."""

import json

import pytest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

WATCH = """
import gc, json, os, sys, stoker

def memory(pid):
    # Excludes pages of shared libraries: their share depends on other running processes.
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(("Pss_Anon:", "Pss_Shmem:")))

def now():
    gc.collect()
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        pids = file.read().split()
    children = len(pids)
    return sum(map(memory, ["self", *pids])), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), children

def watch(epoch, count=50):
    for number in range(count):
        epoch()
        if number == 4:
            early = now()
    print(json.dumps([early, now()]))
"""

LOADER = """
loader = stoker.Loader(sys.argv[1], batch_size=128, transform="cifar-train", **json.loads(sys.argv[2]))
watch(lambda: [batch["key"] for batch in loader])
"""

DATA_LOADER = """
import numpy, torch

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 2000
    def __getitem__(self, index):
        return {"image": torch.full((3, 32, 32), float(index)), "name": str(index), "more": numpy.arange(index % 7)[:0]}

loader = stoker.DataLoader(Images(), 50, shuffle=True, num_workers=2, mode=sys.argv[1], persistent_workers=sys.argv[2] == "stay")
watch(lambda: [batch["name"] for batch in loader])
"""

MEGABYTE = 1 << 20


def assert_flat(output):
    (early, *things_early), (late, *things_late) = json.loads(output)
    assert things_late == things_early
    assert late - early < 8 * MEGABYTE, f"{early / MEGABYTE:.1f} MB after 5 epochs, {late / MEGABYTE:.1f} MB after 50"


@pytest.mark.parametrize(
    "options", ['{"tensors": "numpy"}', '{"tensors": "torch", "persistent_workers": false}', '{"cache": 200000000}']
)
def test_a_loaders_memory_is_flat(options, example_dataset, python):
    assert_flat(python(WATCH + LOADER, example_dataset, options, timeout=900))


@pytest.mark.parametrize(("mode", "workers"), [("threads", "stay"), ("processes", "stay"), ("processes", "go")])
def test_a_data_loaders_memory_is_flat(mode, workers, python):
    assert_flat(python(WATCH + DATA_LOADER, mode, workers, timeout=900))
