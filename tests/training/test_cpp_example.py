"""Stoker as a library: installed, found by CMake, and examples/cpp trained with it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import trained
from conftest import BIN, REPOSITORY
from ports import free_port
from torch_ranks import rows

BUILD = BIN.parent


def cmake(*arguments: str | Path) -> None:
    done = subprocess.run(["cmake", *map(str, arguments)], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prefix() -> Path:
    """Installation prefix of this build: always the same, so that ccache works for the example's sources."""
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
    return [float(loss) for loss in re.findall(r"^step \d+ loss (\S+)", out, re.M)]


@pytest.mark.timeout(2000)
def test_a_custom_network_trains_with_and_without_stoker_run(stoker, example_images, program):
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

    # Without a run: from the start, and resumed from its end.
    first = train(stoker, program, dataset, 2)
    assert len(losses(first)) == 24
    assert re.search(r"^top-1 \d+\.0 %$", first, re.M)  # of ten images
    later = train(stoker, program, dataset, 3)
    assert re.findall(r"^step (\d+) ", later, re.M) == [str(step) for step in range(25, 37)]
    assert (stoker.folder / "checkpoints/step-36").is_dir()


@pytest.mark.timeout(2000)
def test_float16_trains_with_a_loss_scale_that_is_saved(stoker, example_images, program):
    dataset = trained.small_dataset(stoker, example_images, train=24, test=1)
    first = train(stoker, program.with_name("mixed"), dataset, 2)
    assert len(losses(first)) == 24
    assert losses(first)[-1] < losses(first)[0]
    scales = [float(scale) for scale in re.findall(r" scale (\d+)", first)]
    assert scales[-1] in (65536, 32768, 16384)  # a step that overflows halves it
    later = train(stoker, program.with_name("mixed"), dataset, 3)
    assert re.findall(r"^step (\d+) ", later, re.M) == [str(step) for step in range(25, 37)]
    assert float(re.search(r" scale (\d+)", later)[1]) == scales[-1]
    saved = (stoker.folder / "checkpoints/step-36").rglob("*.safetensors")
    assert b"scaler.good_steps" in b"".join(path.read_bytes() for path in saved)


def train_two_ranks(stoker, program: Path, *arguments, env: dict | None = None) -> list[tuple[int, str, str]]:
    """Exit code, standard output and standard error of two ranks without `stoker run`."""
    place = {"WORLD_SIZE": 2, "MASTER_PORT": free_port()} | (env or {})
    ranks = [stoker.start(*arguments, program=program, env=place | {"RANK": rank}) for rank in (0, 1)]
    output = [process.communicate() for process in ranks]
    return [(process.returncode, *texts) for process, texts in zip(ranks, output, strict=True)]


@pytest.mark.timeout(2000)
def test_ranks_without_a_launcher_resume_alike_or_fail_alike(stoker, example_images, program):
    dataset = trained.small_dataset(stoker, example_images, train=24, test=1)
    for epochs in (2, 3):
        assert [code for code, *_ in train_two_ranks(stoker, program, dataset, epochs)] == [0, 0]
    folder = stoker.folder / "checkpoints"
    assert sorted(path.name for path in folder.glob("step-*")) == ["step-12", "step-18"]
    shard = max((folder / "step-18").rglob("*.safetensors"))
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)

    failed = train_two_ranks(stoker, program, dataset, 4, env={"STOKER_RESUME": folder / "step-18"})
    assert [code for code, *_ in failed] == [1, 1]
    errors = [err.splitlines()[-2:] for _, _, err in failed]
    assert errors[0] == errors[1], errors
    assert errors[0][0].startswith(f"rank 0: {folder}/step-18: ") and shard.name in errors[0][0]
    assert errors[0][1] == f"  try: stoker checkpoint verify {folder}/step-18"

    (code, out, err), (peer_code, _, peer_err) = train_two_ranks(stoker, program, dataset, 4)
    assert (code, peer_code) == (0, 0), err + peer_err
    assert re.findall(r"^step (\d+) ", out, re.M) == [str(step) for step in range(13, 25)]
    assert "skipped" not in peer_err
    (skipped,) = [line for line in err.splitlines() if line.startswith("skipped ")]
    assert skipped.startswith("skipped step-18: rank 0: checkpoints/step-18: ") and shard.name in skipped


