// Builds a source from samples of an index or a scan. Used for datasets and shards of other tools.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sources/shards/shards_tree.h"
#include "sources/source.h"
#include "stoker/status.h"

namespace stoker::sources {

/// A file of a sample, from an index or a scan.
struct SourceMember {
  std::string_view extension;
  std::uint64_t bytes = 0;
  std::int64_t stamp = 0;  ///< for `SourceFile::modified_ns`: identifies the version of the file
  ShardPlace place;
};

class SourceBuilder {
 public:
  SourceBuilder(Path folder, ChecksumScope checksum_scope, std::shared_ptr<RateLimiter> rate_limiter)
      : tree_(std::make_unique<ShardsTree>(std::move(folder), checksum_scope, std::move(rate_limiter))) {}

  ShardsTree& tree() { return *tree_; }
  PackSource& source() { return source_; }

  /// Returns the number of the split, adding it if it is new.
  std::uint32_t split(const std::string& name);
  /// `where` prefixes messages. Invalid for a key that is unusable or duplicate, and for an invalid label or
  /// extension.
  Status add(std::uint32_t split, std::string_view key, std::int64_t label,
             std::span<const SourceMember> members, std::string_view where);
  /// Invalid without samples, naming `where`.
  Result<PackSource> finish(const Path& where);

 private:
  std::uint32_t folder(std::uint32_t split, const std::string& member);

  std::unique_ptr<ShardsTree> tree_;
  PackSource source_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> folders_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each split
};

}  // namespace stoker::sources
