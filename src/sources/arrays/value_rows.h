// Variable-length values (text, bytes, images, lists of numbers) of an HDF5 or Zarr file as files of samples,
// and texts as labels. Used by row_scan. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrays/samples/rows.h"
#include "base/file.h"
#include "codec/chunks/chunk_reader.h"
#include "sources/shard_scan.h"
#include "stoker/status.h"

namespace stoker::sources {

class ValueRows {
 public:
  /// A component of each sample.
  struct Kind {
    const arrays::RowArrays::Values* of = nullptr;
    std::string extension;
    /// Each file in the unpacked bytes of arrays(), if it is stored verbatim.
    std::vector<codec::ValueArray::Range> places;
    codec::ByteOrder order = codec::ByteOrder::little;
    bool is_list = false;  ///< converted to a .npy file
  };
  /// In the stored bytes, or only in a converted copy.
  enum class Access { in_place, copy };

  /// Opens the values of `chosen` in `arrays`, which must outlive it. Unsupported values are added to `scan`.
  /// Images are detected by content; a single image array is named by its format alone.
  static Result<ValueRows> open(const Path& file, const arrays::RowArrays& arrays,
                                std::span<const arrays::RowArrays::Values* const> chosen, Access access,
                                ShardScan& scan);

  const std::vector<Kind>& kinds() const { return kinds_; }
  /// Total size of all files.
  std::uint64_t bytes() const;
  /// Appends the file of a row to `into`.
  Status append(const Kind& kind, std::uint64_t row, std::string& into) const;
  /// The arrays that the places refer to, concatenated.
  std::vector<codec::ChunkedArray> arrays() const;

 private:
  explicit ValueRows(const arrays::RowArrays& arrays) : arrays_(&arrays) {}
  Status add(const arrays::RowArrays::Values& values, Access access, ShardScan& scan,
             std::vector<codec::ChunkedArray>& stored);
  Status name_kinds();
  Result<std::string> picture_kind(const Kind& kind) const;

  const arrays::RowArrays* arrays_;
  std::vector<Kind> kinds_;
  codec::ShardFile shard_;
  std::unique_ptr<codec::ChunkMap> map_;
  std::unique_ptr<codec::ChunkReader> reader_;
};

/// The text of each row. Invalid for a text over 4096 bytes or not UTF-8.
Result<std::vector<std::string>> read_texts(const Path& file, const arrays::RowArrays& arrays,
                                            const arrays::RowArrays::Values& values);

}  // namespace stoker::sources
