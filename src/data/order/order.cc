#include "data/order/order.h"

#include <algorithm>
#include <limits>

#include "data/order/torch_generator.h"

namespace stoker::data {

std::string to_text(const OrderState& state) {
  return format("seed {}, epoch {}, position {} of {}", state.seed, state.epoch, state.position,
                state.samples);
}

Result<EpochOrder> EpochOrder::create(const OrderOptions& options, Epoch epoch) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (options.samples == 0) return invalid("order: no samples");
  if (options.samples > kMost)
    return invalid("order: {} samples are too many (at most {})", options.samples, kMost);
  if (options.shuffle == Shuffle::none) return EpochOrder(options.samples, {});
  TorchGenerator generator(options.seed + static_cast<std::uint64_t>(epoch.value));
  return EpochOrder(options.samples, torch_randperm(static_cast<std::uint32_t>(options.samples), generator));
}

Result<RankShare> RankShare::create(std::uint64_t samples, std::uint64_t begin, const RankOptions& options) {
  const int rank = options.rank.value;
  const int world = options.world.value;
  if (world < 1) return invalid("order: world size {} is not at least 1", world);
  if (rank < 0 || rank >= world) return invalid("order: rank {} is not in a world of {}", rank, world);
  RankShare share;
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

std::uint64_t RankShare::position_after(std::uint64_t taken) const {
  return std::min(end_, begin_ + std::min(taken, longest_) * world_);
}

}  // namespace stoker::data
