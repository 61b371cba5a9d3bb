// Reads samples stored as arrays of an HDF5 or Zarr file (layout.h), whatever program wrote it. The ranges
// of all files are read and checked; the bytes of the files stay in place. Used by index builders and
// convert. Thread-safe once opened. Layout: docs/formats/sample-arrays.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arrays/samples/layout.h"
#include "base/file.h"
#include "codec/chunks/chunk_map.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// Rows of an array, and their place in an array of chunks.
struct RowPiece {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t source_row = 0;
  codec::ChunkedArray array;
};

class SampleArrays {
 public:
  /// A range of the array `bytes`.
  struct ByteSpan {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_present() const { return begin <= end; }
  };
  struct Kind {
    std::string name;
    std::vector<ByteSpan> places;  ///< one for each sample
  };

  /// `file` may be a folder for Zarr. Unavailable if libhdf5 is needed and missing, NotFound without an
  /// array `bytes`, Invalid for arrays that are not samples, Corrupt for damage. Every range is then inside
  /// `bytes`.
  static Result<SampleArrays> open(const Path& file, ArrayFormat format);
  ~SampleArrays();
  SampleArrays(SampleArrays&&) noexcept;

  std::uint64_t samples() const { return samples_; }
  /// The size of the array `bytes`.
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<Kind>& files() const { return files_; }
  /// Empty without keys, else one for each sample.
  const std::vector<ByteSpan>& keys() const { return keys_; }
  const std::vector<std::int64_t>& labels() const { return labels_; }
  /// Arrays without a known meaning.
  const std::vector<std::string>& ignored_arrays() const { return ignored_; }

  /// The offset of the array `bytes` in the file. Invalid, with the reason, if it is not contiguous there.
  Result<std::uint64_t> contiguous_offset() const;
  /// The chunks of a non-contiguous array. Invalid, with the reason, if they are not in one file.
  Result<codec::ChunkedArray> chunked() const;
  /// The files with the chunks of a store that is a folder; empty for one file.
  Result<std::vector<codec::ShardPart>> parts() const;
  /// Reads and unpacks a range of `bytes`. REQUIRES: begin + out.size() <= bytes().
  Status read(std::uint64_t begin, std::span<std::byte> out) const;

  class Store;

 private:
  explicit SampleArrays(std::unique_ptr<Store> store);
  Status open_arrays(const std::string& subject);
  Status load(const std::string& subject);
  Result<std::vector<ByteSpan>> places(const std::string& name, const std::string& subject) const;

  std::unique_ptr<Store> store_;
  std::uint64_t samples_ = 0;
  std::uint64_t bytes_ = 0;
  bool has_bytes_ = false;
  bool has_keys_ = false;
  bool has_labels_ = false;
  std::vector<Kind> files_;
  std::vector<ByteSpan> keys_;
  std::vector<std::int64_t> labels_;
  std::vector<std::string> ignored_;
};

}  // namespace stoker::arrays
