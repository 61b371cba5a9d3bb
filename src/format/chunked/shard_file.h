// The bytes of a shard: those of a file, or of several that lie one behind another (a Zarr store in a folder,
// an HDF5 file with virtual datasets and the files beside it). Used by sources of samples and by whatever
// makes or verifies an index. Thread-safe: any number of threads may read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::formats {

/// One of the files.
struct ShardPart {
  std::string file;  ///< below the shard, or beside it where that is a file
  std::uint64_t bytes = 0;
  bool operator==(const ShardPart&) const = default;
};

/// Why the name of a part is refused, or "": it would leave the shard's folder, or is no plain name.
std::string_view unsafe_part(std::string_view file);

/// The files of a folder and those below it, by name. Invalid for a name that is refused.
Result<std::vector<ShardPart>> list_parts(const Path& folder);

class ShardFile {
 public:
  /// With `parts` these are opened when they are read. Without, the shard is a file, which stays open.
  static Result<ShardFile> open(const Path& shard, std::vector<ShardPart> parts = {});
  ShardFile() = default;
  explicit ShardFile(File file) : file_(std::move(file)) {}

  /// Of parts what they should have. Errors as File::size().
  Result<std::uint64_t> size() const;
  /// The first thing that is wrong with a part, by its name: missing, or of another size.
  Status check_parts() const;
  /// Fills `out`. Corrupt beyond the end, and for a part of another size than it should have.
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Slow storage may begin to fetch these bytes. Cannot fail; does nothing for parts.
  void will_need(std::uint64_t offset, std::uint64_t length) const;

 private:
  Result<File> open_part(std::size_t number) const;

  File file_;
  Path folder_;
  std::vector<ShardPart> parts_;
  std::vector<std::uint64_t> ends_;  // of each part
};

}  // namespace stoker::formats
