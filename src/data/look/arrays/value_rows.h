// Values of different lengths (text, bytes, pictures, lists of numbers) of an HDF5 or Zarr file as files of
// samples, and texts as labels. Used by row_scan. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "format/chunked/chunk_reader.h"
#include "format/samples/rows.h"

namespace stoker::data {

class ValueRows {
 public:
  /// A file that each sample has.
  struct Kind {
    const formats::RowArrays::Values* of = nullptr;
    std::string extension;
    /// Each file among the unpacked bytes of arrays(), where that lies there as it is.
    std::vector<formats::ValueArray::Place> places;
    formats::ByteOrder order = formats::ByteOrder::little;
    bool is_list = false;  ///< a .npy file is made of each
  };
  /// Where files may be: among what is stored, or only in a copy of it.
  enum class From { where_they_lie, copy };

  /// These of `arrays`, which must outlive it. What cannot be taken is added to `scan`. A picture is
  /// told by its bytes; those of a single array are called by their kind alone.
  static Result<ValueRows> open(const Path& file, const formats::RowArrays& arrays,
                                std::span<const formats::RowArrays::Values* const> chosen, From from,
                                ShardScan& scan);

  const std::vector<Kind>& kinds() const { return kinds_; }
  /// Of all files.
  std::uint64_t bytes() const;
  /// The file of a row, behind what `into` has.
  Status append(const Kind& kind, std::uint64_t row, std::string& into) const;
  /// What the places are in, one behind another.
  std::vector<formats::ChunkedArray> arrays() const;

 private:
  explicit ValueRows(const formats::RowArrays& arrays) : arrays_(&arrays) {}
  Status add(const formats::RowArrays::Values& values, From from, ShardScan& scan,
             std::vector<formats::ChunkedArray>& stored);
  Status name_kinds();
  Result<std::string> picture_kind(const Kind& kind) const;

  const formats::RowArrays* arrays_;
  std::vector<Kind> kinds_;
  formats::ShardFile shard_;
  std::unique_ptr<formats::ChunkMap> map_;
  std::unique_ptr<formats::ChunkReader> reader_;
};

/// The text of each row. Invalid for one that is over 4096 bytes or not UTF-8.
Result<std::vector<std::string>> read_texts(const Path& file, const formats::RowArrays& arrays,
                                            const formats::RowArrays::Values& values);

}  // namespace stoker::data
