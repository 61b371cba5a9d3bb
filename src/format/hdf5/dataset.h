// A dataset of an HDF5 file that is read along its first dimension. libhdf5, loaded when first used, says
// once where the chunks lie; they are then read and unpacked here, by any number of threads, through a cache.
// Used by the loader, by convert and by whatever shows a dataset. Thread-safe: every const call may run on
// any number of threads at once. What is read, and how to get libhdf5: docs/formats/hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"
#include "format/chunked/chunk_map.h"
#include "format/chunked/value_array.h"
#include "format/chunks/box.h"
#include "format/chunks/chunk_cache.h"
#include "format/chunks/element_type.h"

namespace stoker::formats {

/// Whether a file may name other files: by external links, or as parts of a virtual dataset.
enum class OtherFiles {
  refuse,
  beside,    ///< those in the file's own folder, named without a path
  anywhere,  ///< any file that this process may read
};

struct Hdf5Options {
  OtherFiles others = OtherFiles::refuse;
  std::shared_ptr<ChunkCache>
      cache;  ///< shared with other datasets perhaps; null: 256 MiB for these together
  Duration patience = std::chrono::seconds(120);  ///< with libhdf5's description of a file
};

/// The paths of a file's datasets, sorted. Unavailable with the command that installs it where libhdf5 is
/// missing, Corrupt for a file that it cannot read or that makes it crash.
Result<std::vector<std::string>> list_hdf5(const Path& file, const Hdf5Options& options = {});

class Hdf5Dataset {
 public:
  /// One dataset, or several of a file at the price of one. Errors as list_hdf5(); NotFound if one is not
  /// there, Invalid for what is not read, by its name.
  static Result<std::unique_ptr<Hdf5Dataset>> open(const Path& file, std::string_view name,
                                                   const Hdf5Options& options = {});
  static Result<std::vector<std::unique_ptr<Hdf5Dataset>>> open(const Path& file,
                                                                const std::vector<std::string>& names,
                                                                const Hdf5Options& options = {});
  ~Hdf5Dataset();
  Hdf5Dataset(const Hdf5Dataset&) = delete;
  Hdf5Dataset& operator=(const Hdf5Dataset&) = delete;

  const std::string& name() const;
  const Extents& shape() const;
  const ElementType& type() const;
  /// Empty where the elements lie in one piece.
  const Extents& chunks() const;
  /// Size of the first dimension; 1 for a dataset without dimensions.
  std::uint64_t rows() const { return shape().empty() ? 1 : shape()[0]; }
  std::uint64_t row_bytes() const;
  /// Rows that lie in the same chunks: reading them together unpacks nothing twice.
  std::uint64_t rows_per_chunk() const { return chunks().empty() ? 1 : chunks()[0]; }

  /// Where in the file the elements lie as they are read, one behind another. Invalid, saying why, for a
  /// dataset that is packed, in chunks, in the header or in other files, or that was never written.
  Result<std::uint64_t> run() const;
  /// Where its chunks lie and how they are packed; a dataset in one piece is cut into some of about 1 MiB.
  /// Invalid, saying why, for a virtual one, one in the header and one that was never written.
  Result<ChunkedArray> chunked() const;

  /// Rows of a virtual dataset that are rows of another one.
  struct VirtualPiece {
    std::string file;  ///< as it is stored; "." for the same file
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::uint64_t source_row = 0;
    ChunkedArray array;  ///< the other, places as in its file
  };
  /// Of values of different lengths, one for each row: where each lies in the file. Invalid for a virtual one
  /// and one with several values in a row, Corrupt for references that lead nowhere.
  Result<ValueArray> values() const;
  /// All its rows, in order. Empty for one that is not virtual; Invalid where some rows lie nowhere.
  Result<std::vector<VirtualPiece>> virtual_pieces() const;

  /// `count` rows from `first` on, C order, this machine's byte order. Invalid beyond the end, and of values
  /// of different lengths; what was never written reads as the fill value. REQUIRES: `out` is count x
  /// row_bytes().
  Status read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  /// These rows, in this order. Each chunk is asked for once, however the rows lie.
  Status read_rows(std::span<const std::uint64_t> rows, std::span<std::byte> out) const;

 private:
  struct Parts;
  explicit Hdf5Dataset(std::unique_ptr<Parts> parts);
  Status check_elements() const;
  Status read_elements(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  std::unique_ptr<Parts> parts_;
};

/// Samples of different lengths in one dataset, cut by another: sample i is rows index[i] to index[i + 1] of
/// it.
class Hdf5Ragged {
 public:
  /// `index` has one number more than there are samples, none smaller than the one before. Corrupt otherwise.
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

}  // namespace stoker::formats
