// The part of LogScanner for blocks of several lines: tracebacks, messages of exceptions, dumps of stacks.
#include "diagnose/scan_blocks.h"

#include <algorithm>
#include <utility>

#include <re2/re2.h>

#include "diagnose/frames.h"
#include "diagnose/hit_context.h"
#include "diagnose/rule_match.h"
#include "diagnose/scan.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::uint64_t kLongestMessage = 400;  // TensorFlow lists the frames of a graph
constexpr std::uint64_t kLongestDump = 200;
constexpr std::uint64_t kLongestTraceback = 5000;  // recursion: 1000 frames of up to four lines
constexpr std::uint64_t kAfterOwnChain = 3;
constexpr std::uint64_t kAfterUnread = 80;
constexpr std::uint64_t kAfterNothing = 1000;
constexpr std::string_view kDumpOfHangName = "dump-of-hang";
constexpr std::string_view kNoneType = "NoneType";
constexpr std::string_view kBelowWait = "waiting";
constexpr std::string_view kNanInBackward = "returned nan values";
constexpr std::string_view kBelowWrite = "write";
constexpr std::string_view kThread = "Exception in thread ";
constexpr std::string_view kOfRayTask = "RayTaskError(";
constexpr std::string_view kOfRayActor = "error raised in its creation task";

// Whether a line above a traceback reports that the program continues. A summary may count what was skipped.
bool announces_retry(std::string_view line_above) {
  return reports_retry(line_above) && !reports_success(line_above) && !reports_amount(line_above);
}

// Whether the line above a traceback shows that the program printed it.
bool is_announced(std::string_view line_above) {
  return level_of(line_above) == LogLevel::warning || announces_retry(line_above);
}

// "a.py:7 and a.py:9": where two threads are in the program, not in a library. The main thread, which is the
// last one, only waits for them.
std::string threads_in_program(const std::vector<std::string>& tops) {
  std::string places;
  int count = 0;
  for (std::size_t i = 0; i + 1 < tops.size(); ++i) {
    if (tops[i].empty()) continue;
    places += format("{}{}", count == 0 ? "" : " and ", tops[i]);
    ++count;
  }
  return count == 2 ? places : "";
}

}  // namespace

const FailureRule& exception_rule() {
  static const FailureRule& rule =
      **std::find_if(failure_rules().begin(), failure_rules().end(),
                     [](const FailureRule* each) { return each->name == "python-exception"; });
  return rule;
}

// Whether the line belongs to a report of a handled exception, which is no failure.
bool LogScanner::follow_handled_report(std::string_view text, int rank) {
  const bool is_logging = text.starts_with(kLoggingError);
  if (is_logging || text.starts_with(kIgnored)) {
    if (handled_.size() < kMaxTracebacks)
      handled_[rank] = {.lines = 0, .is_logging = is_logging, .has_traceback = false};
    return true;
  }
  for (auto each = handled_.begin(); each != handled_.end();)
    each = ++each->second.lines > kLongestTraceback ? handled_.erase(each) : std::next(each);
  const auto open = handled_.find(rank);
  if (open == handled_.end()) return false;
  HandledReport& report = open->second;
  if (text.find(kTracebackStart) != std::string::npos) {
    report.has_traceback = true;
    return true;
  }
  if (report.is_logging &&
      (text.starts_with("Arguments: ") || text.starts_with("--- End of logging error"))) {
    handled_.erase(open);
    return true;
  }
  if (is_exception(text)) {
    if (!report.is_logging) handled_.erase(open);
    return true;
  }
  if (!report.is_logging && !report.has_traceback) {
    handled_.erase(open);
    return false;
  }
  if (text.empty() || text.front() == ' ') return true;
  for (const std::string_view begin :
       {"Call stack:", "Message: ", "During handling of", "The above exception",
        "Record was: ", "Unable to print the message"}) {
    if (text.starts_with(begin)) return true;
  }
  return false;
}

