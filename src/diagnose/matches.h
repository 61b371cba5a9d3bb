// Internal to this room.
#pragma once

#include <string_view>

#include <re2/re2.h>

namespace stoker::diagnose {

/// Whether the pattern occurs in the text. Thread-safe.
inline bool matches(std::string_view text, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

}  // namespace stoker::diagnose
