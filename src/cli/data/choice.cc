#include "cli/data/choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace stoker::cli {

Result<std::size_t> choice(std::string_view command, std::string_view option, std::string_view word,
                           std::span<const std::string_view> choices) {
  const auto found = std::find(choices.begin(), choices.end(), word);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  if (word.empty()) {
    return invalid("{}: {}: is needed ({})", command, option,
                   join(std::vector<std::string>(choices.begin(), choices.end()), ", "));
  }
  return invalid("{}: {}: unknown value '{}'{}", command, option, printable(word), suggestion(word, choices));
}

}  // namespace stoker::cli
