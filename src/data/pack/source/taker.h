// Makes a source of samples that come one by one, out of an index or a scan. Used for datasets and other
// tools' shards. Thread-compatible.
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

#include "base/status.h"
#include "data/pack/source.h"
#include "data/pack/source/shards_tree.h"

namespace stoker::data {

/// One file of a sample, as an index or a scan tells it.
struct Member {
  std::string_view extension;
  std::uint64_t bytes = 0;
  std::int64_t stamp = 0;  ///< in a SourceFile's `modified_ns`: another one is another file
  ShardPlace place;
};

class Taker {
 public:
  Taker(Path folder, Proof proof, std::shared_ptr<Pace> pace)
      : tree_(std::make_unique<ShardsTree>(std::move(folder), proof, std::move(pace))) {}

  ShardsTree& tree() { return *tree_; }
  Source& source() { return source_; }

  /// The number of the split of that name, which is made.
  std::uint32_t split(const std::string& name);
  /// `where` begins messages. Invalid for a key that cannot be packed or is there twice, for a label or an
  /// extension that is none.
  Status add(std::uint32_t split, std::string_view key, std::int64_t label, std::span<const Member> members,
             std::string_view where);
  /// Invalid where there is no sample, naming `where`.
  Result<Source> finish(const Path& where);

 private:
  std::uint32_t folder(std::uint32_t split, const std::string& member);

  std::unique_ptr<ShardsTree> tree_;
  Source source_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> folders_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each split
};

}  // namespace stoker::data
