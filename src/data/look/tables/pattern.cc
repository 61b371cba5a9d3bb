#include "data/look/tables/pattern.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace stoker::data {

bool matches(std::string_view text, std::string_view pattern, Wildcards wildcards) {
  std::size_t at = 0;
  std::size_t in = 0;
  std::optional<std::size_t> open;  // behind the last `any` of the pattern
  std::size_t tried = 0;            // where the text goes on behind what that stands for
  const auto length = [&](std::size_t from) {
    return std::max<std::size_t>(1, utf8_length(text.substr(from)));
  };
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == wildcards.any) {
      open = ++in;
      tried = at;
    } else if (in < pattern.size() && pattern[in] == wildcards.one) {
      ++in;
      at += length(at);
    } else if (in < pattern.size() && pattern[in] == text[at]) {
      ++in;
      ++at;
    } else if (open) {
      in = *open;
      tried += length(tried);
      at = tried;
    } else {
      return false;
    }
  }
  return pattern.substr(in).find_first_not_of(wildcards.any) == std::string_view::npos;
}

}  // namespace stoker::data
