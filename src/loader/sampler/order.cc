#include "loader/sampler/order.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/language/counted.h"
#include "image/transform/philox.h"
#include "loader/sampler/torch_generator.h"

namespace stoker::loader {
namespace {

// Purposes of random numbers: the same seed and epoch yield different numbers for each.
constexpr std::uint32_t kPurposeSamples = 1;
constexpr std::uint32_t kPurposeShards = 2;
constexpr std::uint32_t kPurposeDraws = 3;
constexpr std::uint32_t kPurposeWindows = 16;  // and up, one per window

}  // namespace

std::string to_text(const OrderState& state) {
  return format("seed {}, epoch {}, position {} of {}", state.seed, state.epoch, state.position,
                state.samples);
}

Result<EpochOrder> EpochOrder::create(const OrderOptions& options, Epoch epoch) {
  const bool is_listed = options.shuffle == Shuffle::every_epoch || options.shuffle == Shuffle::weighted;
  const std::uint64_t most = is_listed ? std::numeric_limits<std::uint32_t>::max() : std::uint64_t{1} << 48;
  if (options.samples == 0) return invalid("order: no samples");
  if (options.samples > most)
    return invalid("order: {} are too many (at most {})", counted(options.samples, "sample"), grouped(most));
  if (options.shuffle == Shuffle::by_shard || options.shuffle == Shuffle::by_chunk) {
    std::uint64_t sum = 0;
    for (std::uint64_t samples : options.shards) sum += samples;
    if (sum != options.samples)
      return invalid("order: {} in shards, {} in total", counted(sum, "sample"), options.samples);
    if (options.window == 0) return invalid("order: window of 0 shards");
  }
  if (options.shuffle == Shuffle::weighted) {
    const std::uint64_t weights = options.weights ? options.weights->samples() : 0;
    if (weights != options.samples)
      return invalid("order: {} for {}", counted(weights, "weight"), counted(options.samples, "sample"));
  }
  EpochOrder order(options, static_cast<std::uint64_t>(epoch.value));
  if (options.shuffle == Shuffle::mixed) STOKER_RETURN_IF_ERROR(order.set_up_mixture(options));
  return order;
}

EpochOrder::EpochOrder(const OrderOptions& options, std::uint64_t epoch)
    : samples_(options.samples), seed_(options.seed), epoch_(epoch), kind_(options.shuffle) {
  switch (kind_) {
    case Shuffle::none:
      break;
    case Shuffle::every_epoch: {
      TorchGenerator generator(seed_ + epoch_);
      order_ = torch_randperm(static_cast<std::uint32_t>(samples_), generator);
      break;
    }
    case Shuffle::full:
      permutations_.emplace_back(samples_, permutation_key(seed_, epoch_, kPurposeSamples));
      break;
    case Shuffle::by_shard:
    case Shuffle::by_chunk:
      order_shards(options);
      break;
    case Shuffle::weighted:
      weights_ = options.weights;
      break;
    case Shuffle::mixed:
      break;
  }
}

void EpochOrder::list(std::uint64_t position, std::uint64_t step, std::span<std::uint64_t> out) const {
  if (kind_ != Shuffle::every_epoch) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = at(position + i * step);
    return;
  }
  // Avoids a division per sample.
  std::uint64_t place = position % samples_;
  step %= samples_;
  for (std::uint64_t& sample : out) {
    sample = order_[place];
    place += step;
    if (place >= samples_) place -= samples_;
  }
}

void EpochOrder::order_shards(const OrderOptions& options) {
  std::vector<ShardPlace> shards;
  std::uint64_t first = 0;
  for (std::uint64_t samples : options.shards) {
    if (samples > 0) shards.push_back({first, samples});
    first += samples;
  }
  const Permutation order(shards.size(), permutation_key(seed_, epoch_, kPurposeShards));
  for (std::size_t i = 0; i < shards.size(); ++i) shard_order_.push_back(shards[order.at(i)]);
  std::uint64_t begin = 0;
  for (std::size_t shard = 0; shard < shard_order_.size(); shard += options.window) {
    windows_.push_back({begin, shard});
    std::uint64_t samples = 0;
    for (std::size_t i = shard; i < std::min<std::size_t>(shard + options.window, shard_order_.size()); ++i)
      samples += shard_order_[i].samples;
    const auto purpose = kPurposeWindows + static_cast<std::uint32_t>(permutations_.size());
    permutations_.emplace_back(samples, permutation_key(seed_, epoch_, purpose));
    begin += samples;
  }
}

std::size_t EpochOrder::window_at(std::uint64_t place) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), place,
                                      [](std::uint64_t p, const Window& window) { return p < window.begin; });
  return static_cast<std::size_t>(after - windows_.begin()) - 1;
}

// The relative place of a sample in its window, from 0 to below 1, with the window's chunks concatenated.
double EpochOrder::depth(std::uint64_t place) const {
  const std::size_t window = window_at(place);
  const Permutation& mixed = permutations_[window];
  return static_cast<double>(mixed.at(place - windows_[window].begin)) / static_cast<double>(mixed.size());
}

