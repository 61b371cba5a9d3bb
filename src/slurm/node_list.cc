#include "slurm/node_list.h"

#include <algorithm>
#include <cstdint>

namespace stoker::slurm {
namespace {

// Longer numbers are not node numbers, and this many digits fit an int64.
constexpr std::size_t kMaxDigits = 18;
constexpr std::size_t kLongestName = 255;

Status malformed(std::string_view text, std::string_view what) {
  return invalid("node list '{}': {}", printable(text.substr(0, 200)), what);
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string padded(std::int64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// Expands the numbers in one pair of brackets, with their padding.
Status expand_brackets(std::string_view list, std::string_view inside, std::vector<std::string>* out) {
  for (std::string_view range : split(inside, ',')) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    if (!is_number(first) || !is_number(last)) {
      return malformed(list, format("'{}' is not a number or a range of numbers", printable(range)));
    }
    std::int64_t from = 0;
    std::int64_t to = 0;
    (void)parse_number(first, &from);
    (void)parse_number(last, &to);
    if (to < from) return malformed(list, format("range '{}' is descending", range));
    if (static_cast<std::size_t>(to - from) >= kMaxNodes - std::min(kMaxNodes, out->size())) {
      return malformed(list, format("more than {} nodes", kMaxNodes));
    }
    for (std::int64_t n = from; n <= to; ++n) out->push_back(padded(n, first.size()));
  }
  return {};
}

// Forms the cross product of names and endings, for several brackets in one name.
Status append_choices(std::string_view list, const std::vector<std::string>& endings,
                      std::vector<std::string>* names) {
  if (names->size() * endings.size() > kMaxNodes)
    return malformed(list, format("more than {} nodes", kMaxNodes));
  std::vector<std::string> combined;
  combined.reserve(names->size() * endings.size());
  for (const std::string& name : *names) {
    for (const std::string& ending : endings) combined.push_back(name + ending);
  }
  *names = std::move(combined);
  return {};
}

Status expand_item(std::string_view list, std::string_view item, std::vector<std::string>* out) {
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    // Checked at every piece: many brackets in one name would otherwise take exponential time.
    if (names.front().size() > kLongestName) {
      return malformed(list, format("a name is longer than {} bytes", kLongestName));
    }
    if (item.front() == '[') {
      const std::size_t close = item.find(']');
      if (close == std::string_view::npos) return malformed(list, "a bracket is not closed");
      std::vector<std::string> numbers;
      STOKER_RETURN_IF_ERROR(expand_brackets(list, item.substr(1, close - 1), &numbers));
      STOKER_RETURN_IF_ERROR(append_choices(list, numbers, &names));
      item.remove_prefix(close + 1);
      continue;
    }
    const std::size_t end = std::min(item.find('['), item.size());
    const std::string_view plain = item.substr(0, end);
    if (!std::all_of(plain.begin(), plain.end(), is_name_byte)) {
      return malformed(list, format("'{}' is not a node name", printable(plain.substr(0, 80))));
    }
    for (std::string& name : names) name += plain;
    item.remove_prefix(end);
  }
  if (names.front().size() > kLongestName) {
    return malformed(list, format("a name is longer than {} bytes", kLongestName));
  }
  if (out->size() + names.size() > kMaxNodes) return malformed(list, format("more than {} nodes", kMaxNodes));
  out->insert(out->end(), names.begin(), names.end());
  return {};
}

// Items end at commas and line ends outside brackets.
std::size_t item_end(std::string_view text) {
  bool in_brackets = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') in_brackets = true;
    if (text[i] == ']') in_brackets = false;
    if (!in_brackets && (text[i] == ',' || text[i] == '\n')) return i;
  }
  return text.size();
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view text) {
  const std::string_view list = trim(text);
  std::vector<std::string> names;
  if (list.empty() || list == "(null)") return names;
  std::string_view rest = list;
  for (;;) {
    const std::size_t end = item_end(rest);
    const std::string_view item = trim(rest.substr(0, end));
    if (item.empty()) return malformed(list, "a name is empty");
    STOKER_RETURN_IF_ERROR(expand_item(list, item, &names));
    if (end == rest.size()) return names;
    rest.remove_prefix(end + 1);
  }
}

Result<std::vector<int>> expand_per_node(std::string_view text) {
  const auto bad = [&](std::string_view what) {
    return invalid("task counts '{}': {}", printable(text.substr(0, 200)), what);
  };
  std::vector<int> counts;
  for (std::string_view part : split(trim(text), ',')) {
    std::string_view repeat = "1";
    const std::string_view whole = part;
    if (const std::size_t open = part.find("(x"); open != std::string_view::npos && part.ends_with(')')) {
      repeat = part.substr(open + 2, part.size() - open - 3);
      part = part.substr(0, open);
    }
    std::int64_t count = 0;
    std::int64_t times = 0;
    if (!is_number(part) || !is_number(repeat) || !parse_number(part, &count) ||
        !parse_number(repeat, &times)) {
      return bad(format("'{}' is not a count such as 4 or 4(x2)", printable(whole)));
    }
    if (count > static_cast<std::int64_t>(kMaxNodes) || times == 0 ||
        times > static_cast<std::int64_t>(kMaxNodes - counts.size())) {
      return bad(format("'{}' is not between 1 and {}", whole, kMaxNodes));
    }
    counts.insert(counts.end(), static_cast<std::size_t>(times), static_cast<int>(count));
  }
  return counts;
}

}  // namespace stoker::slurm