void LogScanner::begin_traceback(std::string_view text, int rank) {
  remember_forward(rank);
  if (tracebacks_.size() == kMaxTracebacks) return;
  const std::vector<std::string> lines = lines_above().nearest(1);
  const std::string above = lines.empty() ? "" : lines.front();
  // Otherwise the line above may belong to the error before it.
  const bool is_about_this = level_of(above) == LogLevel::warning || result_.hits.empty() ||
                             line_ - result_.hits.back().line > kAfterError;
  const bool is_chained =
      chained_line_ > 0 && line_ - chained_line_ <= (rank < 0 ? kAfterOwnChain : kAfterChain);
  tracebacks_[rank] = {.begin = line_,
                       .lines = 0,
                       .frame = "",
                       .is_logged = is_announced(above),
                       .is_chained = is_chained,
                       .is_in_handler = is_chained && !is_raised_from_,
                       .is_retried = is_about_this && announces_retry(above),
                       .is_of_thread = above.starts_with(kThread),
                       .indent = text.starts_with(' ') ? text.find_first_not_of(' ') : 0,
                       .message_above = message_above_traceback(lines_above())};
}

// Whether the line belongs to a traceback of that rank and needs no matching.
bool LogScanner::follow_traceback(std::string_view text, int rank) {
  for (auto each = tracebacks_.begin(); each != tracebacks_.end();)
    each = ++each->second.lines > kLongestTraceback ? tracebacks_.erase(each) : std::next(each);
  const auto open = tracebacks_.find(rank);
  if (open == tracebacks_.end()) return false;
  // The box comes from rich.
  const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  const bool is_indented_end =
      open->second.indent > 0 && indent == open->second.indent && is_exception(text.substr(indent));
  if (is_indented_end) text.remove_prefix(indent);
  const bool is_inside = text.empty() || text.front() == ' ' || text.front() == '|' ||
                         text.starts_with("│") || text.starts_with("╭") || text.starts_with("╰");
  if (is_inside) {
    if (std::string frame = frame_of(text); !frame.empty()) {
      open->second.frame = std::move(frame);
      // What an outer call writes does not show what an inner one opens.
      if (open->second.below == kBelowWrite) open->second.below = {};
    }
    if (const std::string_view part = part_of_library(text); !part.empty()) open->second.below = part;
    note_hidden_module(text, open->second);
    if (auto library = library_of(text)) open->second.library = *std::move(library);
    return true;
  }
  if (!is_exception(text)) return false;
  Traceback traceback = open->second;
  tracebacks_.erase(open);
  const auto forward = forward_.find(rank);
  if (forward != forward_.end() && text.find(kNanInBackward) != std::string_view::npos &&
      !forward->second.empty())
    traceback.frame = forward->second;
  // The traceback of the task and its exception follow.
  if (text.find(kOfRayTask) != std::string_view::npos || text.find(kOfRayActor) != std::string_view::npos)
    tracebacks_[rank] = {.begin = line_,
                         .lines = 0,
                         .frame = "",
                         .is_logged = traceback.is_logged,
                         .is_retried = traceback.is_retried,
                         .below = {}};
  return close_traceback(text, rank, traceback);
}

// Keeps the frame of the forward call before the traceback of the backward replaces it.
void LogScanner::remember_forward(int rank) {
  const auto open = tracebacks_.find(rank);
  if (open == tracebacks_.end() || !open->second.is_of_forward || forward_.size() == kMaxTracebacks) return;
  forward_[rank] = open->second.frame;
}

// Notes a file of the user that a library imported in place of a module with its name.
void LogScanner::note_hidden_module(std::string_view text, Traceback& traceback) {
  static const RE2 kImport(R"(^\s+(?:from|import) (\w+))");
  const std::string frame = frame_of(text);
  if (!frame.empty() && !traceback.imported.empty() && frame.starts_with(traceback.imported + ".py:"))
    traceback.hidden = traceback.imported;
  const bool is_in_library = !traceback.library.empty() && frame.empty();
  if (is_in_library &&
      RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kImport, &traceback.imported))
    return;
  if (!frame.empty()) traceback.imported.clear();
}