// A step is sorted by depth and cut into equal slices. In every step, a rank then gets the samples of about
// the same part of each window. Depth, not place: if a step is in two windows, a rank keeps its part of
// both.
void EpochOrder::list(const RankSlice& slice, std::span<std::uint64_t> out) const {
  constexpr double kUnits = 4294967296.0;  // 2^32
  std::vector<std::uint64_t> keys(slice.count);
  for (std::uint64_t i = 0; i < slice.count; ++i) {
    const auto units = static_cast<std::uint64_t>(depth((slice.begin + i) % samples_) * kUnits);
    keys[i] = units << 32 | i;
  }
  const auto first = keys.begin() + static_cast<std::ptrdiff_t>(slice.first);
  const auto last = first + static_cast<std::ptrdiff_t>(slice.size);
  if (first != keys.begin() && first != keys.end()) std::nth_element(keys.begin(), first, keys.end());
  if (last != keys.end()) std::nth_element(first, last, keys.end());
  for (auto key = first; key != last; ++key) *key &= 0xFFFFFFFF;
  std::sort(first, last);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = at(slice.begin + first[static_cast<std::ptrdiff_t>(i)]);
}

std::uint64_t EpochOrder::window_sample(std::uint64_t place) const {
  const std::size_t window = window_at(place);
  std::uint64_t rest = permutations_[window].at(place - windows_[window].begin);
  std::size_t shard = windows_[window].shard;
  while (rest >= shard_order_[shard].samples) rest -= shard_order_[shard++].samples;
  return shard_order_[shard].first_sample + rest;
}

Status EpochOrder::set_up_mixture(const OrderOptions& options) {
  STOKER_ASSIGN_OR_RETURN(mixture, Mixture::create(options.mixture, options.seed));
  std::uint64_t sum = 0;
  for (const MixturePart& part : options.mixture) {
    dataset_begins_.push_back(sum);
    sum += part.samples;
  }
  if (sum != samples_)
    return invalid("order: {} in mixed datasets, {} in total", counted(sum, "sample"), samples_);
  mixture_ = std::move(mixture);
  return Status();
}

std::uint64_t EpochOrder::mixture_sample(std::uint64_t place) const {
  const MixturePlace found = mixture_->at(epoch_ * samples_ + place);
  return dataset_begins_[found.dataset] + found.sample;
}

std::uint64_t EpochOrder::weighted_sample(std::uint64_t place) const {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const image::PhiloxBlock random = image::philox4x32(
      {low(place), low(place >> 32), low(epoch_), kPurposeDraws}, {low(seed_), low(seed_ >> 32)});
  return weights_->draw(std::uint64_t{random[0]} << 32 | random[1], random[2]);
}

Result<RankShare> RankShare::create(std::uint64_t samples, std::uint64_t begin, const RankOptions& options) {
  const int rank = options.rank.value;
  const int world = options.world.value;
  if (world < 1) return invalid("order: world size {} is not at least 1", world);
  if (rank < 0 || rank >= world) return invalid("order: rank {} is not in a world of {}", rank, world);
  RankShare share;
  share.samples_ = samples;
  share.begin_ = begin;
  share.rank_ = static_cast<std::uint64_t>(rank);
  share.world_ = static_cast<std::uint64_t>(world);
  // A position after the last sample is in the padding of the epoch's last step: nothing is left.
  const std::uint64_t left = begin < samples ? samples - begin : 0;
  const std::uint64_t rounded_down = left / share.world_;
  const std::uint64_t rounded_up = rounded_down + (left % share.world_ ? 1 : 0);
  switch (options.remainder) {
    case Remainder::pad:
      share.count_ = share.max_count_ = rounded_up;
      share.end_ = begin + rounded_up * share.world_;
      break;
    case Remainder::drop:
      share.count_ = share.max_count_ = rounded_down;
      share.end_ = begin + rounded_down * share.world_;
      break;
    case Remainder::exact:
      share.count_ = rounded_down + (share.rank_ < left % share.world_ ? 1 : 0);
      share.max_count_ = rounded_up;
      share.end_ = begin + left;
      break;
  }
  return share;
}

RankSlice RankShare::slice(std::uint64_t taken, std::uint64_t batch) const {
  RankSlice slice{.begin = begin_ + taken * world_};
  slice.count = position_after(taken + batch) - slice.begin;
  const std::uint64_t each = slice.count / world_;
  const std::uint64_t more = slice.count % world_;  // ranks with one more
  slice.first = rank_ * each + std::min(rank_, more);
  slice.size = each + (rank_ < more ? 1 : 0);
  return slice;
}

std::uint64_t RankShare::position_after(std::uint64_t taken) const {
  return std::min(end_, begin_ + std::min(taken, max_count_) * world_);
}

}  // namespace stoker::loader
