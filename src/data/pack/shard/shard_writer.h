// Writes one shard, sample by sample as they are read, and gives the shard's facts. One shard belongs to one
// thread, which may write two in turns; others are written side by side.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "data/pack/pack.h"
#include "data/pack/shard/block_file.h"
#include "data/pack/shard/read_ahead.h"

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

/// A shard on its way, sample by sample.
class ShardWriting {
 public:
  /// Creates or truncates the file. `plan` must outlive the result, and what `samples` refers to. On a
  /// failure of this or any later call the file may exist, incomplete.
  static Result<std::unique_ptr<ShardWriting>> begin(const PackPlan& plan, std::shared_ptr<ReadAhead> samples,
                                                     const Path& path, Hashing hashing);
  virtual ~ShardWriting() = default;

  /// Whether all samples are written.
  virtual bool is_complete() const = 0;
  /// The next sample. REQUIRES: not complete, and the lane is empty.
  virtual Status write_next() = 0;
  /// With Hashing::later: what is to be hashed before the next call.
  virtual Sha256Lane& lane() = 0;
  /// Ends and syncs the file. REQUIRES: complete.
  virtual Result<ShardFacts> finish() = 0;
};

}  // namespace stoker::data
