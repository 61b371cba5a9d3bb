// Reads samples that are arrays of an HDF5 or Zarr file (layout.h), whoever wrote it: the places of all files
// are read and checked, the files' bytes stay where they are. Used by index builders, and by convert.
// Thread-safe once opened. Layout: docs/formats/sample-arrays.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/samples/layout.h"

namespace stoker::formats {

/// Rows of an array, and which rows of what in chunks they are.
struct RowPiece {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t source_row = 0;
  ChunkedArray array;
};

class SampleArrays {
 public:
  /// In the array `bytes`.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_there() const { return begin <= end; }
  };
  struct Kind {
    std::string name;
    std::vector<Place> places;  ///< one for each sample
  };

  /// `file` may be a folder where it is Zarr. Unavailable where libhdf5 is needed and missing, NotFound where
  /// there is no array `bytes`, Invalid for arrays that are no samples, Corrupt for what does not hold: then
  /// every place lies in `bytes`.
  static Result<SampleArrays> open(const Path& file, ArrayFormat format);
  ~SampleArrays();
  SampleArrays(SampleArrays&&) noexcept;

  std::uint64_t samples() const { return samples_; }
  /// Of the array `bytes`.
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<Kind>& files() const { return files_; }
  /// Empty where there are none, else one for each sample.
  const std::vector<Place>& keys() const { return keys_; }
  const std::vector<std::int64_t>& labels() const { return labels_; }
  /// Arrays that have no meaning here.
  const std::vector<std::string>& others() const { return others_; }

  /// Where the array `bytes` begins in the file. Invalid, saying why, where it does not lie there as one run.
  Result<std::uint64_t> run() const;
  /// Where its chunks lie, if it does not. Invalid, saying why, where they are in no one file.
  Result<ChunkedArray> chunked() const;
  /// The files of a store that is a folder, among which chunks lie; empty for one file.
  Result<std::vector<ShardPart>> parts() const;
  /// These of `bytes`, wherever they lie, unpacked. REQUIRES: begin + out.size() <= bytes().
  Status read(std::uint64_t begin, std::span<std::byte> out) const;

  class Store;

 private:
  explicit SampleArrays(std::unique_ptr<Store> store);
  Status open_arrays(const std::string& subject);
  Status take(const std::string& subject);
  Result<std::vector<Place>> places(const std::string& name, const std::string& subject) const;

  std::unique_ptr<Store> store_;
  std::uint64_t samples_ = 0;
  std::uint64_t bytes_ = 0;
  bool has_bytes_ = false;
  bool has_keys_ = false;
  bool has_labels_ = false;
  std::vector<Kind> files_;
  std::vector<Place> keys_;
  std::vector<std::int64_t> labels_;
  std::vector<std::string> others_;
};

}  // namespace stoker::formats
