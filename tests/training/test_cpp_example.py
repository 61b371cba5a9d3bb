"""Stoker as a library: installed, found by other projects' CMake, and examples/cpp trained with it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import trained
from conftest import BIN, REPOSITORY
from torch_ranks import rows

BUILD = BIN.parent


def cmake(*arguments: str | Path) -> None:
    done = subprocess.run(["cmake", *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prefix() -> Path:
    """Where this build is installed: always the same place, so that ccache knows the example's sources again."""
    folder = BUILD / "installed"
    shutil.rmtree(folder, ignore_errors=True)
    cmake("--install", BUILD, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def program(prefix) -> Path:
    build = BUILD / "installed-example"
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    cmake("-G", "Ninja", "-S", REPOSITORY / "examples/cpp", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", *launcher)
    cmake("--build", build)
    return build / "train"


def train(stoker, program: Path, *arguments, **options) -> str:
    process = stoker.start(*arguments, program=program, **options)
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    return out


def losses(out: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^step \d+ loss (\S+)$", out, re.M)]


@pytest.mark.timeout(900)
def test_a_network_of_ones_own_trains_under_stoker_run_and_alone(stoker, example_images, program):
    dataset = trained.small_dataset(stoker, example_images, train=24, test=1)
    job = stoker.folder / "job.yaml"
    job.write_text(f"name: net\nrun: {program} {dataset} 2\nresources: {{ranks_per_node: 2}}\n")
    stoker("run", job, code=0)
    run = trained.the_run(stoker.folder)
    steps = rows(run / "attempts/1/metrics-0000.csv")
    assert [row["step"] for row in steps] == list(range(1, 13))  # 240 images, 2 x 20 a step, two epochs
    assert steps[-1]["loss"] < steps[0]["loss"]
    assert trained.steps(run) == [12]
    done = stoker("checkpoint", "verify", run / "checkpoints/step-12", code=0)
    assert "step-12" in done.out

    # The same on its own: from the start, and once more from where it ended.
    first = train(stoker, program, dataset, 2)
    assert len(losses(first)) == 24
    later = train(stoker, program, dataset, 3)
    assert re.findall(r"^step (\d+) ", later, re.M) == [str(step) for step in range(25, 37)]
    assert (stoker.folder / "checkpoints/step-36").is_dir()


def test_rooms_without_libtorch_are_found_without_it(tmp_path, prefix):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(reads LANGUAGES CXX)\nfind_package(stoker REQUIRED)\n"
        "add_executable(reads reads.cc)\ntarget_link_libraries(reads PRIVATE stoker::data)\n"
    )
    (tmp_path / "reads.cc").write_text(
        "#include <stoker/data/dataset.h>\n#include <cstdio>\nint main(int, char** words) {\n"
        '  std::puts(stoker::data::Dataset::open(words[1], "").status().to_string().c_str());\n}\n'
    )
    cmake("-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    cmake("--build", tmp_path / "build")
    program = tmp_path / "build/reads"
    said = subprocess.run([program, tmp_path / "none"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path / "none") in said
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libtorch" not in needed


def test_installed_headers_show_no_others_but_torchs_and_miss_none_of_their_own(prefix):
    others = re.compile(r"^#include <(fmt|nlohmann|yaml|CLI|re2|jpeglib|isa-l|openssl|gtest|gmock)", re.M)
    folder = prefix / "include/stoker"
    headers = {path: path.read_text() for path in folder.rglob("*.h")}
    assert len(headers) > 100
    assert [path for path, text in headers.items() if others.search(text)] == []
    included = {name for text in headers.values() for name in re.findall(r'^#include "([^"]+)"', text, re.M)}
    assert [name for name in sorted(included) if not (folder / name).exists()] == []
