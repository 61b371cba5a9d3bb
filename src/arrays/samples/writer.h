// Writes samples as arrays into an HDF5 or Zarr file (layout.h). Canonical: the same samples give the same
// bytes. Used by pack. Thread-compatible. Layout: docs/formats/sample-arrays.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar.h"
#include "arrays/samples/layout.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// Bytes of a sample beside its files and key: the ranges of one file and of the key, and the label.
constexpr std::uint64_t kSampleArrayBytes = 40;

/// The reason that a kind of file cannot be the name of an array, or "".
std::string_view unsafe_array_name(std::string_view name);

class ArrayFile;

/// Call begin_sample(), then begin_file() and append() for each of its files, and finish() at the end.
class SampleArraysWriter {
 public:
  /// `files` are the kinds of files; `sink` must outlive the writer, and support overwrite_head().
  SampleArraysWriter(ArrayFormat format, archive::ByteSink& sink, std::vector<std::string> files,
                     bool has_labels);
  ~SampleArraysWriter();
  SampleArraysWriter(const SampleArraysWriter&) = delete;
  SampleArraysWriter& operator=(const SampleArraysWriter&) = delete;

  Status begin_sample(std::string_view key, std::optional<std::int64_t> label);
  /// Begins a file of `bytes` bytes, of kind `files[which]`, and returns its offset. REQUIRES: the sample
  /// has no file of that kind yet.
  Result<std::uint64_t> begin_file(std::size_t which, std::uint64_t bytes);
  Status append(std::span<const std::byte> piece, std::uint32_t crc32c);
  /// Writes keys and ranges. Call last.
  Status finish();

 private:
  // Pairs: begin and end in `bytes`.
  struct Places {
    std::string path;
    std::vector<std::uint64_t> numbers;
  };
  Status begin();
  Status write_keys();

  std::unique_ptr<ArrayFile> file_;
  bool has_begun_ = false;
  bool has_labels_;
  std::uint64_t at_ = 0;         // in `bytes`: offset of the next file
  std::uint64_t remaining_ = 0;  // of the current file
  std::uint64_t samples_ = 0;
  std::vector<Places> files_;
  std::vector<std::int64_t> labels_;
  std::string keys_;
  std::vector<std::uint64_t> key_ends_;
};

}  // namespace stoker::arrays
