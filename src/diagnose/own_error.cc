#include "diagnose/own_error.h"

#include <string>
#include <utility>

#include "diagnose/line_signs.h"
#include "diagnose/own_verdict.h"
#include "diagnose/rule_match.h"
#include "diagnose/scan_blocks.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// A verdict further below an error is the end of the program.
constexpr std::uint64_t kBelowError = 3;
constexpr std::uint64_t kAboveWordsOfEnd = 24;

// Adds the report of an empty set, or of a file that could not be read, to the words that end the program.
void add_reason(const NotableLine& end, std::span<const NotableLine> reasons, std::string& words) {
  for (const NotableLine& reason : reasons) {
    if (reason.line == 0 || reason.line >= end.line || end.line - reason.line > kAboveWordsOfEnd) continue;
    words += format(" (line {}: {})", reason.line, own_words(reason.text));
    return;
  }
}

}  // namespace

std::optional<OwnError> find_own_error(const std::deque<NotableLine>& last, const LogEnd& end,
                                       std::span<const NotableLine> reasons) {
  if ((end.finished && !end.is_doubtful) || end.last_result) return std::nullopt;
  const NotableLine* usage = nullptr;
  const NotableLine* error = nullptr;
  for (auto each = last.rbegin(); each != last.rend() && error == nullptr; ++each) {
    if (reports_own_error(each->text)) error = &*each;
    if (prints_usage(each->text)) usage = &*each;
    if (is_progress(each->text)) break;
  }
  const NotableLine* line = error != nullptr ? error : usage;
  const auto verdict = own_verdict(last);
  std::string words = line != nullptr ? std::string(own_words(line->text)) : "";
  const bool is_verdict =
      verdict && usage == nullptr && (line == nullptr || verdict->line.line > line->line + kBelowError);
  if (is_verdict) {
    line = error = &verdict->line;
    words = verdict->words;
  }
  if (line == nullptr) return std::nullopt;
  if (error != nullptr) add_reason(*line, reasons, words);
  // A line that a rule knows is a hit, or harmless.
  const auto known = find_rule(own_words(line->text));
  if (known && (known->rule->failure_class == FailureClass::noise || !is_verdict)) return std::nullopt;
  const auto found = find_rule(error != nullptr ? "(in its own words)" : "(its usage)");
  if (!found) return std::nullopt;
  Hit hit{
      .rule = found->rule, .line = line->line, .begin = line->line, .text = line->text, .rank = line->rank};
  hit.groups[0] = shown(words);
  return OwnError{std::move(hit), is_verdict};
}

}  // namespace stoker::diagnose
