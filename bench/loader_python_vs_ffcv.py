"""An epoch of CIFAR-10 from raw pixels in Python: batches of 128, padded crop, flip, normalized floats; stoker.Loader with the
decoded images in memory (cache=), compared with FFCV over its file of raw pixels."""

import os
import sys

from loader_python import IMPORT_TORCHVISION, Program, beside, build, can_import, cifar10, run, tell_cost
from measure import conclude, ratio_interval

OURS = """
import stoker
loader = stoker.Loader(sys.argv[1], batch_size=128, transform="cifar-train", tensors="dlpack", fields=("image", "label"), cache=1 << 30)
def epoch():
    return sum(len(memoryview(batch["label"])) for batch in loader)
"""
FFCV_WRITE = (
    IMPORT_TORCHVISION
    + """
import os, sys
from ffcv.fields import IntField, RGBImageField
from ffcv.writer import DatasetWriter
data = torchvision.datasets.ImageFolder(sys.argv[1])
fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
DatasetWriter(sys.argv[2], fields, num_workers=os.cpu_count()).from_indexed_dataset(data, chunksize=1000)
"""
)
FFCV = (
    IMPORT_TORCHVISION
    + """
import os
import numpy
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, RandomTranslate, ToTensor, ToTorchImage
mean, deviation = numpy.array([125.3, 123.0, 113.9]), numpy.array([63.0, 62.1, 66.7])
image = [SimpleRGBImageDecoder(), RandomHorizontalFlip(), RandomTranslate(padding=4, fill=(0, 0, 0)),
         NormalizeImage(mean, deviation, numpy.float32), ToTensor(), ToTorchImage(channels_last=False)]
loader = Loader(sys.argv[1], batch_size=128, num_workers=os.cpu_count(), order=OrderOption.RANDOM, os_cache=True,
                drop_last=False, pipelines={"image": image, "label": [IntDecoder(), ToTensor()]})
def epoch():
    samples = 0
    for images, labels in loader:
        assert images.dtype == torch.float32 and images.shape[1:] == (3, 32, 32)
        samples += len(images)
    return samples
"""
)


def main() -> None:
    if not can_import("ffcv"):
        print("       ffcv is not installed (script/bootstrap --for peers): nothing to compare with")
        sys.exit(0)
    build()
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with cifar10() as (images, dataset):
        count = sum(len(files) for _, _, files in os.walk(images / "train"))
        pixels = dataset.parent / "train.beton"
        run(FFCV_WRITE, images / "train", pixels)
        theirs, ours = Program(FFCV, pixels), Program(OURS, dataset)
        found = beside(theirs, ours, pairs)
    tell_cost(theirs, ours)
    print(
        f"       {count} images: ours {found[0][1]:.0f}/s, FFCV {found[0][0]:.0f}/s (bound 187 000 from JPEG on 2 cores)"
    )
    print(f"       ours is {ratio_interval([(ours, other) for other, ours in found])} times as fast")
    conclude("images per second from raw pixels, FFCV / ours", ratio_interval(found), limit=1 / 1.2)


if __name__ == "__main__":
    main()
