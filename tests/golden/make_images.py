"""Writes images.json: small image files and what Pillow makes of them. python make_images.py images.json"""

import base64
import hashlib
import io
import json
import sys

import numpy
import PIL
from PIL import Image


def picture(width, height, channels):
    """Smooth waves with a sharp edge, so that subsampling, filters and rounding all show."""
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [127.5 + 127.5 * numpy.sin(x / (3 + c) + y / (5 + 2 * c) + c) for c in range(channels)]
    image = numpy.stack(planes, axis=-1).astype(numpy.uint8)
    image[height // 2, :, 0] = 255
    return image[:, :, 0] if channels == 1 else image


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def files():
    rgb = Image.fromarray(picture(37, 23, 3))
    grey = Image.fromarray(picture(37, 23, 1))
    rgba = Image.fromarray(picture(37, 23, 4), "RGBA")
    yield "baseline.jpg", encoded(rgb, "JPEG", quality=90)
    yield "444.jpg", encoded(rgb, "JPEG", quality=90, subsampling=0)
    yield "progressive.jpg", encoded(rgb, "JPEG", quality=80, progressive=True)
    yield "restarts.jpg", encoded(rgb, "JPEG", quality=80, restart_marker_blocks=2)
    yield "restarts-444.jpg", encoded(rgb, "JPEG", quality=80, subsampling=0, restart_marker_blocks=1)
    yield "grey.jpg", encoded(grey, "JPEG", quality=80)
    yield "cmyk.jpg", encoded(Image.fromarray(picture(37, 23, 4), "CMYK"), "JPEG", quality=90)
    yield "one-pixel.jpg", encoded(Image.new("RGB", (1, 1), (200, 30, 90)), "JPEG")
    yield "rgb.png", encoded(rgb, "PNG")
    yield "grey.png", encoded(grey, "PNG")
    yield "bilevel.png", encoded(grey.convert("1"), "PNG")
    yield "palette.png", encoded(rgb.quantize(16), "PNG")
    yield "alpha.png", encoded(rgba, "PNG")
    yield "lossy.webp", encoded(rgb, "WEBP", quality=80)
    yield "lossless.webp", encoded(rgb, "WEBP", lossless=True)
    yield "alpha.webp", encoded(rgba, "WEBP", lossless=True, exact=True)


def resized():
    """What Image.resize makes of a part, with each filter."""
    source = Image.fromarray(picture(37, 23, 3))
    for box, size in [
        ((0, 0, 37, 23), (37, 23)),
        ((0, 0, 37, 23), (16, 16)),
        ((0, 0, 37, 23), (74, 46)),
        ((3, 5, 31, 14), (16, 16)),
        ((10, 2, 11, 3), (8, 8)),
        ((0, 0, 37, 23), (5, 40)),
        ((7, 1, 36, 22), (3, 3)),
    ]:
        for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"):
            image = source.crop(box).resize(size, Image.Resampling[name.upper()])
            yield {"box": box, "size": size, "filter": name, "sha256": digest(image)}


def levels():
    """Each byte as ToTensor and Normalize turn it into float32, channel by channel."""
    value = numpy.arange(256, dtype=numpy.float32) / numpy.float32(255)
    mean = numpy.array([0.485, 0.456, 0.406], dtype=numpy.float32)
    deviation = numpy.array([0.229, 0.224, 0.225], dtype=numpy.float32)
    return (value[None, :] - mean[:, None]) / deviation[:, None]


def main(path):
    rows = []
    for name, data in files():
        image = Image.open(io.BytesIO(data)).convert("RGB")
        rows.append(
            {
                "name": name,
                "bytes": base64.b64encode(data).decode(),
                "width": image.width,
                "height": image.height,
                "rgb_sha256": digest(image),
            }
        )
    frames = [Image.fromarray(picture(8, 8, 3)), Image.fromarray(picture(8, 8, 3)[::-1].copy())]
    animation = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    source = picture(37, 23, 3)
    result = {
        "pillow": PIL.__version__,
        "images": rows,
        "animation": base64.b64encode(animation).decode(),
        "resize_source": base64.b64encode(source.tobytes()).decode(),
        "resized": list(resized()),
        "levels_sha256": hashlib.sha256(levels().astype("<f4").tobytes()).hexdigest(),
    }
    with open(path, "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")


main(sys.argv[1])
