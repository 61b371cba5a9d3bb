#include "loader/pixel_cache.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace stoker::loader {
namespace {

// Small images share chunks, so that inserting one does not allocate.
constexpr std::size_t kChunk = 1 << 20;

}  // namespace

PixelCache::PixelCache(std::uint64_t samples, ByteCount budget)
    : budget_(budget.value), entries_(budget.value > samples * sizeof(entries_[0]) ? samples : 0) {
  MutexLock lock(mutex_);
  used_ = entries_.size() * sizeof(entries_[0]);
}

std::optional<image::ImageView> PixelCache::find(std::uint64_t sample) const {
  if (entries_.empty()) return std::nullopt;
  const Entry* entry = entries_[sample].load(std::memory_order_acquire);
  if (!entry) return std::nullopt;
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(entry + 1);
  return image::ImageView{
      entry->width, entry->height, {pixels, std::size_t{3} * entry->width * entry->height}};
}

std::byte* PixelCache::reserve(std::size_t size) {
  if (size > free_size_) {
    const std::size_t chunk = std::max(size, kChunk);
    if (used_ + chunk > budget_) return nullptr;
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[chunk]);
    if (!memory) return nullptr;
    free_ = memory.get();
    free_size_ = chunk;
    used_ += chunk;
    chunks_.push_back(std::move(memory));
  }
  std::byte* place = free_;
  free_ += size;
  free_size_ -= size;
  return place;
}

void PixelCache::insert(std::uint64_t sample, const image::ImageView& image) {
  if (entries_.empty()) return;
  const std::size_t size = sizeof(Entry) + image.pixels.size();
  const std::size_t aligned = (size + alignof(Entry) - 1) / alignof(Entry) * alignof(Entry);
  std::byte* place = nullptr;
  {
    MutexLock lock(mutex_);
    // With padding, a sample can be in two batches at once: the second copy is not needed.
    if (entries_[sample].load(std::memory_order_relaxed)) return;
    place = reserve(aligned);
  }
  if (!place) return;
  const auto* entry = new (place) Entry{image.width, image.height};
  std::memcpy(place + sizeof(Entry), image.pixels.data(), image.pixels.size());
  entries_[sample].store(entry, std::memory_order_release);
}

ByteCount PixelCache::used() const {
  MutexLock lock(mutex_);
  return {used_};
}

}  // namespace stoker::loader
