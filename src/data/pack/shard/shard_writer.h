// Writes one shard: reads its source files, looks at images, leaves out what is broken, and gives the shard's
// facts. One call belongs to one thread; calls for different shards run side by side.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/progress.h"
#include "data/pack/pack.h"

namespace stoker::data {

/// What is known of a shard once it is written: all the manifest and the index need.
struct ShardFacts {
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::vector<Digest> blocks;
  formats::ImageStatistics images;
  std::vector<LeftOut> left_out;
  std::string section;  ///< of the side index

  /// Text with a checksum, and back: the fragment that an interrupted packing goes on from. Corrupt for a
  /// fragment that is not whole or belongs to another plan.
  std::string encode(std::string_view fingerprint) const;
  static Result<ShardFacts> decode(std::string_view text, std::string_view fingerprint,
                                   std::string_view subject);
};

/// Told after each source file: its bytes. False: stop.
using FileDone = std::function<bool(std::uint64_t bytes)>;

/// Writes the shard to `path` and syncs it. On failure the file may exist, incomplete.
Result<ShardFacts> write_shard(const PackPlan& plan, const ShardSpec& spec, const Path& path,
                               const FileDone& done);

}  // namespace stoker::data
