"""Photographs to tensors of 224 x 224, batches of 64, two threads: the C++ loader with plain shards and with shards with restart
markers (CRC verified). Compared with libjpeg-turbo decoding crops of the same files, with a resize and alone; with torchvision on
Pillow images in a DataLoader with two workers; if nvidia.dali is installed (or DALI_PYTHON names a Python with it) with DALI on
the CPU; and if TensorFlow is (or STOKER_PEERS_PYTHON names a Python with it) with tf.data, which decodes only the crop. Alternates,
and compares the CPU time per image, which is stable on a busy machine; rates are wall time. Needs STOKER_TEST_DATA with
imagenet-200.tar.

Measured on two cores of an EPYC: 1 540 photographs of 110 kB per second, 2.2 times DALI on the CPU and 3.9 times torchvision on
Pillow; from shards with restart markers 1 870 per second."""

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, Interval, check_limit, in_turns, ratio_interval

TIMED = """
import os, resource, sys, time
def cpu():
    return sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
def report(epoch):
    epoch()
    started, before = time.perf_counter(), cpu()
    images = epoch()
    seconds = time.perf_counter() - started
    print(images / seconds, 1e3 * (cpu() - before) / images)
"""

TORCHVISION = (
    TIMED
    + """
import torch
# torchvision's wheel is built for the CUDA torch and expects these operators, which are not called here.
operators = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    operators.define(name + "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
import torchvision
from torchvision import transforms as T
torch.set_num_threads(1)
transform = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(),
                       T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
data = torchvision.datasets.ImageFolder(sys.argv[1], transform)
# Workers end with each epoch, so that their CPU time is counted.
report(lambda: sum(len(batch[0]) for batch in torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=2)))
"""
)

DALI = (
    TIMED
    + """
from nvidia.dali import fn, pipeline_def, types
@pipeline_def(batch_size=64, num_threads=2, device_id=None)
def pipeline():
    files, labels = fn.readers.file(file_root=sys.argv[1], random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(files, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[0.75, 4 / 3])
    images = fn.resize(images, size=[224, 224], antialias=True)
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW",
        mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375]), labels
pipe = pipeline()
pipe.build()
count = pipe.epoch_size("reader") // 64
def epoch():
    for _ in range(count):
        pipe.run()
    return 64 * count
report(epoch)
"""
)

# Files in random order, a decoded random crop, an antialiased resize, normalized floats: as in TensorFlow's guide for
# ImageNet.
TF_DATA = (
    TIMED
    + """
import glob
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(2)
tf.config.threading.set_intra_op_parallelism_threads(2)
names = sorted(glob.glob(sys.argv[1] + "/*/*.JPEG"))
mean, deviation = tf.constant([123.675, 116.28, 103.53]), tf.constant([58.395, 57.12, 57.375])
def floats(name):
    content = tf.io.read_file(name)
    shape = tf.io.extract_jpeg_shape(content)
    begin, size, _ = tf.image.sample_distorted_bounding_box(shape, tf.zeros([0, 0, 4]), area_range=(0.08, 1.0),
        aspect_ratio_range=(0.75, 4 / 3), use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    crop = tf.image.decode_and_crop_jpeg(content, window, channels=3)
    image = tf.image.random_flip_left_right(tf.image.resize(crop, (224, 224), antialias=True))
    return tf.transpose((image - mean) / deviation, (2, 0, 1))
data = tf.data.Dataset.from_tensor_slices(names).shuffle(len(names)).map(floats, 2).batch(64).prefetch(2)
report(lambda: sum(len(batch) for batch in data))
"""
)


CHECKED, UNCHECKED = "loader_checked", "loader_unchecked"


def counters(name: str, dataset: Path) -> dict:
    """Results of one benchmark of the program."""
    command = [BIN / "decode_bench", f"--benchmark_filter=^{name}/2/", "--benchmark_format=json"]
    command += ["--benchmark_min_time=1"]
    environment = os.environ | {"STOKER_BENCH_DATASET": str(dataset)}
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return json.loads(text)["benchmarks"][0]


def bench(name: str, dataset: Path) -> tuple[float, float]:
    """Images per second, CPU milliseconds per image."""
    found = counters(name, dataset)
    return found["images/s"], found["cpu_ms"]


def without_crc(dataset: Path, turns: int) -> Interval:
    """The loader's CPU time per image, relative to the loader without CRCs. Both run in one process, in random order, because
    the variation between processes is larger than the cost of CRCs."""
    command = [BIN / "decode_bench", "--benchmark_filter=^loader_(un)?checked/2/", "--benchmark_format=json"]
    command += [
        "--benchmark_min_time=1",
        "--benchmark_enable_random_interleaving=true",
        f"--benchmark_repetitions={turns}",
    ]
    environment = os.environ | {"STOKER_BENCH_DATASET": str(dataset)}
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    runs = [run for run in json.loads(text)["benchmarks"] if run["run_type"] == "iteration"]
    cpu = {name: [run["cpu_ms"] for run in runs if run["name"].startswith(name + "/")] for name in (CHECKED, UNCHECKED)}
    shares = [100 * run["check_share"] for run in runs if run["name"].startswith(CHECKED + "/")]
    print(
        f"       CRC-32C takes {statistics.median(shares):.2g} % of the threads' work by the loader's own clock; ",
        end="",
    )
    print(f"CPU {statistics.median(cpu[CHECKED]):.3f} and without it {statistics.median(cpu[UNCHECKED]):.3f} ms")
    return ratio_interval(list(zip(cpu[CHECKED], cpu[UNCHECKED], strict=True)))


