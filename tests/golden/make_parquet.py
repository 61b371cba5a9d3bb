"""Writes parquet/: one list of files in every compression, page version and encoding, and some that are no list.

Needs pyarrow, which nothing else here does: run it with a Python that has it."""

from pathlib import Path

import pyarrow
import pyarrow.parquet

FOLDER = Path(__file__).parent / "parquet"
ROWS = [(f"{name}/{i:04}.jpg", name, "val" if i % 5 == 0 else "train") for name in ("cat", "dog") for i in range(20)]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    paths, labels, splits = (list(column) for column in zip(*ROWS, strict=True))
    table = pyarrow.table(
        {
            "image_id": list(range(len(ROWS))),
            "box": [[1, 2]] * len(ROWS),
            "path": paths,
            "meta": [{"a": 1, "b": {"c": "x"}}] * len(ROWS),
            "label": labels,
            "split": splits,
        }
    )
    small = {"row_group_size": 15, "write_statistics": False, "store_schema": False}

    def write(name: str, of: pyarrow.Table = table, **options) -> None:
        pyarrow.parquet.write_table(of, FOLDER / f"{name}.parquet", **(small | options))

    write("none-1-plain", compression="none", data_page_version="1.0", use_dictionary=False)
    write("snappy-1-dictionary", compression="snappy", data_page_version="1.0")
    write("gzip-2-plain", compression="gzip", data_page_version="2.0", use_dictionary=False)
    write("zstd-2-dictionary", compression="zstd", data_page_version="2.0", data_page_size=64)
    numbers = pyarrow.array([None if i % 10 == 9 else i % 3 for i in range(len(ROWS))], pyarrow.int32())
    write("numbers", pyarrow.table({"path": paths, "label": numbers}))
    write("brotli", compression="brotli")
    write("delta", use_dictionary=False, column_encoding={"path": "DELTA_BYTE_ARRAY"})
    write("fractions", pyarrow.table({"path": [0.5, 1.5]}))
    write("nameless", pyarrow.table({"a": [1], "b": ["x"]}))


if __name__ == "__main__":
    main()
