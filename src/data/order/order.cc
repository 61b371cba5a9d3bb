#include "data/order/order.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "data/order/torch_generator.h"
#include "data/transform/randomness.h"

namespace stoker::data {
namespace {

// What random numbers are for: one seed and epoch gives different ones for each.
constexpr std::uint32_t kOfSamples = 1;
constexpr std::uint32_t kOfShards = 2;
constexpr std::uint32_t kOfDraws = 3;
constexpr std::uint32_t kOfWindows = 16;  // and on, one for each

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
    return invalid("order: {} samples are too many (at most {})", options.samples, most);
  if (options.shuffle == Shuffle::by_shard || options.shuffle == Shuffle::by_chunk) {
    std::uint64_t sum = 0;
    for (std::uint64_t samples : options.shards) sum += samples;
    if (sum != options.samples)
      return invalid("order: {} samples in shards, {} in all", sum, options.samples);
    if (options.window == 0) return invalid("order: window of 0 shards");
  }
  if (options.shuffle == Shuffle::weighted) {
    const std::uint64_t weights = options.weights ? options.weights->samples() : 0;
    if (weights != options.samples)
      return invalid("order: {} weights for {} samples", weights, options.samples);
  }
  EpochOrder order(options, static_cast<std::uint64_t>(epoch.value));
  if (options.shuffle == Shuffle::mixed) RETURN_IF_ERROR(order.mix(options));
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
      permutations_.emplace_back(samples_, permutation_key(seed_, epoch_, kOfSamples));
      break;
    case Shuffle::by_shard:
    case Shuffle::by_chunk:
      lay_out_shards(options);
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
  // Without a division for each.
  std::uint64_t place = position % samples_;
  step %= samples_;
  for (std::uint64_t& sample : out) {
    sample = order_[place];
    place += step;
    if (place >= samples_) place -= samples_;
  }
}

void EpochOrder::lay_out_shards(const OrderOptions& options) {
  std::vector<ShardPlace> shards;
  std::uint64_t first = 0;
  for (std::uint64_t samples : options.shards) {
    if (samples > 0) shards.push_back({first, samples});
    first += samples;
  }
  const Permutation order(shards.size(), permutation_key(seed_, epoch_, kOfShards));
  for (std::size_t i = 0; i < shards.size(); ++i) shard_order_.push_back(shards[order.at(i)]);
  std::uint64_t begin = 0;
  for (std::size_t shard = 0; shard < shard_order_.size(); shard += options.window) {
    windows_.push_back({begin, shard});
    std::uint64_t samples = 0;
    for (std::size_t i = shard; i < std::min<std::size_t>(shard + options.window, shard_order_.size()); ++i)
      samples += shard_order_[i].samples;
    const auto purpose = kOfWindows + static_cast<std::uint32_t>(permutations_.size());
    permutations_.emplace_back(samples, permutation_key(seed_, epoch_, purpose));
    begin += samples;
  }
}

std::size_t EpochOrder::window_at(std::uint64_t place) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), place,
                                      [](std::uint64_t p, const Window& window) { return p < window.begin; });
  return static_cast<std::size_t>(after - windows_.begin()) - 1;
}

// How deep in its window a sample lies, from 0 to below 1, the window's chunks being one behind another.
double EpochOrder::depth(std::uint64_t place) const {
  const std::size_t window = window_at(place);
  const Permutation& mixed = permutations_[window];
  return static_cast<double>(mixed.at(place - windows_[window].begin)) / static_cast<double>(mixed.size());
}

// Sorted by depth and cut into equal pieces, a stretch gives a rank the samples of about the same part of
// each window in every step. Depth, not place: where a stretch lies in two windows, a rank keeps its part of
// both.
void EpochOrder::list(const StretchPiece& piece, std::span<std::uint64_t> out) const {
  constexpr double kUnits = 4294967296.0;  // 2^32
  std::vector<std::uint64_t> keys(piece.count);
  for (std::uint64_t i = 0; i < piece.count; ++i) {
    const auto units = static_cast<std::uint64_t>(depth((piece.begin + i) % samples_) * kUnits);
    keys[i] = units << 32 | i;
  }
  const auto first = keys.begin() + static_cast<std::ptrdiff_t>(piece.first);
  const auto last = first + static_cast<std::ptrdiff_t>(piece.size);
  if (first != keys.begin() && first != keys.end()) std::nth_element(keys.begin(), first, keys.end());
  if (last != keys.end()) std::nth_element(first, last, keys.end());
  for (auto key = first; key != last; ++key) *key &= 0xFFFFFFFF;
  std::sort(first, last);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = at(piece.begin + first[static_cast<std::ptrdiff_t>(i)]);
}

std::uint64_t EpochOrder::in_window(std::uint64_t place) const {
  const std::size_t window = window_at(place);
  std::uint64_t rest = permutations_[window].at(place - windows_[window].begin);
  std::size_t shard = windows_[window].shard;
  while (rest >= shard_order_[shard].samples) rest -= shard_order_[shard++].samples;
  return shard_order_[shard].first_sample + rest;
}

Status EpochOrder::mix(const OrderOptions& options) {
  OK_OR_RETURN(mixture, Mixture::create(options.mixture, options.seed));
  std::uint64_t sum = 0;
  for (const MixturePart& part : options.mixture) {
    dataset_begins_.push_back(sum);
    sum += part.samples;
  }
  if (sum != samples_) return invalid("order: {} samples in mixed datasets, {} in all", sum, samples_);
  mixture_ = std::move(mixture);
  return Status();
}

std::uint64_t EpochOrder::mixed(std::uint64_t place) const {
  const MixturePlace found = mixture_->at(epoch_ * samples_ + place);
  return dataset_begins_[found.dataset] + found.sample;
}

std::uint64_t EpochOrder::drawn(std::uint64_t place) const {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const PhiloxBlock random =
      philox4x32({low(place), low(place >> 32), low(epoch_), kOfDraws}, {low(seed_), low(seed_ >> 32)});
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
  // A position past the last sample lies in the padding of the epoch's last step: nothing is left.
  const std::uint64_t left = begin < samples ? samples - begin : 0;
  const std::uint64_t rounded_down = left / share.world_;
  const std::uint64_t rounded_up = rounded_down + (left % share.world_ ? 1 : 0);
  switch (options.remainder) {
    case Remainder::pad:
      share.count_ = share.longest_ = rounded_up;
      share.end_ = begin + rounded_up * share.world_;
      break;
    case Remainder::drop:
      share.count_ = share.longest_ = rounded_down;
      share.end_ = begin + rounded_down * share.world_;
      break;
    case Remainder::exact:
      share.count_ = rounded_down + (share.rank_ < left % share.world_ ? 1 : 0);
      share.longest_ = rounded_up;
      share.end_ = begin + left;
      break;
  }
  return share;
}

StretchPiece RankShare::piece(std::uint64_t taken, std::uint64_t batch) const {
  StretchPiece piece{.begin = begin_ + taken * world_};
  piece.count = position_after(taken + batch) - piece.begin;
  const std::uint64_t each = piece.count / world_;
  const std::uint64_t more = piece.count % world_;  // ranks that have one more
  piece.first = rank_ * each + std::min(rank_, more);
  piece.size = each + (rank_ < more ? 1 : 0);
  return piece;
}

std::uint64_t RankShare::position_after(std::uint64_t taken) const {
  return std::min(end_, begin_ + std::min(taken, longest_) * world_);
}

}  // namespace stoker::data
