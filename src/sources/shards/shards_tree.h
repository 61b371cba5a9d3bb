// The files of a dataset, or of shards from other tools, as a source tree. Reads them in place and checks the
// CRC-32C of the index or of the record. Filled by one thread, read by many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "sources/files/tree.h"

namespace stoker::sources {

/// What a stored checksum covers.
enum class ChecksumScope {
  none,    ///< no checksum (tar)
  file,    ///< each file, in the index
  record,  ///< each record
};

/// Location of a file.
struct ShardPlace {
  std::uint32_t shard = 0;
  std::uint32_t crc32c = 0;  ///< with ChecksumScope::file
  std::uint64_t offset = 0;
  std::uint64_t record_at = 0;  ///< with ChecksumScope::record: the record of the file, including framing
  std::uint64_t record_bytes = 0;
};

class ShardsTree final : public SourceTree {
 public:
  ShardsTree(Path folder, ChecksumScope checksum_scope, std::shared_ptr<RateLimiter> rate_limiter);

  /// Returns the number for `ShardPlace::shard`. Reads come from `unpacked` if not null.
  std::uint32_t add_shard(std::string file, std::uint64_t bytes, std::shared_ptr<const File> unpacked);
  /// Returns the number for `SourceFile::place`.
  std::uint64_t add_place(const ShardPlace& place);
  ChecksumScope checksum_scope() const { return checksum_scope_; }

  /// Empty: samples come from an index, not from a walk.
  Result<Listing> list(const std::string& folder) const override;
  Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const override;
  bool has_parts(const SourceFile& file) const override;
  /// One thread must read the parts of a file in order: their CRCs are combined.
  Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override;
  std::string display_path(std::string_view path) const override;

 private:
  struct Shard {
    std::string file;
    std::uint64_t bytes = 0;
    std::shared_ptr<const File> unpacked;  // perhaps shared by several shards
  };

  std::string name_of(std::uint32_t shard) const;
  Result<const File*> open(std::uint32_t shard) const;
  Status check(std::string_view folder, const SourceFile& file, std::uint32_t found) const;
  Status read_from_record(const File& shard, const SourceFile& file, FileBytes& into) const;

  Path folder_;
  ChecksumScope checksum_scope_;
  std::shared_ptr<RateLimiter> rate_limiter_;  // shared with the lister: one limit for all
  std::uint64_t number_;                       // identifies the tree in thread-local caches
  std::vector<Shard> shards_;
  std::vector<ShardPlace> places_;
};

}  // namespace stoker::sources
