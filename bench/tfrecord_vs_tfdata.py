"""CIFAR-10's JPEG files and labels from the same TFRecord shards, in batches of 128: stoker.Loader in order and shuffled, with each
file's CRC verified, compared with tf.data, which parses whole batches at once (three times as fast as single records) and verifies
the records' CRCs: the faster of reading one file at a time and two. Shuffled, tf.data draws from a buffer of 10 000 records, the
loader from all. Alternating. Limit: a sample takes at most a third of tf.data's time. Needs tensorflow."""

import subprocess
import sys
import tempfile
from pathlib import Path

from loader_python import Program, build, can_import, cifar10, tell_cost
from measure import BIN, check_limit, in_turns, median_interval, ratio_interval

OURS = """
import stoker
loader = stoker.Loader(sys.argv[1], batch_size=128, transform=None, tensors="dlpack", shuffle=sys.argv[2] == "shuffled",
                       split="train", fields=("data", "offset", "label"))
def once():
    return sum(len(memoryview(batch["label"])) for batch in loader)
"""
TF_DATA = """
import glob, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
features = {"jpg": tf.io.FixedLenFeature([], tf.string), "cls": tf.io.FixedLenFeature([], tf.int64)}
data = tf.data.TFRecordDataset(sorted(glob.glob(sys.argv[1] + "/train-*.tfrecord")), num_parallel_reads=int(sys.argv[3]))
if sys.argv[2] == "shuffled":
    data = data.shuffle(10_000)
data = data.batch(128).map(lambda records: tf.io.parse_example(records, features), tf.data.AUTOTUNE)
data = data.prefetch(tf.data.AUTOTUNE)
def once():
    return sum(len(batch["cls"]) for batch in data)
"""
# Many epochs, for half a second: the loader takes milliseconds for one.
EPOCH = """
import time
def epoch():
    samples, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        samples += once()
    return samples
"""


def faster_tf_data(records: Path, order: str) -> Program:
    programs = [Program(TF_DATA + EPOCH, records, order, files) for files in (1, 2)]
    rates = [max(program.rate() for _ in range(3)) for program in programs]
    programs.pop(rates.index(min(rates))).close()
    return programs[0]


def compare(records: Path, order: str, pairs: int) -> bool:
    theirs, ours = faster_tf_data(records, order), Program(OURS + EPOCH, records, order)
    try:
        found = in_turns(theirs.rate, ours.rate, pairs)
    finally:
        theirs.close()
        ours.close()
    for name, rates in zip(("tf.data", "ours"), zip(*found, strict=True), strict=True):
        print(f"       {order}: {name} {median_interval(rates)} samples/s")
    tell_cost(theirs, ours)
    return check_limit(f"time per sample {order}, ratio to tf.data", ratio_interval(found), 1 / 3)


def main() -> None:
    build()
    if not can_import("tensorflow"):
        print("skipped: tensorflow is not installed (script/bootstrap --for peers)")
        return
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with cifar10() as (_, dataset), tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "tfrecord"
        command = [BIN / "stoker", "data", "convert", dataset, records, "--format", "tfrecord", "--shards", "8"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        met = [compare(records, order, pairs) for order in ("in order", "shuffled")]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
