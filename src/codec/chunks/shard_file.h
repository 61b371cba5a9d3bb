// The bytes of a shard: one file, or the concatenation of several (a Zarr store in a folder, an HDF5 file
// with virtual datasets and the files beside it). Used by sample sources and by index builders and verify.
// Thread-safe: any number of threads may read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::codec {

/// One file of a shard.
struct ShardPart {
  std::string file;  ///< path below the shard folder, or beside a shard that is a file
  std::uint64_t bytes = 0;
  bool operator==(const ShardPart&) const = default;
};

/// Why the name of a part is rejected, or "": it leaves the shard's folder, or is not a plain name.
std::string_view unsafe_part(std::string_view file);

/// All files below a folder, by name. Invalid for a rejected name.
Result<std::vector<ShardPart>> list_parts(const Path& folder);

class ShardFile {
 public:
  /// With `parts`, files are opened for each read. Without, the shard is one file, which stays open.
  static Result<ShardFile> open(const Path& shard, std::vector<ShardPart> parts = {});
  ShardFile() = default;
  explicit ShardFile(File file) : file_(std::move(file)) {}

  /// For parts, their expected total size. Errors as File::size().
  Result<std::uint64_t> size() const;
  /// The first error of a part, by name: missing, or a wrong size.
  Status check_parts() const;
  /// Fills `out`. Corrupt beyond the end, and for a part with a wrong size.
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Lets slow storage prefetch these bytes. Cannot fail; does nothing for parts.
  void will_need(std::uint64_t offset, std::uint64_t length) const;

 private:
  Result<File> open_part(std::size_t number) const;

  File file_;
  Path folder_;
  std::vector<ShardPart> parts_;
  std::vector<std::uint64_t> ends_;  // end offset of each part
};

}  // namespace stoker::codec
