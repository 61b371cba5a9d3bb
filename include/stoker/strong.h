// Typed numbers that must not be mixed up: ranks, world sizes, steps. Used for parameters and fields.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace stoker {

/// A number with its own type. `Tag` distinguishes the types.
template <typename Tag, typename T = std::int64_t>
struct Strong {
  T value{};

  constexpr Strong() = default;
  constexpr explicit Strong(T v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
  friend std::string to_text(const Strong& s) { return std::to_string(s.value); }
};

/// Global rank, 0 to world size - 1.
using Rank = Strong<struct RankTag, int>;
/// Number of ranks.
using WorldSize = Strong<struct WorldSizeTag, int>;
/// Optimizer steps done since the start of training, over all epochs and attempts.
using Step = Strong<struct StepTag, std::int64_t>;
/// Number of epochs before this one: the first is 0.
using Epoch = Strong<struct EpochTag, std::int64_t>;

}  // namespace stoker
