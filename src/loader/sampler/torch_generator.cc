#include "loader/sampler/torch_generator.h"

#include <limits>
#include <numeric>
#include <utility>

namespace stoker::loader {
namespace {

// torch.randperm switches its algorithm here, so that `draw % n` stays close to uniform.
constexpr std::uint32_t kLargeFrom = std::numeric_limits<std::uint32_t>::max() / 20;

constexpr std::uint32_t twist(std::uint32_t high, std::uint32_t low) {
  const std::uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  return (mixed >> 1) ^ (0x9908b0dfu & -(low & 1u));
}

}  // namespace

TorchGenerator::TorchGenerator(std::uint64_t seed) {
  state_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < kSize; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
}

// Loops without wrap-around, and all numbers at once, so that the compiler vectorises.
void TorchGenerator::refill() {
  constexpr std::size_t kShift = 397;
  for (std::size_t i = 0; i < kSize - kShift; ++i)
    state_[i] = state_[i + kShift] ^ twist(state_[i], state_[i + 1]);
  for (std::size_t i = kSize - kShift; i < kSize - 1; ++i)
    state_[i] = state_[i + kShift - kSize] ^ twist(state_[i], state_[i + 1]);
  state_[kSize - 1] = state_[kShift - 1] ^ twist(state_[kSize - 1], state_[0]);
  for (std::size_t i = 0; i < kSize; ++i) {
    std::uint32_t y = state_[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    drawn_[i] = y ^ y >> 18;
  }
  next_ = 0;
}

std::uint64_t TorchGenerator::random64() {
  const std::uint64_t high = random32();
  return (high << 32) | random32();
}

std::vector<std::uint32_t> torch_randperm(std::uint32_t n, TorchGenerator& generator) {
  return n < kLargeFrom ? internal::randperm_small(n, generator) : internal::randperm_large(n, generator);
}

namespace internal {

std::vector<std::uint32_t> randperm_small(std::uint32_t n, TorchGenerator& generator) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    std::swap(order[i], order[i + generator.random32() % (n - i)]);
  }
  return order;
}

std::vector<std::uint32_t> randperm_large(std::uint32_t n, TorchGenerator& generator) {
  std::vector<std::uint32_t> order(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint64_t j = generator.random64() % (std::uint64_t{i} + 1);
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}

}  // namespace internal
}  // namespace stoker::loader
