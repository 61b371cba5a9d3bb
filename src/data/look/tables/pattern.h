// Names and texts with wildcards: `x_*` among columns, `a%` in a condition. Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker::data {

struct Wildcards {
  char any = '*';  ///< stands for any characters, or none
  char one = '?';  ///< for one character of UTF-8
};

/// Whether all of `text` is as `pattern` says.
bool matches(std::string_view text, std::string_view pattern, Wildcards wildcards = {});

}  // namespace stoker::data
