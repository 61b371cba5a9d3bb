// Compares a dataset on disk with its index and manifest. Used by `stoker data verify` and `check`. Blocks on
// the storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::pack {

enum class VerifyDepth {
  sizes,  ///< as every reader that opens the dataset, and the size of every shard
  index,  ///< manifest and index against each other, with hashes; the size of every shard
  bytes,  ///< also every block's SHA-256 and every file's CRC-32C
};

/// One difference.
struct Damage {
  std::string shard;
  std::string sample;  ///< key and component; or "-", or "block 3" outside of samples
  std::string expected;
  std::string found;

  auto operator<=>(const Damage&) const = default;
};

struct VerifyReport {
  dataset::Manifest manifest;
  std::vector<Damage> damaged;  ///< in the order of shards, at most kMaxDamage
  std::uint64_t damages = 0;    ///< total number
  static constexpr std::size_t kMaxDamage = 1000;
};

/// Fails without a dataset, or for a damaged manifest or index. A missing, torn or changed shard is not a
/// failure but a Damage. Cancelled on stop_requested().
Result<VerifyReport> verify_dataset(const Path& dataset, VerifyDepth depth, int threads, Progress& progress);

}  // namespace stoker::pack
