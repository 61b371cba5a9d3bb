// Writes a file of a few arrays front to back and canonically: HDF5, or Zarr in a zip archive. The array
// `bytes` comes first, in pieces, and is contiguous in the file; small arrays of numbers follow. Needs no
// library. Used only inside this folder. Thread-compatible. Layouts: docs/formats/hdf5.md, zarr.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "archive/tar.h"
#include "arrays/samples/layout.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// 64-bit integers in C order.
struct NumberArray {
  std::string path;  ///< from the root: "label", "files/jpg"
  bool is_signed = false;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> numbers;  ///< little-endian
};

class ArrayFile {
 public:
  /// `sink` must outlive it.
  static std::unique_ptr<ArrayFile> make(ArrayFormat format, archive::ByteSink& sink);
  virtual ~ArrayFile() = default;

  /// Offset of the array `bytes` in the file, known from the start.
  virtual std::uint64_t bytes_begin() const = 0;
  /// Call first.
  virtual Status begin() = 0;
  /// Appends to the array `bytes`.
  virtual Status append(std::span<const std::byte> piece, std::uint32_t crc32c) = 0;
  /// Ends the array `bytes`.
  virtual Status end_bytes() = 0;
  virtual Status add(const NumberArray& array) = 0;
  virtual Status finish() = 0;
};

std::unique_ptr<ArrayFile> make_hdf5_file(archive::ByteSink& sink);
/// `version` of Zarr: 2 or 3.
std::unique_ptr<ArrayFile> make_zarr_file(archive::ByteSink& sink, int version);

}  // namespace stoker::arrays