def test_the_library_without_libtorch_links_no_libtorch(tmp_path, prefix):
    program = build_program(
        tmp_path,
        prefix,
        "#include <stoker/dataset.h>\n#include <cstdio>\nint main(int, char** arguments) {\n"
        '  std::puts(stoker::dataset::Dataset::open(arguments[1], "").status().to_string().c_str());\n}\n',
    )
    output = subprocess.run([program, tmp_path / "none"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path / "none") in output
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libtorch" not in needed


def build_program(folder: Path, prefix: Path, source: str, target: str = "stoker", flags: str = "") -> Path:
    """Compiles and links a program outside the tree against the installed library."""
    component = " COMPONENTS train" if target == "train" else ""
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(outside LANGUAGES CXX)\nfind_package(stoker REQUIRED{component})\n"
        f"add_executable(outside outside.cc)\ntarget_link_libraries(outside PRIVATE stoker::{target})\n"
        f"target_include_directories(outside PRIVATE ${{CMAKE_SOURCE_DIR}})\ntarget_compile_options(outside PRIVATE {flags})\n"
    )
    (folder / "outside.cc").write_text(source)
    cmake("-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    cmake("--build", folder / "build")
    return folder / "build/outside"


def torch_include_flags() -> list[str]:
    """libtorch's headers as system headers: their warnings are not ours."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    include = re.search(r"^Libtorch_INCLUDE_DIR:PATH=(.+)$", cache, re.M)[1]
    return ["-isystem", include, "-isystem", f"{include}/torch/csrc/api/include"]


def compile_only(folder: Path, prefix: Path, source: str, *flags: str) -> None:
    file = folder / "outside.cc"
    file.write_text(source)
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{prefix}/include", *flags, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[:2000]


HEADERS = sorted(path.name for path in (REPOSITORY / "include/stoker").glob("*.h"))


def test_the_public_face_is_small_and_nothing_else_is_installed(prefix):
    installed = sorted(path.relative_to(prefix / "include").as_posix() for path in (prefix / "include").rglob("*.*"))
    assert installed == [f"stoker/{name}" for name in HEADERS]
    assert len(HEADERS) <= 30
    assert sorted(path.name for path in (prefix / "lib").rglob("*.a")) == ["libstoker.a", "libstoker_train.a"]


@pytest.mark.parametrize("header", HEADERS)
def test_each_public_header_compiles_alone_without_warnings(tmp_path, prefix, header):
    text = (REPOSITORY / "include/stoker" / header).read_text()
    compile_only(
        tmp_path, prefix, f"#include <stoker/{header}>\n", "-Wall", "-Wextra", "-Werror", *torch_include_flags()
    )
    macros = re.findall(r"^#\s*define (\w+)", text, re.M)
    assert [name for name in macros if not name.startswith("STOKER_")] == []
    assert "using namespace" not in text


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("order", ["before", pytest.param("after", marks=pytest.mark.soak)])
def test_all_of_libtorch_before_and_after_our_headers(tmp_path, prefix, order):
    ours = "".join(f"#include <stoker/{name}>\n" for name in HEADERS)
    use = (
        "using namespace stoker;\nat::Tensor zeros() { return torch::zeros({2}); }\n"
        "torch::optim::SGDOptions options(0.1);\n"
    )
    flags = ["-Wall", "-Wextra", "-Werror", *torch_include_flags()]
    libtorch = "#include <torch/torch.h>\n"
    includes = f"{libtorch}{ours}#include <torch/optim.h>\n" if order == "before" else ours + libtorch
    compile_only(tmp_path, prefix, includes + use, *flags)


def test_an_application_keeps_its_own_headers_and_macros(tmp_path, prefix):
    """Its base/status.h, loader/loader.h and macros have the names of our private ones."""
    for name in ("base/status.h", "loader/loader.h", "net/port.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(
            f"#pragma once\nnamespace app {{ inline int {Path(name).stem}() {{ return 1; }} }}\n"
        )
    program = build_program(
        tmp_path,
        prefix,
        "#define CHECK(x) (x)\n#define RETURN_IF_ERROR(x) (x)\n#define GUARDED_BY(x)\n"
        '#include "base/status.h"\n#include "loader/loader.h"\n#include "net/port.h"\n'
        "#include <stoker/loader.h>\n#include <stoker/checkpoint.h>\n#include <stoker/status.h>\n"
        "int main() {\n"
        '  const stoker::Status status = stoker::invalid("x: no");\n'
        "  return CHECK(app::status() + app::loader() + app::port()) == 3 && !status.ok() ? 0 : 1;\n}\n",
        flags="-Wall -Wextra -Werror",
    )
    assert subprocess.run([program]).returncode == 0
