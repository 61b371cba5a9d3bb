"""An epoch of CIFAR-10 from JPEG in Python, batches of 128 normalized floats, compared with common loaders: each reads its own format,
with one worker or thread per core. All programs start first; then their epochs alternate."""

import os
import sys
from pathlib import Path

from loader_python import IMPORT_TORCHVISION, Program, build, can_import, cifar10
from measure import PYTHON, conclude, median_interval

OURS = """
import stoker
loader = stoker.Loader(sys.argv[1], batch_size=128, transform="cifar-train", tensors="dlpack", fields=("image", "label"))
def epoch():
    return sum(len(memoryview(batch["label"])) for batch in loader)
"""
# Shared by all peers: the files, and decoding of a JPEG to normalized floats with torchvision.
COMMON = (
    IMPORT_TORCHVISION
    + """
import glob, io, os, sys
import numpy
from PIL import Image
WORKERS = os.cpu_count()
images, dataset, scratch = sys.argv[1:4]
def floats(content):
    pixels = numpy.asarray(Image.open(io.BytesIO(content)).convert("RGB"), dtype=numpy.float32).transpose(2, 0, 1)
    return torch.from_numpy((pixels / 255 - 0.48) / 0.25)
def files():
    return sorted(glob.glob(images + "/*/*.jpg"))
def content_of(name):
    with open(name, "rb") as file:
        return file.read()
def count(batches):
    return sum(len(batch) for batch in batches)
def torch_loader(data, **more):
    return torch.utils.data.DataLoader(data, 128, num_workers=WORKERS, **({"persistent_workers": True} | more))
"""
)
TORCHVISION = """
class Files(torch.utils.data.Dataset):
    def __init__(self): self.names = files()
    def __len__(self): return len(self.names)
    def __getitem__(self, i): return floats(content_of(self.names[i]))
loader = torch_loader(Files(), shuffle=True)
def epoch(): return count(loader)
"""
WEBDATASET = """
import webdataset
shards = sorted(glob.glob(dataset + "/train-*.tar"))
data = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False).shuffle(1000)
loader = torch_loader(data.to_tuple("jpg").map(lambda sample: floats(sample[0])))
def epoch(): return count(loader)
"""
SPDL = """
import random
from spdl.pipeline import PipelineBuilder
names = files()
def batch(chosen): return torch.stack([floats(content_of(name)) for name in chosen])
def epoch():
    order = random.sample(names, len(names))
    batches = [order[i : i + 128] for i in range(0, len(order), 128)]
    pipeline = PipelineBuilder().add_source(batches).pipe(batch, concurrency=WORKERS).add_sink(4).build(num_threads=WORKERS)
    with pipeline.auto_stop():
        return count(pipeline)
"""
LITDATA = """
from litdata.streaming.writer import BinaryWriter
from litdata import StreamingDataLoader, StreamingDataset
folder = scratch + "/litdata"
writer = BinaryWriter(folder, chunk_bytes="16MB")
for number, name in enumerate(files()):
    writer.add_item(number, {"jpg": content_of(name)})
writer.done()
writer.merge()
class Data(StreamingDataset):
    def __getitem__(self, index): return floats(super().__getitem__(index)["jpg"])
loader = StreamingDataLoader(Data(folder, shuffle=True), batch_size=128, num_workers=WORKERS, persistent_workers=True)
def epoch(): return count(loader)
"""
STREAMING = """
import streaming
folder = scratch + "/mds"
with streaming.MDSWriter(out=folder, columns={"jpg": "bytes"}) as writer:
    for name in files():
        writer.write({"jpg": content_of(name)})
class Data(streaming.StreamingDataset):
    def __getitem__(self, index): return floats(super().__getitem__(index)["jpg"])
loader = torch_loader(Data(local=folder, shuffle=True, batch_size=128, predownload=512))
def epoch(): return count(loader)
"""
GRAIN = """
import grain
class Files:
    def __init__(self): self.names = files()
    def __len__(self): return len(self.names)
    def __getitem__(self, i): return content_of(self.names[i])
def epoch():
    data = grain.MapDataset.source(Files()).shuffle(seed=1).map(lambda content: floats(content).numpy())
    options = grain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=512)
    return count(data.to_iter_dataset(options).batch(128))
"""
TF_DATA = """
import glob
import tensorflow as tf
names = sorted(glob.glob(sys.argv[1] + "/*/*.jpg"))
records = sys.argv[3] + "/all.tfrecord"
with tf.io.TFRecordWriter(records) as writer:
    for name in names:
        with open(name, "rb") as file:
            writer.write(file.read())
def floats(content):
    pixels = tf.cast(tf.io.decode_jpeg(content, channels=3), tf.float32)
    return (tf.transpose(pixels, (2, 0, 1)) / 255 - 0.48) / 0.25
data = tf.data.TFRecordDataset(records).shuffle(10000).map(floats, tf.data.AUTOTUNE).batch(128).prefetch(tf.data.AUTOTUNE)
def epoch(): return sum(len(batch) for batch in data)
"""
PEERS = {
    "torch DataLoader": ("torchvision", TORCHVISION),
    "webdataset": ("webdataset", WEBDATASET),
    "SPDL": ("spdl.pipeline", SPDL),
    "LitData": ("litdata", LITDATA),
    "streaming": ("streaming", STREAMING),
    "Grain": ("grain", GRAIN),
}


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with cifar10() as (images, dataset):
        scratch = dataset.parent
        known = {name: code for name, (module, code) in PEERS.items() if module == "torchvision" or can_import(module)}
        for name in PEERS.keys() - known.keys():
            print(f"       {name} is not installed (script/bootstrap --for peers)")
        programs = {"ours": Program(OURS, dataset)}
        programs |= {name: Program(COMMON + code, images / "train", dataset, scratch) for name, code in known.items()}
        peers_python = Path(os.environ.get("STOKER_PEERS_PYTHON", PYTHON))
        if can_import("tensorflow", peers_python):
            programs["tf.data"] = Program(TF_DATA, images / "train", dataset, scratch, python=peers_python)
        else:
            print("       tf.data: no tensorflow (script/bootstrap --for peers, or STOKER_PEERS_PYTHON)")
        try:
            rates: dict[str, list[float]] = {name: [] for name in programs}
            for turn in range(turns + 1):
                for name, program in programs.items():
                    rate = program.rate()
                    if turn:
                        rates[name].append(rate)
        finally:
            for program in programs.values():
                program.close()
    for name, found in sorted(rates.items(), key=lambda item: -max(item[1])):
        print(f"       {name:18}{median_interval(found)} images/s")
    best = max((name for name in rates if name != "ours"), key=lambda name: median_interval(rates[name]).value)
    ratios = [theirs / ours for theirs, ours in zip(rates[best], rates["ours"], strict=True)]
    conclude(f"images per second, best of the peers ({best}) / ours", median_interval(ratios), limit=1 / 6)


if __name__ == "__main__":
    main()