// Keeps the exception that ends a traceback.
bool LogScanner::close_traceback(std::string_view text, int rank, const Traceback& traceback) {
  if (!traceback.hidden.empty() && match_below(text, format("own {}.py", traceback.hidden), rank, traceback))
    return true;
  if (match_below(text, traceback.below, rank, traceback)) return true;
  if (text.starts_with(kSyntaxError) && match_syntax_error(text, rank, traceback)) return true;
  const bool is_of_library = text.starts_with("AssertionError") && !traceback.library.empty();
  if (is_of_library && match_below(text, format("library {}", traceback.library), rank, traceback))
    return true;
  const bool is_after_unread = unread_.line > 0 && unread_.line < traceback.begin &&
                               traceback.begin - unread_.line <= kAfterUnread &&
                               text.find(kNoneType) != std::string_view::npos;
  if (is_after_unread) {
    Traceback of_unread = traceback;
    of_unread.line = of_unread.begin = unread_.line;
    if (match_below(unread_.text, "None", rank, of_unread)) return true;
  }
  if (match_nothing(text, rank, traceback)) return true;
  if (match(text, rank, &traceback)) return true;
  Hit hit{.rule = &exception_rule(),
          .line = line_,
          .begin = traceback.begin,
          .overwrites = overwrites_,
          .text = shown(text),
          .groups = {},
          .frame = traceback.frame,
          .rank = rank,
          .time = std::nullopt,
          .is_logged = traceback.is_logged,
          .is_chained = traceback.is_chained,
          .is_in_handler = traceback.is_in_handler,
          .is_retried = traceback.is_retried,
          .is_of_thread = traceback.is_of_thread};
  const std::size_t colon = text.find(": ");
  hit.groups[0] = shown(text.substr(0, colon));
  hit.groups[1] = shown(text);
  if (ExceptionMessage::is_continued(text) && exceptions_.size() < kMaxTracebacks)
    exceptions_.insert_or_assign(rank, OpenException{std::move(hit), ExceptionMessage(text), 0});
  else
    keep(std::move(hit));
  return true;
}

// An exception that an empty set of data causes, if the program reported such a set. True if one matches.
bool LogScanner::match_nothing(std::string_view text, int rank, Traceback traceback) {
  static const RE2 kOfEmpty(
      R"(division by zero|num_samples=0|empty|need at least one array|No objects to concatenate|^(?:StopIteration|IndexError)\b|n_samples=0|with 0 sample)");
  const bool is_after = nothing_.line > 0 && nothing_.line < traceback.begin && nothing_.rank == rank &&
                        traceback.begin - nothing_.line <= kAfterNothing;
  if (!is_after || !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kOfEmpty)) return false;
  traceback.line = traceback.begin = nothing_.line;
  return match_below(without_head(nothing_.text), "nothing", rank, traceback);
}

// Applies a rule for exceptions below a part of a library. True if one matches.
bool LogScanner::match_below(std::string_view text, std::string_view part, int rank,
                             const Traceback& traceback) {
  if (part.empty()) return false;
  const std::string below = format("{} (below {})", text, part);
  const auto specific = find_rule(below, found_);
  return specific && specific->rule->words.starts_with("(below ") && match(below, rank, &traceback);
}

// A syntax error, with the Python version that its line needs, if known. True if a rule matches.
bool LogScanner::match_syntax_error(std::string_view text, int rank, Traceback traceback) {
  std::string code;
  for (std::string& line : lines_above().nearest(4)) {
    const bool is_mark = line.find_first_not_of(" ^~") == std::string::npos;
    if (std::string frame = frame_of(line); !frame.empty()) {
      traceback.frame = std::move(frame);
      break;
    }
    if (!is_mark && code.empty()) code = std::move(line);
  }
  const std::string_view version = python_needed(code, text);
  if (!version.empty() && match_below(text, format("Python {}", version), rank, traceback)) return true;
  return match(text, rank, &traceback);
}

// A line of an exception's message that has a rule: it is the reason if the message has none yet.
bool LogScanner::match_message_line(std::map<int, OpenException>::iterator open, std::string_view text,
                                    int rank) {
  const std::string_view line = trim(text);
  const auto found = find_rule(line, found_);
  if (!found) return false;
  const FailureClass failure_class = found->rule->failure_class;
  const bool is_reason = failure_class != FailureClass::noise && failure_class != FailureClass::slow &&
                         !open->second.message.has_reason();
  if (!is_reason) return match(line, rank, nullptr);
  const Hit hit = std::move(open->second.hit);
  exceptions_.erase(open);
  const Traceback traceback{.begin = hit.begin,
                            .lines = 0,
                            .frame = hit.frame,
                            .is_logged = hit.is_logged,
                            .is_chained = hit.is_chained,
                            .is_in_handler = hit.is_in_handler,
                            .is_retried = hit.is_retried};
  return match(line, rank, &traceback);
}

