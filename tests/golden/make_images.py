"""Writes images.json: small image files and what Pillow makes of them. python make_images.py images.json"""

import base64
import hashlib
import io
import json
import sys

import numpy
import PIL
from PIL import Image, ImageEnhance, ImageOps

FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


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
        for name in FILTERS:
            image = source.crop(box).resize(size, Image.Resampling[name.upper()])
            yield {"box": box, "size": size, "filter": name, "sha256": digest(image)}


def pattern(width, height):
    """Noise that the test computes itself; its bytes are not stored."""
    y, x, c = numpy.ogrid[0:height, 0:width, 0:3]
    bits = (x * 2654435761 + y * 40503 * (c + 1) + x * y * 977 + c * 7919) % 2**32
    return Image.fromarray((bits // 2**9 % 256).astype(numpy.uint8))


def resized_patterns():
    """Shapes for which Pillow resizes vertically first, or just not, and shapes with ties for nearest."""
    for source, box, size in [
        ((300, 400), (0, 0, 300, 400), (224, 224)),
        ((31, 200), (0, 0, 31, 200), (77, 120)),
        ((40, 90), (0, 0, 40, 90), (40, 20)),
        ((1, 97), (0, 0, 1, 97), (3, 5)),
        ((2, 500), (0, 0, 2, 500), (2, 7)),
        ((60, 200), (5, 20, 55, 180), (24, 107)),
        ((60, 200), (5, 20, 55, 180), (24, 108)),
        ((60, 200), (5, 20, 55, 180), (24, 109)),
        ((20, 30), (0, 0, 20, 30), (45, 29)),
        ((20, 30), (0, 0, 20, 30), (45, 31)),
        ((376, 190), (0, 0, 376, 190), (282, 285)),
        ((45, 35), (0, 0, 45, 35), (30, 70)),
    ]:
        for name in FILTERS:
            image = pattern(*source).crop(box).resize(size, Image.Resampling[name.upper()])
            yield {"source": source, "box": box, "size": size, "filter": name, "sha256": digest(image)}


def coloured():
    """What Pillow's and torchvision's changes of colour and place make of a picture; each call by its name."""
    source = Image.fromarray(picture(37, 23, 3))
    random = Image.fromarray(numpy.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=numpy.uint8))
    calls = []
    for factor in (0.0, 0.1, 0.55, 1.0, 1.3, 1.9):
        calls += [(name, factor, getattr(ImageEnhance, kind)) for name, kind in ENHANCEMENTS.items()]
    for name, image in (("picture", source), ("random", random)):
        for call, factor, kind in calls:
            yield name, call, factor, kind(image).enhance(factor)
        for turns in (-0.5, -0.2, 0.0, 0.01, 0.1, 0.5):
            yield name, "hue", turns, hue_turned(image, turns)
        yield name, "grey", 0, image.convert("L").convert("RGB")
        for bits in (1, 4, 7, 8):
            yield name, "posterize", bits, ImageOps.posterize(image, bits)
        for threshold in (0, 96.5, 128, 255):
            yield name, "solarize", threshold, ImageOps.solarize(image, threshold)
        yield name, "autocontrast", 0, ImageOps.autocontrast(image)
        yield name, "equalize", 0, ImageOps.equalize(image)
        for degrees in (-90, -30, -4.5, 7.2, 30, 90, 135):
            yield name, "rotate", degrees, image.rotate(degrees, Image.Resampling.NEAREST, fillcolor=(9, 80, 170))
        for matrix in ((1, 0.21, 0, 0, 1, 0), (1, 0, 0, -0.3, 1, 0), (1, 0, -5, 0, 1, 0), (1, 0, 0, 0, 1, 7)):
            image_after = image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)
            yield name, "affine", list(matrix), image_after


ENHANCEMENTS = {"brightness": "Brightness", "contrast": "Contrast", "saturation": "Color", "sharpness": "Sharpness"}


def hue_turned(image, turns):
    """torchvision.transforms.functional.adjust_hue."""
    hue, saturation, value = image.convert("HSV").split()
    turned = numpy.array(hue, dtype=numpy.uint8)
    turned += numpy.int32(turns * 255).astype(numpy.uint8)
    return Image.merge("HSV", (Image.fromarray(turned, "L"), saturation, value)).convert("RGB")


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
        "resized_patterns": list(resized_patterns()),
        "random_source": base64.b64encode(
            numpy.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=numpy.uint8).tobytes()
        ).decode(),
        "coloured": [
            {"source": name, "call": call, "value": value, "sha256": digest(image)}
            for name, call, value, image in coloured()
        ],
        "levels_sha256": hashlib.sha256(levels().astype("<f4").tobytes()).hexdigest(),
    }
    with open(path, "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")


main(sys.argv[1])
