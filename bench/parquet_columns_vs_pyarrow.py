"""Reading columns of a Parquet file, compared with pyarrow's read_row_group: CPU time per value, one row group after the other, from the
page cache, one thread each (use_threads=False), alternating. Neither verifies checksums: the file has none.

Limit for each kind of column: 1 / 0.95 of pyarrow's time."""

import functools
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet
from measure import BIN, REPOSITORY, check_limit, in_turns, ratio_interval

ROWS = 1 << 21
GROUP_ROWS = 1 << 20  # pyarrow's default
PASSES = 6
WORDS = 32_000
LIST = 512  # tokens per row


def kinds() -> dict[str, tuple[pyarrow.Array, dict[str, object]]]:
    """Columns by name, with the options for writing each."""
    chance = numpy.random.default_rng(1)
    floats = chance.standard_normal(ROWS, dtype=numpy.float32)
    tokens = numpy.minimum(chance.zipf(1.3, ROWS), WORDS).astype(numpy.int32)
    missing = chance.random(ROWS) < 0.1
    times = numpy.int64(1_700_000_000_000) + numpy.cumsum(chance.integers(0, 1000, ROWS))
    letters = pyarrow.array(["".join(map(chr, row)) for row in chance.integers(97, 123, (WORDS, 24))])
    lengths = pyarrow.array(chance.integers(4, 24, ROWS))
    texts = pyarrow.array(
        [
            text[:n]
            for text, n in zip(
                letters.take(chance.integers(0, WORDS, ROWS)).to_pylist(), lengths.to_pylist(), strict=True
            )
        ]
    )
    plain = {"use_dictionary": False, "compression": "none"}
    return {
        "float32": (pyarrow.array(floats), plain),
        "float32, snappy": (pyarrow.array(floats), {}),
        "float32, a tenth missing": (pyarrow.array(floats, mask=missing), plain),
        "float32, split, zstd": (
            pyarrow.array(floats),
            {"use_dictionary": False, "use_byte_stream_split": True, "compression": "zstd"},
        ),
        "truth values": (pyarrow.array(floats > 0), plain),
        "tokens, int32, zstd": (pyarrow.array(tokens), {"use_dictionary": False, "compression": "zstd"}),
        "tokens, lists, dictionary, zstd": (
            pyarrow.ListArray.from_arrays(
                pyarrow.array(numpy.arange(0, ROWS + 1, LIST, dtype=numpy.int32)), pyarrow.array(tokens)
            ),
            {"compression": "zstd"},
        ),
        "int64, dictionary": (pyarrow.array(chance.integers(0, 1000, ROWS)), {"compression": "none"}),
        "int64, differences": (
            pyarrow.array(times),
            {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED", "compression": "none"},
        ),
        "texts": (texts, plain),
        "texts, snappy": (texts, {"use_dictionary": False}),
        "texts, zstd": (texts, {"use_dictionary": False, "compression": "zstd"}),
        "texts, dictionary": (letters.take(pyarrow.array(chance.integers(0, 1000, ROWS))), {"compression": "none"}),
        "texts, differences of lengths": (texts, plain | {"column_encoding": "DELTA_LENGTH_BYTE_ARRAY"}),
    }


def values_of(column: pyarrow.ChunkedArray) -> bytes:
    """The concatenated bytes of all values; 0 or nothing for a missing one."""
    array = column.combine_chunks()
    while pyarrow.types.is_list(array.type):
        array = array.flatten()
    if pyarrow.types.is_string(array.type):
        return "".join(array.to_pylist()).encode()
    return (
        array.fill_null(False if pyarrow.types.is_boolean(array.type) else 0).to_numpy(zero_copy_only=False).tobytes()
    )


def ours(path: Path, column: str, expected: int) -> float:
    words = [str(word) for word in (BIN / "parquet_columns_bench", path, column, PASSES)]
    took, found = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    if int(found) != expected:
        sys.exit(f"{path}: column '{column}': other values than pyarrow reads")
    return float(took)


def theirs(file: pyarrow.parquet.ParquetFile, column: str) -> float:
    begin = time.process_time()
    for _ in range(PASSES):
        for group in range(file.num_row_groups):
            file.read_row_group(group, columns=[column], use_threads=False)
    return 1e9 * (time.process_time() - begin) / (PASSES * ROWS)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    chosen = sys.argv[2:]
    subprocess.run([REPOSITORY / "script/build", "parquet_columns_bench"], check=True, stdout=subprocess.DEVNULL)
    met = True
    with tempfile.TemporaryDirectory() as folder:
        for name, (array, options) in kinds().items():
            if chosen and name not in chosen:
                continue
            path = Path(folder) / "column.parquet"
            groups = GROUP_ROWS * len(array) // ROWS
            pyarrow.parquet.write_table(pyarrow.table({"x": array}), path, row_group_size=groups, **options)
            file = pyarrow.parquet.ParquetFile(path)
            expected = zlib.crc32(values_of(file.read().column("x")))
            found = in_turns(functools.partial(ours, path, "x", expected), functools.partial(theirs, file, "x"), pairs)
            best = [min(times) for times in zip(*found, strict=True)]
            print(f"       {name}: {best[0]:.2f} ns a value at best, pyarrow {best[1]:.2f} ns")
            met &= check_limit(f"time per value, {name}, ratio to pyarrow", ratio_interval(found), 1 / 0.95)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
