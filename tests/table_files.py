"""Tables for the tests of `data convert` and `data pack`, and readers of their output."""

import io
from pathlib import Path

import numpy
import packing
import pyarrow
import pyarrow.parquet

ROWS = 60


def flowers(folder: Path, **options) -> pyarrow.Table:
    """Numbers of several types, texts, lists, dates; some values are missing. In `train.parquet`, of 6 row groups."""
    random = numpy.random.default_rng(7)
    count = range(ROWS)
    table = pyarrow.table(
        {
            "petal_length": random.normal(size=ROWS),
            "petal_width": random.normal(size=ROWS).astype("f4"),
            "sepal": random.integers(0, 90, ROWS).astype("i2"),
            "grown": pyarrow.array([i % 4 == 0 for i in count]),
            "count": pyarrow.array([2**40 + i for i in count], pyarrow.int64()),
            "age": pyarrow.array([None if i % 10 == 3 else i for i in count], pyarrow.int32()),
            "height": pyarrow.array([None if i % 7 == 2 else i / 8 for i in count], pyarrow.float64()),
            "species": pyarrow.array([("lily", "aster", "rose")[i % 3] for i in count]).dictionary_encode(),
            "number": pyarrow.array([i % 5 for i in count], pyarrow.uint8()),
            "name": [f"plant {i}" for i in count],
            "curve": pyarrow.array(
                [[i + k / 2 for k in range(i % 4)] for i in count], pyarrow.list_(pyarrow.float32())
            ),
            "grid": pyarrow.array(
                [[[i, 1, 2], [3, 4, 5]] for i in count], pyarrow.list_(pyarrow.list_(pyarrow.int64()))
            ),
            "ragged": pyarrow.array([[[1, 2], [3] if i == 17 else [3, 4]] for i in count]),
            "place": pyarrow.array([{"x": i / 2, "y": -i} for i in count]),
            "day": pyarrow.array([20_000 + i for i in count], pyarrow.date32()),
            "part": ["train" if i < 40 else "test" for i in count],
        }
    )
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(table, folder / "train.parquet", row_group_size=10, **options)
    return table


def arrays(dataset: Path, extension: str) -> dict[str, numpy.ndarray]:
    """The arrays of a tar dataset with this extension, by key."""
    found = packing.members(dataset)
    ending = "." + extension
    return {
        name.removesuffix(ending): numpy.load(io.BytesIO(content))
        for name, content in found.items()
        if name.endswith(ending)
    }