def peer(python: str | Path, program: str, images: Path) -> tuple[float, float]:
    done = subprocess.run([python, "-c", program, images], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rate, cpu = done.stdout.split()[-2:]
    return float(rate), float(cpu)


def compare(name: str, ours, theirs, pairs: int) -> Interval:
    """Ratio of our CPU time per image to theirs; prints it and both rates."""
    seen: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}

    def run(who: str, measured) -> float:
        seen[who].append(measured())
        return seen[who][-1][1]

    found = ratio_interval(in_turns(lambda: run("ours", ours), lambda: run("theirs", theirs), pairs))
    rates = ratio_interval([(o[0], t[0]) for o, t in zip(seen["ours"][1:], seen["theirs"][1:], strict=True)])
    middle = {who: [statistics.median(value) for value in zip(*all_of, strict=True)] for who, all_of in seen.items()}
    print(f"       {name}: rate of ours {rates} times theirs", end="; ")
    print(f"medians {middle['ours'][0]:.0f} and {middle['theirs'][0]:.0f}/s, ", end="")
    print(f"CPU {middle['ours'][1]:.2f} and {middle['theirs'][1]:.2f} ms")
    return found


def largest_resident(dataset: Path) -> float:
    """Memory in MB of a process that runs the loader for some epochs."""
    command = [BIN / "decode_bench", f"--benchmark_filter=^{CHECKED}/2/", "--benchmark_min_time=1"]
    environment = os.environ | {"STOKER_BENCH_DATASET": str(dataset)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"decode_bench ended with {process.returncode}")
    return used.ru_maxrss / 1000


def unpack(archive: Path, images: Path) -> None:
    """Five links to each photograph, in a folder per class."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile():
                continue
            folder = images / "train" / Path(member.name).name.split("_")[0]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "0.JPEG").write_bytes(tar.extractfile(member).read())
            for copy in range(1, 5):
                (folder / f"{copy}.JPEG").hardlink_to(folder / "0.JPEG")


def can_import(module: str, python: str | Path) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def main() -> None:
    test_data = os.environ.get("STOKER_TEST_DATA")
    archive = Path(test_data) / "imagenet-200.tar" if test_data else None
    if not archive or not archive.exists():
        print("skipped: STOKER_TEST_DATA names no folder with imagenet-200.tar")
        return
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    subprocess.run([REPOSITORY / "script/build", "decode_bench"], check=True, stdout=subprocess.DEVNULL)
    met = True
    with tempfile.TemporaryDirectory() as folder:
        images, plain, restart = (Path(folder) / name for name in ("images", "plain", "restart"))
        unpack(archive, images)
        subprocess.run([BIN / "stoker", "data", "pack", images, plain], check=True, capture_output=True)
        command = [BIN / "stoker", "data", "pack", "--jpeg", "restart", images, restart]
        subprocess.run(command, check=True, capture_output=True)

        def ours(dataset: Path = plain) -> tuple[float, float]:
            return bench(CHECKED, dataset)

        def bound(name: str):
            return lambda: bench(name, plain)

        few = max(1, pairs // 2)
        compare("torchvision on Pillow", ours, lambda: peer(PYTHON, TORCHVISION, images / "train"), few)
        dali = os.environ.get("DALI_PYTHON") or PYTHON
        if can_import("nvidia.dali", dali):
            theirs = partial(peer, dali, DALI, images / "train")
            met &= check_limit("CPU per image, ours / DALI", compare("DALI", ours, theirs, pairs), limit=1 / 1.5)
            found = compare("DALI, ours with restart markers", partial(ours, restart), theirs, pairs)
            met &= check_limit("CPU per image, ours with restart markers / DALI", found, limit=1 / 2.2)
        peers_python = os.environ.get("STOKER_PEERS_PYTHON") or PYTHON
        if can_import("tensorflow", peers_python):
            theirs = partial(peer, peers_python, TF_DATA, images / "train")
            compare("tf.data", ours, theirs, few)
        else:
            print("       tf.data: no tensorflow (script/bootstrap --for peers)")
        met &= check_limit("CPU per image, ours / without CRC-32C", without_crc(plain, 4 * pairs), limit=1.03)
        compare("libjpeg-turbo alone, crops", ours, bound("libjpeg_crop"), pairs)
        found = compare("libjpeg-turbo and a resize, crops", ours, bound("libjpeg_crop_resize"), pairs)
        met &= check_limit("CPU per image, ours / libjpeg-turbo and a resize", found, limit=1 / 0.85)
        peak = largest_resident(plain)
        met &= check_limit("memory", Interval(peak, peak, peak), limit=200, unit="MB")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
