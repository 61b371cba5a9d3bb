"""Small whole Parquet files for fuzz/data/parquet_fuzz.cc: every encoding, codec and kind of nesting."""

import io

import pyarrow
import pyarrow.parquet

ENCODINGS = {
    "DELTA_BINARY_PACKED": ["i", "n"],
    "DELTA_LENGTH_BYTE_ARRAY": ["s"],
    "DELTA_BYTE_ARRAY": ["s", "x"],
    "BYTE_STREAM_SPLIT": ["i", "f", "x"],
}


def table() -> pyarrow.Table:
    rows = range(40)
    return pyarrow.table(
        {
            "i": pyarrow.array([i * i for i in rows], pyarrow.int32()),
            "n": pyarrow.array([None if i % 3 == 0 else -i for i in rows], pyarrow.int64()),
            "b": pyarrow.array([i % 5 == 0 for i in rows]),
            "f": pyarrow.array([i / 3 for i in rows], pyarrow.float32()),
            "s": pyarrow.array([f"path/{i // 4}/{i}" for i in rows]),
            "x": pyarrow.array([bytes([i, 1, 2]) for i in rows], pyarrow.binary(3)),
            "d": pyarrow.array(list(rows), pyarrow.decimal128(20, 2)),
            "t": pyarrow.array([i * 10**9 for i in rows], pyarrow.timestamp("us")),
            "l": pyarrow.array([None if i % 7 == 0 else [[j, None] for j in range(i % 4)] for i in rows]),
            "m": pyarrow.array([[("k", i)] for i in rows], pyarrow.map_(pyarrow.string(), pyarrow.int8())),
        }
    )


def parquet_seeds() -> list[bytes]:
    found = []

    def write(of: pyarrow.Table, **options) -> None:
        data = io.BytesIO()
        pyarrow.parquet.write_table(of, data, row_group_size=25, store_schema=False, **options)
        found.append(data.getvalue())

    whole = table()
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        write(whole, compression=codec, data_page_version="2.0" if codec == "zstd" else "1.0")
    write(whole, compression="none", use_dictionary=False, data_page_version="2.0")
    write(whole, compression="none", use_dictionary=False, use_deprecated_int96_timestamps=True)
    write(whole, compression="none", write_page_index=True, data_page_size=16, write_batch_size=8)
    for encoding, names in ENCODINGS.items():
        options = {"compression": "none", "use_dictionary": False, "column_encoding": dict.fromkeys(names, encoding)}
        write(whole.select(names), **options)
    return found
