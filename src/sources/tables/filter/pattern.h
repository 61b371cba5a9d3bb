// Names and texts with wildcards: `x_*` among columns, `a%` in a condition. Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker::sources {

struct Wildcards {
  char any = '*';  ///< matches any characters, or none
  char one = '?';  ///< matches one character of UTF-8
};

/// Whether `pattern` matches all of `text`.
bool matches(std::string_view text, std::string_view pattern, Wildcards wildcards = {});

}  // namespace stoker::sources
