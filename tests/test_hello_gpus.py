"""GPUs in `stoker hello`, with NVML, nvidia-smi and torch that tests play."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY
from ports import free_port

NVML = REPOSITORY / "tests/programs/fake_nvml.c"
# Not the real driver's.
PATHS = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def gpus(tmp_path: Path):
    """gpus(lines) is an environment with the GPUs that these lines describe (tests/programs/fake_nvml.c)."""
    library = tmp_path / "nvml/libnvidia-ml.so.1"
    library.parent.mkdir()
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", library, NVML], check=True)

    def play(lines: str) -> dict[str, str]:
        (tmp_path / "gpus").write_text(lines)
        return PATHS | {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML": str(tmp_path / "gpus")}

    return play


def as_python(folder: Path, text: str) -> Path:
    program = folder / "python"
    program.write_text(f"#!/bin/bash\n{text}\n")
    program.chmod(0o755)
    return program


JOB = "name: gpus\nrun: python3 t.py\nresources: {ranks_per_node: 2, gpus_per_rank: 1}\n"


def test_topology_and_nccl_speeds_are_shown_with_the_limit_of_the_links(stoker, tmp_path, gpus):
    (tmp_path / "job.yaml").write_text(JOB)
    env = gpus("gpus 2\n0.nvlinks 18\n1.nvlinks 18\nnvlink.0.1 0\npath.0.1 40\n")
    program = as_python(
        tmp_path,
        'echo "nccl all-reduce 134217728 0.000400000"; echo "$CUDA_VISIBLE_DEVICES $STOKER_GPUS_PER_RANK $4" > seen-$RANK\n'
        'echo "exact by torch 2.13.0+cu130 over nccl, 1 MiB in 0.1 ms"',
    )
    output = stoker("hello", "job.yaml", "--python", program, env=env, code=0).out
    assert re.search(r"^\S+ +0-1 +18 x NVLink +yes$", output, re.MULTILINE)
    assert re.search(r"^all-reduce +128 MiB +400 us +336 GB/s +336 GB/s +478 GB/s +70 %$", output, re.MULTILINE)
    assert (tmp_path / "seen-1").read_text() == "0,1 1 speed\n"
    facts = json.loads(stoker("hello", "job.yaml", "--json", "--python", program, env=env, code=0).out)
    assert [rank["gpu_uuid"] for rank in facts["ranks"]] == ["GPU-0", "GPU-1"]
    assert facts["gpu_links"][0]["peer_access"] is True
    assert facts["gpu_timings"][0]["bytes"] == 134217728
    assert facts["gpu_timings"][0]["bound_bytes_per_s"] == pytest.approx(18 * 26562e6)


def test_two_ranks_on_one_gpu_and_unknown_ones_are_found_before_a_collective(stoker, tmp_path, gpus):
    (tmp_path / "job.yaml").write_text(JOB)
    output = stoker("hello", "job.yaml", "--no-speed", env=gpus("gpus 1\n"), code=1).out
    assert re.search(r"^ranks 0, 1 on \S+ have the same GPU \(0, GPU-0\), which NCCL refuses$", output, re.MULTILINE)
    env = gpus("gpus 2\n") | {"CUDA_VISIBLE_DEVICES": "GPU-0,GPU-9"}
    output = stoker("hello", "job.yaml", "--no-speed", env=env, code=1).out
    assert "CUDA_VISIBLE_DEVICES=GPU-0,GPU-9 names GPU-9, and no GPU there has this id" in output
    env = gpus("gpus 2\n") | {"CUDA_VISIBLE_DEVICES": ""}
    output = stoker("hello", "job.yaml", "--no-speed", env=env, code=1).out
    assert re.search(r"^rank 0 \(\S+\) sees 0 of 1 GPU \(CUDA_VISIBLE_DEVICES=\)$", output, re.MULTILINE)


# What the program of the step uses of torch; the store is a folder.
TORCH = """
import os, time
__version__ = "2.99"
def set_num_threads(count): pass
class device:
    def __init__(self, kind, index=None): self.kind, self.index = kind, index
