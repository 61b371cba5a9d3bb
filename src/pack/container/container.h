// Shard formats and how samples are written to them. Thread-compatible.
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

#include "archive/tar.h"
#include "dataset/container_kind.h"
#include "parquet/writer.h"
#include "stoker/status.h"

namespace stoker::pack {

/// Fills `out` from byte `offset` of a file.
using PieceReader = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;

/// One file of a sample.
struct PackedFile {
  std::string_view extension;
  std::uint64_t size = 0;
  std::span<const std::byte> bytes;  ///< all of it, unless `read` is set
  PieceReader read;                  ///< for a file that does not fit in memory
};

/// A sample's label: its number for formats that store numbers, and its member for tar.
struct PackedLabel {
  std::optional<std::int64_t> number;
  std::string_view extension;  ///< empty: no member
  std::string text;            ///< of the member
};

/// Location of a written file.
struct PackedPlace {
  std::uint64_t offset = 0;
  std::uint32_t crc32c = 0;
};

class Container {
 public:
  /// Writes to `sink`, which must outlive it. REQUIRES: a writable format. `columns` is for Parquet and
  /// arrays.
  static std::unique_ptr<Container> make(dataset::ContainerKind kind, const parquet::ParquetColumns& columns,
                                         archive::ByteSink& sink);
  virtual ~Container() = default;

  /// Appends a sample and adds a place for each file. Its offset may be set only after finish().
  virtual Status add(std::string_view key, std::span<const PackedFile> files, const PackedLabel& label,
                     std::vector<PackedPlace>& places) = 0;
  /// Finishes the file. Nothing may be added afterwards.
  virtual Status finish() = 0;
  /// After finish(), for formats with deferred offsets: the offsets of all files in the order of add(). Else
  /// empty.
  virtual std::span<const std::uint64_t> deferred_offsets() const { return {}; }
};

}  // namespace stoker::pack
