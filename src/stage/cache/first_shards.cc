#include "stage/cache/first_shards.h"

#include <numeric>
#include <utility>

namespace stoker::stage {

FirstShards::FirstShards(const std::vector<std::uint64_t>& bytes, std::function<void()> then)
    : then_(std::move(then)) {
  constexpr std::uint64_t kFirstPart = 50;
  const std::uint64_t total = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  std::uint64_t sum = 0;
  while (count_ < bytes.size() && sum < (total + kFirstPart - 1) / kFirstPart) sum += bytes[count_++];
  is_open_.assign(count_, true);
  open_ = count_;
}

bool FirstShards::is_awaited() const {
  const MutexLock lock(mutex_);
  return then_ != nullptr;
}

void FirstShards::settled(std::size_t shard) {
  {
    const MutexLock lock(mutex_);
    if (shard >= is_open_.size() || !is_open_[shard]) return;
    is_open_[shard] = false;
    open_ -= 1;
  }
  call_if_ready();
}

void FirstShards::cache_checked() {
  {
    const MutexLock lock(mutex_);
    is_cache_checked_ = true;
  }
  call_if_ready();
}

void FirstShards::call_if_ready() {
  std::function<void()> then;
  {
    const MutexLock lock(mutex_);
    if (!is_cache_checked_ || open_ > 0) return;
    std::swap(then, then_);
  }
  if (then) then();
}

}  // namespace stoker::stage
