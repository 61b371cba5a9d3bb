#include "sources/tables/filter/pattern.h"

#include <algorithm>
#include <optional>

#include "stoker/text.h"

namespace stoker::sources {

bool matches(std::string_view text, std::string_view pattern, Wildcards wildcards) {
  std::size_t at = 0;
  std::size_t in = 0;
  std::optional<std::size_t> open;  // after the last `any` of the pattern
  std::size_t tried = 0;            // position in the text after the part matched by `any`
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

}  // namespace stoker::sources
