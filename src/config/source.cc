#include "config/source.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stoker::config {
namespace {

constexpr std::size_t kLineWidth = 100;  // shown characters of a line
constexpr std::size_t kLead = 60;        // shown characters before the caret if the line is cut

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

// The bytes of `text` from character `first` on, at most `count` characters.
std::string_view slice(std::string_view text, std::size_t first, std::size_t count) {
  const auto skip = [](std::string_view rest, std::size_t n) {
    std::size_t i = 0;
    for (; i < rest.size(); ++i) {
      if (!is_continuation(rest[i]) && n-- == 0) break;
    }
    return i;
  };
  text.remove_prefix(skip(text, first));
  return text.substr(0, skip(text, count));
}

// A tab is shown as one character, so that the caret stays in its column.
std::string shown(std::string_view text) {
  std::string out;
  for (std::string_view part : split(text, '\t')) {
    if (part.data() != text.data()) out += "→";
    out += printable(part);
  }
  return out;
}

}  // namespace

Source::Source(Layer layer, std::string name, std::string text)
    : layer_(layer), name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

Mark Source::mark(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t line = static_cast<std::size_t>(after - line_starts_.begin());
  const std::size_t start = line_starts_[line - 1];
  const std::size_t column = characters(std::string_view(text_).substr(start, offset - start)) + 1;
  return {static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(column)};
}

std::string Source::where(std::size_t offset) const {
  if (!has_lines()) return name_;
  const Mark at = mark(offset);
  return format("{}:{}:{}", name_, at.line, at.column);
}

std::string Source::excerpt(std::size_t offset) const {
  if (!has_lines() || text_.empty()) return "";
  const Mark at = mark(offset);
  const std::size_t start = line_starts_[at.line - 1];
  std::string_view line = std::string_view(text_).substr(start, text_.find('\n', start) - start);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t length = characters(line);
  const std::size_t first = length > kLineWidth && at.column > kLead ? at.column - kLead : 0;
  const bool is_cut = first + kLineWidth < length;
  // A control character is shown as several: the caret follows the shown text.
  const std::string before = shown(slice(line, first, at.column - 1 - first));
  std::string text = format("\n{:>5} | {}{}{}", at.line, first > 0 ? "…" : "",
                            shown(slice(line, first, kLineWidth)), is_cut ? "…" : "");
  text += format("\n      | {}^", std::string(characters(before) + (first > 0 ? 1 : 0), ' '));
  return text;
}

void ErrorList::add(const Origin& origin, std::string_view text) {
  if (!is_full()) entries_.push_back({origin, std::string(text), entries_.size()});
}

Status ErrorList::status() const {
  if (entries_.empty()) return {};
  std::vector<Entry> sorted = entries_;
  const auto place = [](const Entry& e) { return std::tuple(e.origin.layer(), e.origin.offset, e.number); };
  std::sort(sorted.begin(), sorted.end(),
            [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
  if (is_full()) sorted.pop_back();
  std::string text;
  for (const Entry& entry : sorted) {
    if (!text.empty()) text += '\n';
    if (entry.origin.source) text += entry.origin.where() + ": ";
    text += entry.text;
    if (entry.origin.source) text += entry.origin.source->excerpt(entry.origin.offset);
  }
  if (is_full()) text += format("\nonly the first {} errors are shown", kMost);
  return invalid("{}", text);
}

}  // namespace stoker::config
