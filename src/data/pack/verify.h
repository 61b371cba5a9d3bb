// Compares a dataset on disk with what was packed. Used by `stoker data verify`. Blocks on the storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "format/manifest.h"

namespace stoker::data {

enum class VerifyDepth {
  index,  ///< manifest and index against each other, hashes and all; every shard's size
  bytes,  ///< also every block's SHA-256 and every file's CRC-32C
};

/// One thing that is not as packed.
struct Damage {
  std::string shard;
  std::string sample;  ///< key and component; or "-", or "block 3" when no sample lies in it
  std::string expected;
  std::string found;

  auto operator<=>(const Damage&) const = default;
};

struct VerifyReport {
  formats::Manifest manifest;
  std::vector<Damage> damaged;  ///< in the order of shards, at most kMostDamage
  std::uint64_t damages = 0;    ///< all that were found
  static constexpr std::size_t kMostDamage = 1000;
};

/// Fails when there is nothing to compare with: no dataset, or a damaged manifest or index. A shard that is
/// missing, torn or changed is no failure but a Damage. Cancelled when `progress` says stop.
Result<VerifyReport> verify_dataset(const Path& dataset, VerifyDepth depth, int threads, Progress& progress);

}  // namespace stoker::data
