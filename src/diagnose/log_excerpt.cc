#include "diagnose/log_excerpt.h"

#include <algorithm>
#include <string>

#include "diagnose/log_line.h"
#include "diagnose/rule_match.h"
#include "diagnose/scan_blocks.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kMaxNotable = 3;
constexpr std::size_t kMaxLast = 24;
constexpr std::size_t kLongestNotable = 600;  // including text that is removed for display
constexpr std::size_t kEndOfBlock = 8192;

// Whether the line only separates others: "-----".
bool is_rule_of_box(std::string_view line) {
  return !line.empty() && line.find_first_not_of("-=*_ ") == std::string_view::npos;
}

bool is_noise(std::string_view line) {
  const auto match = find_rule(line);
  return match && match->rule->failure_class == FailureClass::noise;
}

}  // namespace

void LogExcerpt::add_notable(std::uint64_t line, std::string_view text) {
  if (notable_.size() < kMaxNotable) {
    notable_.push_back({line, std::string(text.substr(0, kLongestNotable))});
    return;
  }
  // Reuses the memory of the oldest line: a log may have millions of such lines.
  std::rotate(notable_.begin(), notable_.begin() + 1, notable_.end());
  notable_.back().line = line;
  notable_.back().text.assign(text.substr(0, kLongestNotable));
}

void LogExcerpt::add_block(std::string_view block, std::uint64_t line) {
  std::string_view rest = block.substr(block.size() - std::min(block.size(), kEndOfBlock));
  const std::size_t blank = rest.find_last_not_of(" \t\r\n") + 1;  // npos + 1 is 0
  std::uint64_t number = line - static_cast<std::uint64_t>(std::count(
                                    rest.begin() + static_cast<std::ptrdiff_t>(blank), rest.end(), '\n'));
  rest = rest.substr(0, blank);
  std::deque<NotableLine> ends;
  while (!rest.empty() && ends.size() < kMaxLast) {
    const std::size_t start = rest.rfind('\n') + 1;
    const LogLine parsed = read_log_line(rest.substr(start));
    if (!trim(parsed.text).empty()) ends.push_front({number, shown(parsed.text), parsed.rank});
    rest = rest.substr(0, start == 0 ? 0 : start - 1);
    --number;
  }
  last_.insert(last_.end(), ends.begin(), ends.end());
  while (last_.size() > kMaxLast) last_.pop_front();
}

std::vector<NotableLine> LogExcerpt::evidence() const {
  std::vector<NotableLine> lines(notable_.begin(), notable_.end());
  for (std::size_t i = 1; i < last_.size() && lines.size() < kMaxNotable; ++i) {
    if (is_rule_of_box(last_[i - 1].text) && !is_rule_of_box(last_[i].text) && !is_noise(last_[i].text))
      lines.push_back(last_[i]);
  }
  for (auto each = last_.rbegin(); each != last_.rend() && lines.size() < kMaxNotable; ++each) {
    if (is_noise(each->text) || is_rule_of_box(each->text)) continue;
    const bool is_known = std::any_of(lines.begin(), lines.end(),
                                      [&](const NotableLine& line) { return line.line == each->line; });
    if (!is_known) lines.push_back(*each);
  }
  for (NotableLine& line : lines) line.text = shown(read_log_line(line.text).text);
  std::sort(lines.begin(), lines.end(),
            [](const NotableLine& a, const NotableLine& b) { return a.line < b.line; });
  return lines;
}

}  // namespace stoker::diagnose