class Sums(int):
    def sum(self): return self
class Values:
    def __ne__(self, other): return Sums(0)
def full(shape, value, device): return Values()
def zeros(count, device): return Values()
class cuda:
    def is_available(): return os.environ["GPU_IDS"] != ""
    def device_count(): return len(os.environ["GPU_IDS"].split(","))
    def get_device_properties(device):
        found = type("Properties", (), {})()
        found.uuid = os.environ["GPU_IDS"].split(",")[device.index]
        return found
    def set_device(device): open(f"{os.environ['STORE']}/device-{os.environ['RANK']}", "w").write(str(device.index))
    def synchronize(): pass
"""
DISTRIBUTED = """
import os, time
def is_nccl_available(): return True
class TCPStore:
    def __init__(self, *arguments, **options): pass
    def path(self, key): return f"{os.environ['STORE']}/{key.replace('/', '-')}"
    def set(self, key, value):
        with open(self.path(key) + ".new", "w") as file: file.write(value)
        os.rename(self.path(key) + ".new", self.path(key))
    def wait(self, keys):
        while not all(os.path.exists(self.path(key)) for key in keys): time.sleep(0.01)
    def get(self, key):
        self.wait([key])
        return open(self.path(key), "rb").read()
def PrefixStore(prefix, store): return store
def init_process_group(backend, **options): pass
def all_reduce(values): pass
def destroy_process_group(): pass
"""


@pytest.fixture
def ranks(tmp_path: Path):
    """ranks(ids of rank 0, ids of rank 1) are the ends and outputs of the program of the step `torch`."""
    for name, text in (("__init__", TORCH), ("distributed", DISTRIBUTED)):
        (tmp_path / "torch").mkdir(exist_ok=True)
        (tmp_path / f"torch/{name}.py").write_text(text)
    source = (REPOSITORY / "src/netcheck/torch_program.h").read_text()
    (tmp_path / "program.py").write_text(source.split('R"py(', 1)[1].split(')py"', 1)[0])

    def run(*ids: str, **variables: str) -> list[tuple[int, str, str]]:
        store = tmp_path / f"store-{'-'.join(ids)}-{len(variables)}"
        store.mkdir()
        place = {"WORLD_SIZE": str(len(ids)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        started = [
            subprocess.Popen(
                [sys.executable, tmp_path / "program.py", "20", "speed"],
                env=os.environ
                | place
                | {"RANK": str(rank), "LOCAL_RANK": str(rank), "GPU_IDS": own, "STORE": str(store)}
                | variables,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, own in enumerate(ids)
        ]
        output = [process.communicate(timeout=60) for process in started]
        return [(process.returncode, *texts) for process, texts in zip(started, output, strict=True)]

    return run


def test_torch_measures_nccl_if_every_rank_has_its_own_gpu(ranks):
    for code, out, err in ranks("a,b", "a,b"):
        assert (code, err) == (0, "")
        assert re.findall(r"^nccl all-reduce (\d+) [\d.]+$", out, re.MULTILINE) == ["1048576", "16777216", "134217728"]
        assert "exact by torch 2.99 over nccl, 1 MiB in " in out


def test_torch_uses_the_first_of_a_rank_s_gpus(ranks, tmp_path):
    assert [code for code, *_ in ranks("a,b,c,d", "a,b,c,d", STOKER_GPUS_PER_RANK="2")] == [0, 0]
    assert next(tmp_path.glob("store-*/device-1")).read_text() == "2"


def test_torch_names_ranks_on_one_gpu_and_uses_gloo(ranks):
    for code, out, err in ranks("a", "a"):
        assert (code, err) == (0, "")
        assert "over gloo; ranks 0 and 1 use the same GPU, which NCCL refuses, 1 MiB in " in out
        assert "nccl all-reduce" not in out


def test_torch_names_a_rank_without_a_gpu_before_the_first_collective(ranks):
    for code, _, err in ranks("a", ""):
        assert (code, err) == (1, "rank 1 sees no GPU, but rank 0 does\n")
