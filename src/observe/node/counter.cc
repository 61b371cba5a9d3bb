#include "observe/node/counter.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {

Counter leading_number(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.find_first_of(" \t\n");
  std::uint64_t value = 0;
  if (!parse_number(text.substr(0, end), &value)) return std::nullopt;
  return value;
}

Counter read_counter(const Path& file) {
  const auto text = read_pseudo_file(file);
  return text.ok() ? leading_number(*text) : std::nullopt;
}

Counter value_after(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size()) continue;
    const char separator = line[key.size()];
    if (separator == ':' || separator == ' ' || separator == '\t')
      return leading_number(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = line.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> names_in(const Path& folder) {
  auto names = list_directory(folder);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

Counter sum_of(Counter a, Counter b) {
  if (!a || !b) return a ? a : b;
  return *a + *b;
}

std::optional<double> rate_between(Counter before, Counter now, double seconds) {
  constexpr double kMost = 1e14;
  if (!before || !now || *now < *before || !(seconds > 0)) return std::nullopt;
  const double rate = static_cast<double>(*now - *before) / seconds;
  if (!(rate <= kMost)) return std::nullopt;
  return rate;
}

}  // namespace stoker::observe
