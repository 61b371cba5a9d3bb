// Reads a dataset of an HDF5 file along its first dimension. libhdf5, loaded on first use, reports once the
// offsets of the chunks. They are then read and decompressed here, by any number of threads, through a cache.
// Used by the loader, by convert and by inspect. Thread-safe: every const call may run on any number of
// threads at once. Supported features, and how to get libhdf5: docs/formats/hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "codec/chunks/box.h"
#include "codec/chunks/chunk_cache.h"
#include "codec/chunks/chunk_map.h"
#include "codec/chunks/element_type.h"
#include "codec/chunks/value_array.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::arrays {

/// Whether a file may refer to other files: by external links, or as sources of a virtual dataset.
enum class ExternalFiles {
  refuse,
  same_folder,  ///< only files in the same folder, named without a path
  anywhere,     ///< any file that this process may read
};

struct Hdf5Options {
  ExternalFiles external_files = ExternalFiles::refuse;
  std::shared_ptr<codec::ChunkCache> cache;  ///< may be shared between datasets; null: a new cache of 256 MiB
  Duration timeout = std::chrono::seconds(120);  ///< for libhdf5's description of a file
};

/// The sorted paths of a file's datasets. Unavailable with an install command if libhdf5 is missing, Corrupt
/// for a file that libhdf5 cannot read or that crashes it.
Result<std::vector<std::string>> list_hdf5(const Path& file, const Hdf5Options& options = {});

class Hdf5Dataset {
 public:
  /// Opens one dataset, or several at the same cost. Errors as list_hdf5(); NotFound for a missing dataset,
  /// Invalid for an unsupported one.
  static Result<std::unique_ptr<Hdf5Dataset>> open(const Path& file, std::string_view name,
                                                   const Hdf5Options& options = {});
  static Result<std::vector<std::unique_ptr<Hdf5Dataset>>> open(const Path& file,
                                                                const std::vector<std::string>& names,
                                                                const Hdf5Options& options = {});
  ~Hdf5Dataset();
  Hdf5Dataset(const Hdf5Dataset&) = delete;
  Hdf5Dataset& operator=(const Hdf5Dataset&) = delete;

  const std::string& name() const;
  const codec::Extents& shape() const;
  const codec::ElementType& type() const;
  /// Empty for contiguous elements.
  const codec::Extents& chunks() const;
  /// Size of the first dimension; 1 for a dataset without dimensions.
  std::uint64_t rows() const { return shape().empty() ? 1 : shape()[0]; }
  std::uint64_t row_bytes() const;
  /// Rows of the same chunks: reading them together decompresses nothing twice.
  std::uint64_t rows_per_chunk() const { return chunks().empty() ? 1 : chunks()[0]; }

  /// Offset of the elements if they are contiguous in the file and need no conversion. Otherwise Invalid with
  /// the reason: compressed, chunked, in the header or in other files, or never written.
  Result<std::uint64_t> run() const;
  /// Offsets and coders of the chunks; a contiguous dataset is cut into pieces of about 1 MiB. Invalid with
  /// the reason for a virtual dataset, one in the header and one that was never written.
  Result<codec::ChunkedArray> chunked() const;

  /// Rows of a virtual dataset that map to rows of a source.
  struct VirtualPiece {
    std::string file;  ///< as stored; "." for the same file
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::uint64_t source_row = 0;
    codec::ChunkedArray array;  ///< the source, with offsets in its file
  };
  /// For values of variable length, one per row: their ranges in the file. Invalid for a virtual dataset and
  /// for several values per row, Corrupt for dangling references.
  Result<codec::ValueArray> values() const;
  /// All rows in order. Empty if the dataset is not virtual; Invalid if rows are unmapped.
  Result<std::vector<VirtualPiece>> virtual_pieces() const;

  /// Reads `count` rows from `first` on, in C order and this machine's byte order. Invalid beyond the end and
  /// for values of variable length; unwritten elements read as the fill value. REQUIRES: `out` is count x
  /// row_bytes().
  Status read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  /// Reads these rows, in this order. Decodes each chunk once, whatever the order.
  Status read_rows(std::span<const std::uint64_t> rows, std::span<std::byte> out) const;

 private:
  struct Impl;
  explicit Hdf5Dataset(std::unique_ptr<Impl> parts);
  Status check_elements() const;
  Status read_elements(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  std::unique_ptr<Impl> impl_;
};

/// Samples of variable length in one dataset, split by a second one: sample i is rows index[i] to index[i +
/// 1].
class Hdf5Ragged {
 public:
  /// `index` holds one ascending offset more than there are samples. Corrupt otherwise.
  static Result<Hdf5Ragged> open(std::unique_ptr<Hdf5Dataset> values, const Hdf5Dataset& index);

  std::uint64_t samples() const { return begin_.size() - 1; }
  const Hdf5Dataset& values() const { return *values_; }
  /// Rows of sample `i`. REQUIRES: i < samples().
  std::uint64_t rows(std::uint64_t i) const { return begin_[i + 1] - begin_[i]; }
  /// REQUIRES: `out` has rows(i) x values().row_bytes() bytes.
  Status read(std::uint64_t i, std::span<std::byte> out) const {
    return values_->read_rows(begin_[i], rows(i), out);
  }

 private:
  Hdf5Ragged(std::unique_ptr<Hdf5Dataset> values, std::vector<std::uint64_t> begin)
      : values_(std::move(values)), begin_(std::move(begin)) {}

  std::unique_ptr<Hdf5Dataset> values_;
  std::vector<std::uint64_t> begin_;
};

}  // namespace stoker::arrays
