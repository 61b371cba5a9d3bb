// The split that the file name of a shard names, by the conventions of the tools that write shards:
// WebDataset, TensorFlow, the Hugging Face Hub, Spark, Hive, Dask, img2dataset. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker::sources {

/// "train" of "train-00000-of-01024"; empty for other names.
std::string_view strip_shard_number(std::string_view file);

/// "x.tar" of "x.tar.gz" and "x.tar.zst".
std::string_view strip_compression(std::string_view file);

/// The prefix of a name with number and count, also with the hash of the Hub's older datasets:
/// "train-00000-of-00001-a09b74b3ef9c3b56.parquet" → "train". Empty for other names.
std::string_view counted_prefix(std::string_view file);

/// The part of a file name before its number: "train-000000.tar" and "train.tfrecord-00000-of-01024" →
/// "train". "all" if nothing but numbers, generated identifiers and Spark's "part" is left: "000000.tar",
/// "000_00000.parquet", "part-00000-<uuid>-c000.snappy.parquet".
std::string split_of_shard(std::string_view file);

}  // namespace stoker::sources
