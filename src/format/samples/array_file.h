// A file of a few arrays, written front to back and canonically: HDF5, or Zarr in a zip archive. One array of
// bytes comes first, piece by piece, and lies in the file as one run; then small ones of numbers. No library
// is needed. Used only inside this folder. Thread-compatible. Layouts: docs/formats/hdf5.md, zarr.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/samples/layout.h"
#include "format/tar.h"

namespace stoker::formats {

/// Whole numbers of 64 bits, in C order.
struct NumberArray {
  std::string path;  ///< from the root: "label", "files/jpg"
  bool is_signed = false;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> numbers;  ///< little-endian
};

class ArrayFile {
 public:
  /// `sink` must outlive it.
  static std::unique_ptr<ArrayFile> make(ArrayFormat format, ByteSink& sink);
  virtual ~ArrayFile() = default;

  /// Where byte 0 of the array `bytes` lies in the file, known from the start.
  virtual std::uint64_t bytes_begin() const = 0;
  /// Before all else.
  virtual Status begin() = 0;
  /// More of the array `bytes`.
  virtual Status append(std::span<const std::byte> piece, std::uint32_t crc32c) = 0;
  /// After it, nothing more may be appended.
  virtual Status end_bytes() = 0;
  virtual Status add(const NumberArray& array) = 0;
  virtual Status finish() = 0;
};

std::unique_ptr<ArrayFile> make_hdf5_file(ByteSink& sink);
/// `version` of Zarr: 2 or 3.
std::unique_ptr<ArrayFile> make_zarr_file(ByteSink& sink, int version);

}  // namespace stoker::formats
