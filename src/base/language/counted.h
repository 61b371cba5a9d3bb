// How many of something, in words. Used by what tells people of ranks, nodes and paths. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace stoker {

/// "1 rank", "2 ranks", "12 000 samples".
inline std::string counted(std::uint64_t count, std::string_view what) {
  return format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

}  // namespace stoker
