// Writes datasets of an HDF5 file block by block: the rows of one chunk along the first dimension at a time.
// Any number of threads compress chunks here; libhdf5, loaded on first use, only stores them. Used by pack
// and convert. Thread-safe: libhdf5 is called under one lock. Layout: docs/formats/hdf5.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "codec/chunks/box.h"
#include "codec/chunks/element_type.h"
#include "stoker/status.h"

namespace stoker::arrays {

struct Hdf5DatasetSpec {
  std::string path;      ///< parent groups are created
  codec::Extents shape;  ///< at least one dimension
  codec::Extents chunks;
  codec::ElementType type;
  std::optional<int> deflate_level = 4;  ///< nullopt: uncompressed
  bool is_shuffled = true;               ///< before compression; no gain for elements of one byte
};

/// A chunk shape of whole rows near 1 MiB, the cache size of HDF5's readers; part of a row if a row is
/// larger.
codec::Extents hdf5_chunks(std::span<const std::uint64_t> shape, std::uint64_t element_bytes);

class Hdf5Writer {
 public:
  /// Creates the file under a temporary name beside it. Unavailable if libhdf5 is missing, Invalid for types
  /// and shapes that HDF5 cannot hold.
  static Result<std::unique_ptr<Hdf5Writer>> create(const Path& file, std::vector<Hdf5DatasetSpec> datasets);
  /// Removes an unfinished file.
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  /// Blocks of a dataset along its first dimension, the rows per block, and the rows of one block (fewer in
  /// the last).
  std::uint64_t blocks(std::size_t dataset) const;
  std::uint64_t rows_per_block(std::size_t dataset) const;
  std::uint64_t rows_of(std::size_t dataset, std::uint64_t block) const;

  /// Compresses and writes the rows of one block, C order, on up to `threads` threads. Blocks may be written
  /// in any order, from several threads; each once.
  Status write_block(std::size_t dataset, std::uint64_t block, std::span<const std::byte> rows,
                     std::size_t threads = 1);
  /// Closes, syncs and renames the file to its final name. Invalid if a block is missing.
  Status finish();

 private:
  struct Impl;
  explicit Hdf5Writer(std::unique_ptr<Impl> parts);
  std::unique_ptr<Impl> impl_;
};

/// A source of a virtual dataset; sources follow one after the other.
struct Hdf5Part {
  std::string file;  ///< relative to the folder of the virtual dataset's file
  std::uint64_t rows = 0;
};

/// Writes a file whose dataset `spec.path` is virtual over the datasets of the same path in all parts.
/// `spec.shape[0]` is the sum of their rows. The parts may be missing until it is read. HDF5 1.10 and newer
/// read it.
Status write_hdf5_virtual(const Path& file, std::span<const Hdf5DatasetSpec> specs,
                          std::span<const Hdf5Part> parts);

}  // namespace stoker::arrays
