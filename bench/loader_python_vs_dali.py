"""An epoch of CIFAR-10 from JPEG in Python: batches of 128, padded crop, flip, normalized floats; stoker.Loader compared with DALI on
the CPU (without DALI: with webdataset in torch's DataLoader, which decodes with Pillow)."""

import os
import sys

from loader_python import Program, beside, build, can_import, cifar10, tell_cost
from measure import conclude, ratio_interval

OURS = """
import stoker
loader = stoker.Loader(sys.argv[1], batch_size=128, transform="cifar-train", tensors="dlpack", fields=("image", "label"))
def epoch():
    return sum(len(memoryview(batch["label"])) for batch in loader)
"""
DALI = """
import glob, os
from nvidia.dali import fn, pipeline_def, types
files = sorted(glob.glob(os.path.join(sys.argv[1], "train", "*", "*.jpg")))
classes = sorted({os.path.dirname(name) for name in files})
labels = [classes.index(os.path.dirname(name)) for name in files]
@pipeline_def(batch_size=128, num_threads=os.cpu_count(), device_id=None)
def pipeline():
    jpegs, label = fn.readers.file(files=files, labels=labels, random_shuffle=True, name="reader")
    image = fn.decoders.image(jpegs, device="cpu")
    image = fn.paste(image, ratio=1.25, fill_value=0)
    image = fn.crop_mirror_normalize(image, crop=(32, 32), crop_pos_x=fn.random.uniform(range=(0, 1)),
                                     crop_pos_y=fn.random.uniform(range=(0, 1)), mirror=fn.random.coin_flip(),
                                     mean=[125, 123, 114], std=[63, 62, 67], dtype=types.FLOAT, output_layout="CHW")
    return image, label
pipe = pipeline()
pipe.build()
def epoch():
    count = len(files) // 128
    for _ in range(count):
        images, labels = pipe.run()
        images.as_tensor()
    return 128 * count
"""
WEBDATASET = """
import glob, os, torch, webdataset, numpy
def floats(image):
    pixels = numpy.asarray(image.convert("RGB"), dtype=numpy.float32).transpose(2, 0, 1)
    return torch.from_numpy((pixels / 255 - 0.48) / 0.25)
shards = sorted(glob.glob(os.path.join(sys.argv[1], "train-*.tar")))
data = webdataset.WebDataset(shards, shardshuffle=False).shuffle(1000).decode("pil").to_tuple("jpg")
data = data.map(lambda sample: floats(sample[0]))
loader = torch.utils.data.DataLoader(data, 128, num_workers=os.cpu_count(), persistent_workers=True)
def epoch():
    return sum(len(batch) for batch in loader)
"""


def main() -> None:
    build()
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    has_dali = can_import("nvidia.dali")
    with cifar10() as (images, dataset):
        count = sum(len(files) for _, _, files in os.walk(images / "train"))
        theirs = Program(DALI, images) if has_dali else Program(WEBDATASET, dataset)
        ours = Program(OURS, dataset)
        found = beside(theirs, ours, pairs)
    if has_dali:
        tell_cost(theirs, ours)
    name = "DALI" if has_dali else "webdataset"
    print(f"       {count} images: ours {found[0][1]:.0f}/s, {name} {found[0][0]:.0f}/s (bound 187 000 on 2 cores)")
    print(f"       ours is {ratio_interval([(ours, other) for other, ours in found])} times as fast")
    conclude(f"images per second, {name} / ours", ratio_interval(found), limit=1 / 6)


if __name__ == "__main__":
    main()
