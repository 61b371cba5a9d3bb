#include "loader/sampler/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/language/counted.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kBlock = 1024;
// With the same seed, the orders of a Mixture and of an EpochOrder differ.
constexpr std::uint32_t kPurposeBlocks = 0x80000000u;
constexpr std::uint32_t kPurposeDatasets = 0x80000001u;

// Largest remainder: whole numbers that add up to kBlock.
std::vector<std::uint32_t> apportion(const std::vector<MixturePart>& parts, double sum) {
  std::vector<std::uint32_t> counts;
  std::vector<std::pair<double, std::size_t>> rests;
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double wanted = kBlock * parts[i].weight / sum;
    counts.push_back(static_cast<std::uint32_t>(wanted));
    given += counts.back();
    rests.emplace_back(counts.back() - wanted, i);
  }
  std::sort(rests.begin(), rests.end());
  for (std::size_t i = 0; given < kBlock; ++given, ++i) ++counts[rests[i % rests.size()].second];
  return counts;
}

}  // namespace

Result<Mixture> Mixture::create(const std::vector<MixturePart>& parts, std::uint64_t seed) {
  if (parts.empty() || parts.size() > kBlock)
    return invalid("mixture: {} datasets are not between 1 and {}", parts.size(), kBlock);
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].samples == 0 || parts[i].samples >> 48)
      return invalid("mixture: dataset {} has {} (1 to 2^48)", i, counted(parts[i].samples, "sample"));
    if (!(parts[i].weight > 0) || !std::isfinite(parts[i].weight))
      return invalid("mixture: weight {} of dataset {} is not positive", parts[i].weight, i);
    sum += parts[i].weight;
  }
  std::vector<std::uint32_t> counts = apportion(parts, sum);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (counts[i] == 0)
      return invalid("mixture: dataset {} has less than 1 in {} (weight {})", i, counted(kBlock, "sample"),
                     parts[i].weight);
  }
  return Mixture(parts, std::move(counts), seed);
}

Mixture::Mixture(const std::vector<MixturePart>& parts, std::vector<std::uint32_t> counts, std::uint64_t seed)
    : seed_(seed), counts_(std::move(counts)), begins_(counts_.size()) {
  for (const MixturePart& part : parts) samples_.push_back(part.samples);
  std::exclusive_scan(counts_.begin(), counts_.end(), begins_.begin(), 0u);
}

MixturePlace Mixture::at(std::uint64_t position) const {
  const std::uint64_t block = position / kBlock;
  const Permutation in_block(kBlock, permutation_key(seed_, block, kPurposeBlocks));
  const auto slot = static_cast<std::uint32_t>(in_block.at(position % kBlock));
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), slot);
  const auto dataset = static_cast<std::size_t>(after - begins_.begin()) - 1;
  // The index among this dataset's samples: blocks before, then the place among its slots.
  const std::uint64_t taken = block * counts_[dataset] + (slot - begins_[dataset]);
  const std::uint64_t pass = taken / samples_[dataset];
  const Permutation order(
      samples_[dataset],
      permutation_key(seed_, pass, kPurposeDatasets + static_cast<std::uint32_t>(dataset)));
  return {dataset, order.at(taken % samples_[dataset]), pass};
}

}  // namespace stoker::loader
