// Writes datasets of an HDF5 file block by block: the rows of one chunk along the first dimension at a time.
// Chunks are packed here, by any number of threads; libhdf5, loaded when first used, only puts them into the
// file. Used by pack and convert. Thread-safe: libhdf5 is called under one lock. Layout:
// docs/formats/hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/chunks/box.h"
#include "format/chunks/element_type.h"

namespace stoker::formats {

struct Hdf5DatasetSpec {
  std::string path;  ///< groups on the way are made
  Extents shape;     ///< one dimension at least
  Extents chunks;
  ElementType type;
  std::optional<int> deflate_level = 4;  ///< nothing: not packed
  bool is_shuffled = true;               ///< before packing; no gain for elements of one byte
};

/// Rows for each chunk of whole rows near 1 MiB, which is what HDF5's readers cache; where a row is larger,
/// its part.
Extents hdf5_chunks(std::span<const std::uint64_t> shape, std::uint64_t element_bytes);

class Hdf5Writer {
 public:
  /// Begins the file under another name beside it. Unavailable where libhdf5 is missing, Invalid for what
  /// HDF5 cannot hold.
  static Result<std::unique_ptr<Hdf5Writer>> create(const Path& file, std::vector<Hdf5DatasetSpec> datasets);
  /// Drops a file that was not finished.
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  /// Blocks of a dataset along its first dimension, the rows of all but the last, and of that block.
  std::uint64_t blocks(std::size_t dataset) const;
  std::uint64_t rows_per_block(std::size_t dataset) const;
  std::uint64_t rows_of(std::size_t dataset, std::uint64_t block) const;

  /// Packs the rows of one block, C order, on up to `threads` threads. Blocks may come in any order, from
  /// several threads; each once.
  Status write_block(std::size_t dataset, std::uint64_t block, std::span<const std::byte> rows,
                     std::size_t threads = 1);
  /// Closes, syncs and renames the file over its name: it exists from here on. Invalid if a block is missing.
  Status finish();

 private:
  struct Parts;
  explicit Hdf5Writer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// One of the datasets that a virtual one is made of, one after the other.
struct Hdf5Part {
  std::string file;  ///< as readers will look for it: relative to the folder of the virtual dataset's file
  std::uint64_t rows = 0;
};

/// Writes a file whose dataset `spec.path` is that of all parts, of the same path there. `spec.shape[0]` is
/// the sum of their rows. The parts need not be there yet. HDF5's own readers follow it since 1.10.
Status write_hdf5_virtual(const Path& file, std::span<const Hdf5DatasetSpec> specs,
                          std::span<const Hdf5Part> parts);

}  // namespace stoker::formats
