#include "cli/data/choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "stoker/text.h"

namespace stoker::cli {

Result<std::size_t> parse_choice(std::string_view command, std::string_view option, std::string_view word,
                                 std::span<const std::string_view> choices) {
  const auto found = std::find(choices.begin(), choices.end(), word);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  if (word.empty()) {
    return invalid("{}: {} is required ({})", command, option,
                   join(std::vector<std::string>(choices.begin(), choices.end()), ", "));
  }
  return invalid("{}: {}: unknown value '{}'{}", command, option, printable(word), suggestion(word, choices));
}

Status check_no_empty_arguments(std::string_view command, std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool is_option = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (is_option) return invalid("{}: {}: is empty", command, printable(word.substr(0, word.size() - 1)));
    if (!word.empty()) continue;
    const std::string_view before = i > 0 ? std::string_view(words[i - 1]) : "";
    if (before.starts_with('-') && before != "-")
      return invalid("{}: {}: is empty", command, printable(before));
    return invalid("{}: empty argument ('')", command).cure("stoker {} --help", command);
  }
  return {};
}

}  // namespace stoker::cli
