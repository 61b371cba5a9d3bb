// Writes one shard sample by sample and returns its facts. A shard belongs to one thread, which may write two
// in turns; different shards are written in parallel.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pack/pack.h"
#include "pack/shard/block_file.h"
#include "pack/shard/read_ahead.h"
#include "stoker/progress.h"

namespace stoker::pack {

/// The result of writing a shard: the input of manifest and index.
struct ShardFacts {
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::vector<Digest> blocks;
  dataset::ImageStatistics images;
  std::vector<sources::LeftOut> left_out;
  std::string section;  ///< of the side index

  /// A fragment: text with a checksum, from which an interrupted pack continues. decode() is Corrupt for a
  /// damaged fragment or a different plan.
  std::string encode(std::string_view fingerprint) const;
  static Result<ShardFacts> decode(std::string_view text, std::string_view fingerprint,
                                   std::string_view subject);
};

/// A shard in progress.
class ShardWriter {
 public:
  /// Creates or truncates the file. `plan` and the data of `samples` must outlive the result. If this or a
  /// later call fails, an incomplete file may remain.
  static Result<std::unique_ptr<ShardWriter>> begin(const PackPlan& plan, std::shared_ptr<ReadAhead> samples,
                                                    const Path& path, Hashing hashing);
  virtual ~ShardWriter() = default;

  /// Whether all samples are written.
  virtual bool is_complete() const = 0;
  /// Writes the next sample. REQUIRES: not complete, and the lane is empty.
  virtual Status write_next() = 0;
  /// With Hashing::deferred: data to hash before the next call.
  virtual Sha256Lane& lane() = 0;
  /// Finishes and syncs the file. REQUIRES: complete.
  virtual Result<ShardFacts> finish() = 0;
};

}  // namespace stoker::pack