// Whether the line belongs to the message of an exception of that rank.
bool LogScanner::follow_exception(std::string_view text, int rank) {
  for (auto each = exceptions_.begin(); each != exceptions_.end();) {
    const auto next = std::next(each);
    if (++each->second.lines > kLongestMessage) close_exception(each);
    each = next;
  }
  const auto open = exceptions_.find(rank);
  if (open == exceptions_.end()) return false;
  const bool is_over = text.find(kTracebackStart) != std::string_view::npos ||
                       level_of(text) != LogLevel::none || text.starts_with("The above exception") ||
                       text.starts_with("During handling") || is_progress(text);
  if (is_over) {
    close_exception(open);
    return false;
  }
  if (match_message_line(open, text, rank)) return true;
  if (std::string frame = frame_of(text); open->second.message.is_in_user_code() && !frame.empty())
    open->second.hit.frame = std::move(frame);
  const bool had_reason = open->second.message.has_reason();
  const bool wants_more = open->second.message.add(text);
  constexpr std::size_t kShortestReason = 8;
  if (!had_reason && open->second.message.has_reason() && trim(text).size() >= kShortestReason) {
    open->second.hit.line = line_;
    open->second.hit.text = shown(text);
  }
  if (!wants_more) close_exception(open);
  return true;
}

void LogScanner::close_exception(std::map<int, OpenException>::iterator open) {
  Hit hit = std::move(open->second.hit);
  const std::string text = open->second.message.text();
  hit.groups[1] = shown(text);
  exceptions_.erase(open);
  // The whole message may have a rule that its lines do not have.
  const auto found = find_rule(text, found_);
  if (found && found->rule->failure_class == FailureClass::root) {
    hit.rule = found->rule;
    set_groups(*found, hit);
  }
  keep(std::move(hit));
}

// Whether the line belongs to a dump of stacks, the newest frame first.
bool LogScanner::follow_dump(std::string_view text, int rank) {
  for (auto each = dumps_.begin(); each != dumps_.end();) {
    const auto next = std::next(each);
    if (++each->second.lines > kLongestDump) close_dump(each);
    each = next;
  }
  const auto open = dumps_.find(rank);
  if (open == dumps_.end()) return false;
  const bool is_inside = text.empty() || text.starts_with("  File ") || text.starts_with("  ...") ||
                         text.starts_with("Thread 0x") || text.starts_with("Stack (most recent") ||
                         text.starts_with("Current thread 0x") || text.starts_with("    #") ||
                         text.starts_with("READ of size") || text.starts_with("WRITE of size");
  if (!is_inside) {
    close_dump(open);
    return false;
  }
  OpenDump& dump = open->second;
  std::string frame = frame_of(text);
  const bool is_of_hang = dump.hit.rule->name == kDumpOfHangName;
  if (is_of_hang && text.starts_with("Thread 0x")) {
    dump.is_above_top = true;
  } else if (is_of_hang && text.starts_with("  File ") && std::exchange(dump.is_above_top, false)) {
    dump.tops.push_back(frame);
  }
  if (is_of_hang && !dump.hit.frame.empty()) return true;
  // After a crash the frames of the current thread count, which Python prints last.
  if (text.starts_with("Thread 0x")) dump.is_of_other_thread = dump.hit.rule->name == kDumpOfCrash;
  if (text.starts_with("Current thread 0x")) {
    dump.is_of_other_thread = dump.has_frames = false;
    dump.hit.frame.clear();
    dump.below = {};
  }
  if (dump.is_of_other_thread) {
    if (dump.hit.frame.empty()) dump.hit.frame = std::move(frame);
    return true;
  }
  const bool is_frame = text.starts_with("  File ");
  if (is_frame && !dump.has_frames && dump.hit.rule->name == kDumpOfCrash && is_waiting_frame(text))
    dump.below = kBelowWait;
  dump.has_frames = dump.has_frames || is_frame;
  if (const std::string_view part = part_of_library(text); dump.below != kBelowWait && !part.empty())
    dump.below = part;
  if (frame.empty()) return true;
  dump.hit.frame = std::move(frame);
  if (!is_of_hang) close_dump(open);
  return true;
}

void LogScanner::close_dump(std::map<int, OpenDump>::iterator open) {
  OpenDump dump = std::move(open->second);
  dumps_.erase(open);
  if (!dump.tops.empty()) dump.hit.groups[1] = threads_in_program(dump.tops);
  const std::string below = format("{} (below {})", dump.hit.text, dump.below);
  const auto found = dump.below.empty() ? std::nullopt : find_rule(below, found_);
  if (found && found->rule->words.starts_with("(below ")) {
    dump.hit.rule = found->rule;
    set_groups(*found, dump.hit);
  }
  keep(std::move(dump.hit));
}

}  // namespace stoker::diagnose
