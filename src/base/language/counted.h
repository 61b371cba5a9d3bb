// A count with its noun, for messages. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/text.h"

namespace stoker {

/// "1 rank", "2 ranks", "12 000 samples".
inline std::string counted(std::uint64_t count, std::string_view what) {
  return format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

/// "1 class", "2 classes", for nouns with an irregular plural.
inline std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return format("{} {}", grouped(count), count == 1 ? one : many);
}

}  // namespace stoker
