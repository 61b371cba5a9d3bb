// Folders of samples as MosaicML's streaming (MDS) and LitData write them: index.json says which files hold
// them, and what their columns are. Everything is checked before it is believed; nothing is unpickled. Used
// to index and import them. Plain values. Layout: docs/formats/mds-litdata.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/tensor_view.h"

namespace stoker::formats {

/// Bytes of the numbers that stand before values and samples, in both.
inline constexpr std::uint64_t kStreamWord = sizeof(std::uint32_t);
/// Of one sample; more is refused.
inline constexpr std::size_t kMostStreamColumns = 4096;
/// Of one array, as NumPy's own limit was when both were made.
inline constexpr std::uint64_t kMostStreamDimensions = 32;

/// How the bytes of a value are to be read.
enum class ColumnKind {
  file,        ///< as they are: a file, an image, text
  json,        ///< a JSON document
  integer,     ///< a whole number of `bytes` bytes
  natural,     ///< one without sign
  real,        ///< a fraction of 2, 4 or 8 bytes
  boolean,     ///< one byte
  digits,      ///< a number in decimal text
  array,       ///< MDS: type and shape, as far as the column has none, then elements
  numpy,       ///< LitData: type, dimensions, shape (little-endian), then elements
  tensor,      ///< the same, big-endian
  elements,    ///< LitData: the elements of one dimension
  pixels,      ///< width, height, name of the mode, pixels
  files,       ///< a list of files: number, sizes, bytes
  long_files,  ///< the same behind four bytes without meaning
  nested,      ///< LitData: lists and objects in a form of its own
  refused,     ///< what would run code, or is not known
};

struct StreamColumn {
  std::string name;      ///< of nested ones with dots: "image.bytes"; of lists their numbers
  std::string encoding;  ///< as the index calls it: "ndarray:float32:2,3"
  ColumnKind kind = ColumnKind::refused;
  std::string ending;                ///< that the encoding gives to a file: "mp4"; may be empty
  std::uint32_t bytes = 0;           ///< of each value; 0 where they differ
  std::optional<DType> type;         ///< of elements, where the column says
  std::vector<std::uint64_t> shape;  ///< ColumnKind::array: where the column says; else empty
  bool is_named = true;              ///< not by its place in a list
};

/// How samples lie in a shard.
enum class StreamLayout {
  rows,            ///< one after another
  single,          ///< the same without sizes: each is one value (LitData's tokens)
  zstd_samples,    ///< each packed by itself
  zstd_batches,    ///< several packed together, with a table
  unpacked_table,  ///< one after another, some values missing; in no file but what a table unpacks to
};

struct StreamShard {
  std::string file;                           ///< that there is: "shard.00000.mds.zstd"
  std::uint64_t file_bytes = 0;               ///< what the index says; 0: nothing
  std::map<std::string, std::string> hashes;  ///< of that file: by algorithm, in hexadecimal digits
  bool is_packed = false;                     ///< as a whole, by zstd or gzip
  std::uint64_t raw_bytes = 0;                ///< unpacked, what the index says; 0: nothing
  std::uint64_t samples = 0;
  StreamLayout layout = StreamLayout::rows;
  bool has_config = false;  ///< MDS: the columns again, before the samples
  // Shared by the shards of an index that have the same.
  std::shared_ptr<const std::vector<StreamColumn>> columns;
};

struct StreamIndex {
  std::string_view tool;  ///< "MDS" or "LitData"
  std::vector<StreamShard> shards;
};

constexpr std::string_view kStreamIndexFile = "index.json";

/// Whether the folder has an index.json of either kind, whatever else is wrong with it.
bool has_stream_index(const Path& folder);

/// Reads it, and looks which of a shard's files, packed and not, is there. Invalid for what cannot be taken
/// (encryption, compressions but zstd and gzip, pickled columns of MDS), with the cure; Corrupt for a damaged
/// one. LitData's columns are for check_columns(), where its chunks hold no table.
Result<StreamIndex> read_stream_index(const Path& folder);

/// The columns that an MDS shard says of itself, from the JSON before its samples.
Result<std::vector<StreamColumn>> mds_columns(std::string_view config, const std::string& subject);

/// Invalid, with the cure, for the first column that cannot be taken: pickled, or of an encoding that is not
/// known.
Status check_columns(const std::vector<StreamColumn>& columns, const std::string& subject);

/// As PyTorch and NumPy are numbered by LitData; nothing for types that no .npy file has.
std::optional<DType> litdata_tensor_type(std::uint64_t number);
std::optional<DType> litdata_numpy_type(std::uint64_t number);

/// As NumPy calls them: "float32"; nothing for others.
std::optional<DType> numpy_type(std::string_view name);

}  // namespace stoker::formats
