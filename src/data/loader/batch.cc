#include "data/loader/batch.h"

namespace stoker::data {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::unique_ptr<Batch::Memory> Batch::Memory::allocate(std::size_t floats) {
  const std::size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  auto memory = std::make_unique<Memory>();
  memory->images.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
  return memory->images ? std::move(memory) : nullptr;
}

Batch::Batch(std::unique_ptr<Memory> memory, std::shared_ptr<Pool> pool)
    : memory_(std::move(memory)), pool_(std::move(pool)) {}

Batch::Batch(Batch&&) noexcept = default;

Batch& Batch::operator=(Batch&& other) noexcept {
  if (memory_) pool_->give(std::move(memory_));
  memory_ = std::move(other.memory_);
  pool_ = std::move(other.pool_);
  return *this;
}

Batch::~Batch() {
  if (memory_) pool_->give(std::move(memory_));
}

std::uint32_t Batch::count() const { return static_cast<std::uint32_t>(memory_->samples.size()); }
std::span<float> Batch::images() { return {memory_->images.get(), memory_->image_floats * count()}; }
std::span<std::int64_t> Batch::labels() { return memory_->labels; }
std::span<const std::uint64_t> Batch::samples() const { return memory_->samples; }
Epoch Batch::epoch() const { return memory_->epoch; }
const OrderState& Batch::after() const { return memory_->after; }

}  // namespace stoker::data
