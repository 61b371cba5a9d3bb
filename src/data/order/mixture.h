// Several datasets as one stream with fixed shares: which dataset, and which of its samples, is at which
// position, computed from the position alone. In every block of 1024 positions each dataset has its exact
// share; within its own samples every dataset goes on through full shuffles, each sample once per pass.
// Used by whoever mixes datasets. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "data/order/permutation.h"

namespace stoker::data {

struct MixturePart {
  std::uint64_t samples = 0;
  double weight = 1;  ///< relative to the others'
};

struct MixturePlace {
  std::size_t dataset = 0;
  std::uint64_t sample = 0;  ///< of that dataset
  std::uint64_t pass = 0;    ///< how often all of it was seen before

  bool operator==(const MixturePlace&) const = default;
};

class Mixture {
 public:
  /// Fails with Invalid when there are no parts or over 1024, one has no samples, or a share rounds to less
  /// than 1 in 1024.
  static Result<Mixture> create(const std::vector<MixturePart>& parts, std::uint64_t seed);

  /// Positions without end, from 0.
  MixturePlace at(std::uint64_t position) const;
  /// How many of 1024 positions are the dataset's.
  std::uint32_t share(std::size_t dataset) const { return counts_[dataset]; }

 private:
  Mixture(const std::vector<MixturePart>& parts, std::vector<std::uint32_t> counts, std::uint64_t seed);

  std::uint64_t seed_;
  std::vector<std::uint64_t> samples_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> begins_;  // of each dataset among the 1024, ascending
};

}  // namespace stoker::data
