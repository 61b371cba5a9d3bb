#include "diagnose/log_end.h"

#include <algorithm>
#include <string_view>

#include <re2/re2.h>

#include "diagnose/frames.h"
#include "diagnose/line_signs.h"
#include "diagnose/matches.h"
#include "diagnose/own_verdict.h"

namespace stoker::diagnose {
namespace {

using Lines = std::deque<NotableLine>;

constexpr std::ptrdiff_t kAboveFinish = 10;
constexpr std::ptrdiff_t kVerdictAbove = 3;
constexpr std::size_t kLongestKind = 16;

// Whether the line is about a service beside the program, such as a tracker of experiments.
bool is_of_side_service(std::string_view line) {
  static const RE2 kService(
      R"((?i)\b(?:track(?:er|ing)|telemetry|clean-?up|wandb|mlflow|comet|tensorboard|metrics server|webhook|slack|notif\w+|heartbeat|prometheus)\b)");
  return matches(line, kService);
}

// Whether an error is reported above a line: a script may print "Done" although its program has just failed.
// An error is none if the next line, perhaps below its traceback, reports how the program continues.
bool is_below_error(const Lines& lines, Lines::const_reverse_iterator end) {
  bool is_handled = false, is_in_traceback = false;
  for (auto each = end; each != lines.crend() && each - end <= kAboveFinish; ++each) {
    if (!is_handled && reports_error(each->text) && !reports_fallback(each->text) &&
        !counts_no_failure(each->text) && !is_of_side_service(each->text))
      return true;
    if (is_progress(each->text)) return false;
    const bool begins_traceback = each->text.starts_with("Traceback (most recent call last)");
    is_in_traceback = !begins_traceback && (is_in_traceback || (is_handled && is_exception(each->text)));
    if (is_in_traceback || (is_handled && begins_traceback)) continue;
    is_handled = reports_retry(each->text) || reports_fallback(each->text);
  }
  return false;
}

bool ends_with_ok(std::string_view line) {
  static const RE2 kOk(R"((?i)\b(?:ok|okay|passed|success|succeeded)[.!)]*$)");
  return matches(line, kOk);
}

// Whether the program states its failure just above a line: "check failed" before "end of run".
bool is_below_verdict(const Lines& lines, Lines::const_reverse_iterator end) {
  for (auto each = std::next(end); each != lines.crend() && each - end <= kVerdictAbove; ++each) {
    if (reports_retry(each->text) || reports_fallback(each->text) || reports_choice(each->text)) return false;
    if (ends_with_ok(each->text)) return false;
    if (level_of(each->text) == LogLevel::none && !is_of_side_service(each->text) &&
        !is_of_trial(each->text) && states_failure_of_whole(each->text))
      return true;
  }
  return false;
}

// The start of a line without its numbers: alike for lines that a program prints again and again.
std::string kind_of(std::string_view text) {
  std::string kind;
  for (const char c : without_head(text)) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind.substr(0, kLongestKind);
}

bool is_only_one_of_its_kind(const Lines& lines, const std::string& text) {
  const std::string kind = kind_of(text);
  return std::count_if(lines.begin(), lines.end(),
                       [&](const NotableLine& each) { return kind_of(each.text) == kind; }) == 1;
}

bool is_finish(const Lines& lines, const std::string& text) {
  return reports_success(text) || (reports_amount(text) && is_only_one_of_its_kind(lines, text));
}

// Whether one of the last lines reports that the program finished, and no later one that it continued or
// failed.
void find_finish(const Lines& lines, LogEnd& end) {
  for (auto each = lines.crbegin(); each != lines.crend(); ++each) {
    if (is_end_of_helper(each->text)) continue;
    if (reports_failed_end(each->text)) return;
    if (is_finish(lines, each->text)) {
      end.finished = each->line;
      end.rank = each->rank;
      end.is_logged = level_of(each->text) != LogLevel::none;
      end.is_explicit = reports_good_exit(each->text);
      end.is_emphatic = end.is_explicit || stresses_success(each->text);
      const auto above = std::next(each);
      end.has_measure = has_measure(each->text) ||
                        std::any_of(lines.crbegin(), each,
                                    [](const NotableLine& later) { return has_measure(later.text); }) ||
                        (above != lines.crend() && reports_result(above->text));
      end.is_doubtful = !end.is_logged && !end.is_explicit &&
                        ((!has_measure(each->text) && is_below_error(lines, each)) ||
                         (!end.is_emphatic && is_below_verdict(lines, each)));
      return;
    }
    const bool may_fail = level_of(each->text) == LogLevel::none && !is_of_side_service(each->text) &&
                          may_state_failure(each->text);
    if (is_progress(each->text) || contradicts_success(each->text) || may_fail || states_failure(each->text))
      return;
  }
}

void find_last_result(const Lines& lines, LogEnd& end) {
  if (lines.empty() || is_below_error(lines, lines.crbegin())) return;
  const std::string& last = lines.back().text;
  if (states_failure(last) || may_state_failure(last) || is_below_verdict(lines, lines.crbegin())) return;
  if (!reports_result(last) && !states_number(last) && !reports_end_of_part(last)) return;
  if (is_only_one_of_its_kind(lines, lines.back().text)) end.last_result = lines.back().line;
}

}  // namespace

LogEnd end_of_log(const Lines& lines) {
  LogEnd end;
  find_finish(lines, end);
  find_last_result(lines, end);
  return end;
}

}  // namespace stoker::diagnose
