// What kind of file a shard is, and how samples go into it. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/parquet/writer.h"
#include "format/tar.h"

namespace stoker::data {

enum class ContainerKind {
  tar,       ///< any tool opens it; about 770 bytes of header and padding for each file
  tfrecord,  ///< TensorFlow, DALI and others read it; about 60 bytes for each file
  parquet,   ///< tables: every data tool reads it; about 12 bytes for each sample
  hdf5,      ///< arrays: h5py, MATLAB and others read it; about 40 bytes for each sample
  zarr,      ///< the same arrays, in a zip archive; version 3 where it is written
  mds,       ///< MosaicML's: read where they lie, not written
  npy,       ///< NumPy's files, of which windows are samples: the same
  zarr_2,    ///< Zarr of version 2, where it is written
};

/// "tar", "tfrecord", "parquet", "hdf5", "mds", "npy", and "zarr" of both versions.
std::string_view to_text(ContainerKind kind);
/// What shards' names end in: "zarr.zip" for zarr, else the kind.
std::string_view shard_ending(ContainerKind kind);

/// Fills `out` from byte `offset` of a file.
using PieceReader = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;

/// One file of a sample.
struct PackedFile {
  std::string_view extension;
  std::uint64_t size = 0;
  std::span<const std::byte> bytes;  ///< all of it, unless `read` is set
  PieceReader read;                  ///< for a file that is too large to hold
};

/// A sample's label: its number for containers that store numbers, and the member that a tar is to have.
struct PackedLabel {
  std::optional<std::int64_t> number;
  std::string_view extension;  ///< empty: no member
  std::string text;            ///< of the member
};

/// Where a file has come to lie.
struct PackedPlace {
  std::uint64_t offset = 0;
  std::uint32_t crc32c = 0;
};

class Container {
 public:
  /// Writes to `sink`, which must outlive it. REQUIRES: a kind that is written. `columns` are those of
  /// Parquet and of arrays.
  static std::unique_ptr<Container> make(ContainerKind kind, const formats::ParquetShape& columns,
                                         formats::ByteSink& sink);
  virtual ~Container() = default;

  /// Appends a sample; `places` gets one for each file, whose offset may be known only at the end.
  virtual Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
                     std::vector<PackedPlace>& places) = 0;
  /// Ends the file. Nothing may be added after it.
  virtual Status finish() = 0;
  /// After finish(), where places had to wait for it: the offsets of all files in the order in which they
  /// were added. Else nothing.
  virtual std::span<const std::uint64_t> late_offsets() const { return {}; }
};

}  // namespace stoker::data
