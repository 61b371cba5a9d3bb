// Several datasets as one stream with fixed shares. The dataset and sample at a position are computed from
// the position alone. In every block of 1024 positions, each dataset has its exact share. Within a dataset,
// full shuffles follow each other, with each sample once per pass. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "loader/sampler/permutation.h"
#include "stoker/sampler.h"
#include "stoker/status.h"

namespace stoker::loader {

struct MixturePlace {
  std::size_t dataset = 0;
  std::uint64_t sample = 0;  ///< of that dataset
  std::uint64_t pass = 0;    ///< complete passes over the dataset before

  bool operator==(const MixturePlace&) const = default;
};

class Mixture {
 public:
  /// Fails with Invalid for no parts or over 1024, an empty dataset, or a share that rounds to less than 1
  /// in 1024.
  static Result<Mixture> create(const std::vector<MixturePart>& parts, std::uint64_t seed);

  /// For any position from 0 on.
  MixturePlace at(std::uint64_t position) const;
  /// Positions of the dataset in every 1024.
  std::uint32_t share(std::size_t dataset) const { return counts_[dataset]; }

 private:
  Mixture(const std::vector<MixturePart>& parts, std::vector<std::uint32_t> counts, std::uint64_t seed);

  std::uint64_t seed_;
  std::vector<std::uint64_t> samples_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> begins_;  // of each dataset among the 1024, ascending
};

}  // namespace stoker::loader
