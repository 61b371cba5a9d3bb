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

#include "base/status.h"
#include "format/samples/layout.h"
#include "format/tar.h"

namespace stoker::formats {

/// Bytes that a sample takes beside its files and key: the places of one file and of the key, and the label.
constexpr std::uint64_t kSampleArrayBytes = 40;

/// Why a kind of file cannot be the name of an array, or "".
std::string_view unsafe_array_name(std::string_view name);

class ArrayFile;

/// begin_sample(), then begin_file() and append() for each file that it has; and finish() at last.
class SampleArraysWriter {
 public:
  /// `files` are the kinds of files; `sink` must outlive the writer, and know put_head().
  SampleArraysWriter(ArrayFormat format, ByteSink& sink, std::vector<std::string> files, bool has_labels);
  ~SampleArraysWriter();
  SampleArraysWriter(const SampleArraysWriter&) = delete;
  SampleArraysWriter& operator=(const SampleArraysWriter&) = delete;

  Status begin_sample(std::string_view key, std::optional<std::int64_t> label);
  /// A file of so many bytes, of kind `files[which]`: returns where they will lie. REQUIRES: the sample has
  /// none of that kind yet.
  Result<std::uint64_t> begin_file(std::size_t which, std::uint64_t bytes);
  Status append(std::span<const std::byte> piece, std::uint32_t crc32c);
  /// Writes keys and places. Nothing may be added after it.
  Status finish();

 private:
  // Pairs: where it begins and ends in `bytes`.
  struct Places {
    std::string path;
    std::vector<std::uint64_t> numbers;
  };
  Status begin();
  Status write_keys();

  std::unique_ptr<ArrayFile> file_;
  bool has_begun_ = false;
  bool has_labels_;
  std::uint64_t at_ = 0;    // in `bytes`: where the next file begins
  std::uint64_t owed_ = 0;  // of the file at hand
  std::uint64_t samples_ = 0;
  std::vector<Places> files_;
  std::vector<std::int64_t> labels_;
  std::string keys_;
  std::vector<std::uint64_t> key_ends_;
};

}  // namespace stoker::formats
