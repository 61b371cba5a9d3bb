// Datasets of MosaicML's streaming (MDS) and LitData: index.json lists their files and columns. Everything
// is validated, and nothing is unpickled. Used to index and import them. Plain values. Layout:
// docs/formats/mds-litdata.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::archive {

/// Bytes of the sizes and offsets before values and samples, in both formats.
inline constexpr std::uint64_t kStreamWord = sizeof(std::uint32_t);
/// Per sample.
inline constexpr std::size_t kMaxStreamColumns = 4096;
/// Per array: NumPy's limit when both formats were made.
inline constexpr std::uint64_t kMaxStreamDimensions = 32;

/// The encoding of a value.
enum class ColumnKind {
  file,              ///< unchanged: a file, an image, text
  json,              ///< a JSON document
  integer,           ///< an integer of `bytes` bytes
  unsigned_integer,  ///< an unsigned integer
  floating,          ///< a float of 2, 4 or 8 bytes
  boolean,           ///< one byte
  decimal_text,      ///< a number in decimal text
  array,             ///< MDS: type and shape, unless the column has them, then elements
  numpy,             ///< LitData: type, dimensions, shape (little-endian), then elements
  tensor,            ///< the same, big-endian
  elements,          ///< LitData: the elements of one dimension
  pixels,            ///< width, height, name of the mode, pixels
  files,             ///< a list of files: number, sizes, bytes
  prefixed_files,    ///< the same after four ignored bytes
  nested,            ///< LitData: lists and objects in a binary encoding
  unsupported,       ///< pickled, or unknown
};

struct StreamColumn {
  std::string name;      ///< nested names with dots: "image.bytes"; items of lists are numbered
  std::string encoding;  ///< in the index: "ndarray:float32:2,3"
  ColumnKind kind = ColumnKind::unsupported;
  std::string extension;             ///< of the file, from the encoding: "mp4"; may be empty
  std::uint32_t bytes = 0;           ///< of each value; 0: variable
  std::optional<DType> type;         ///< of elements, if the column has it
  std::vector<std::uint64_t> shape;  ///< ColumnKind::array: if the column has it; else empty
  bool is_named = true;              ///< false for an index in a list
};

/// The layout of samples in a shard.
enum class StreamLayout {
  rows,            ///< one after another
  single,          ///< the same without sizes: each is one value (LitData's tokens)
  zstd_samples,    ///< each compressed separately
  zstd_batches,    ///< several compressed together, with a table
  unpacked_table,  ///< one after another, with nulls; only in unpacked tables
};

struct StreamShard {
  std::string file;                           ///< the file that exists: "shard.00000.mds.zstd"
  std::uint64_t file_bytes = 0;               ///< from the index; 0: unknown
  std::map<std::string, std::string> hashes;  ///< of that file: algorithm to hexadecimal digits
  bool is_packed = false;                     ///< the whole file, by zstd or gzip
  std::uint64_t raw_bytes = 0;                ///< unpacked size from the index; 0: unknown
  std::uint64_t samples = 0;
  StreamLayout layout = StreamLayout::rows;
  bool has_config = false;  ///< MDS: the columns again, before the samples
  // Shared by the shards of an index with equal columns.
  std::shared_ptr<const std::vector<StreamColumn>> columns;
};

struct StreamIndex {
  std::string_view tool;  ///< "MDS" or "LitData"
  std::vector<StreamShard> shards;
};

constexpr std::string_view kStreamIndexFile = "index.json";

/// Whether the folder has an index.json of either kind, valid or not.
bool has_stream_index(const Path& folder);

/// Reads the index, and checks which file of each shard exists, packed or not. Invalid for unsupported
/// datasets (encryption, compressions but zstd and gzip, pickled columns of MDS), with the cure; Corrupt for
/// damage. LitData's columns need check_columns(), unless its chunks hold a table.
Result<StreamIndex> read_stream_index(const Path& folder);

/// The columns in an MDS shard's own header, the JSON before its samples.
Result<std::vector<StreamColumn>> mds_columns(std::string_view config, const std::string& subject);

/// Invalid, with the cure, for the first unsupported column: pickled, or of an unknown encoding.
Status check_columns(const std::vector<StreamColumn>& columns, const std::string& subject);

/// LitData's numbers of PyTorch and NumPy types; nothing for types that .npy does not have.
std::optional<DType> litdata_tensor_type(std::uint64_t number);
std::optional<DType> litdata_numpy_type(std::uint64_t number);

/// From NumPy's name: "float32"; nothing for others.
std::optional<DType> numpy_type(std::string_view name);

}  // namespace stoker::archive
