// The random numbers of PyTorch's CPU generator, bit for bit: MT19937 seeded as by
// torch.Generator().manual_seed(seed), and torch.randperm. Used by the order of samples. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stoker::loader {

/// torch.Generator on the CPU, after manual_seed.
class TorchGenerator {
 public:
  /// Only the low 32 bits of the seed matter, as in PyTorch: seeds 0 and 2^32 give the same numbers.
  explicit TorchGenerator(std::uint64_t seed);

  std::uint32_t random32() {
    if (next_ == kSize) refill();
    return drawn_[next_++];
  }
  /// Two draws, the first is the high half.
  std::uint64_t random64();

 private:
  static constexpr std::size_t kSize = 624;
  void refill();

  std::array<std::uint32_t, kSize> state_;
  std::array<std::uint32_t, kSize> drawn_;  // the output of this state
  std::size_t next_ = kSize;                // of drawn_
};

/// torch.randperm(n, generator=generator): 0 to n - 1 in random order. Takes 4n bytes.
std::vector<std::uint32_t> torch_randperm(std::uint32_t n, TorchGenerator& generator);

namespace internal {
/// The two algorithms of torch.randperm, separate for tests: below n = 214748364 one 32-bit draw per
/// element, else one 64-bit draw.
std::vector<std::uint32_t> randperm_small(std::uint32_t n, TorchGenerator& generator);
std::vector<std::uint32_t> randperm_large(std::uint32_t n, TorchGenerator& generator);
}  // namespace internal

}  // namespace stoker::loader
