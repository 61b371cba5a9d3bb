#include "diagnose/scan.h"

#include <algorithm>
#include <deque>

#include <re2/re2.h>

#include "diagnose/finality.h"
#include "diagnose/frames.h"
#include "diagnose/log_line.h"
#include "diagnose/own_verdict.h"
#include "diagnose/rule_match.h"
#include "diagnose/scan_blocks.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::uint64_t kFirstOfRule = 64;
constexpr std::size_t kLatestOfRule = 192;
constexpr int kTableLines = 16;
constexpr std::size_t kMaxNotable = 3;
constexpr std::size_t kMaxLast = 24;
constexpr std::size_t kMaxProgress = 4096;
constexpr std::size_t kMaxAttempts = 1024;
// Progress is looked for within this number of lines after a hit, and after the end of an attempt.
constexpr int kAfterHit = 60;
constexpr int kAfterAttempt = 600;
// Lines above an end in which its reason is looked for, and the part of a cause that shows it.
constexpr std::size_t kAboveEnd = 6;
constexpr std::size_t kAboveTraceback = 3;
constexpr std::string_view kReasonAbove = "[[: {4}]]";
// The part that shows the place in a program of Fortran, which its runtime prints above the error.
constexpr std::string_view kPlaceAbove = "[[ ({4})]]";
constexpr std::string_view kFortranPlace = "At line ";
// Lines before a hit in which progress is looked for, for the first hits of a rule.
constexpr std::size_t kBeforeHit = 40;
constexpr std::uint64_t kFirstWithProgress = 8;
// A program reports that it continues within this number of lines after an error.
constexpr std::uint64_t kAfterError = 3;
constexpr std::size_t kShown = 300;
constexpr std::size_t kLongestNotable = 600;  // including text that is removed for display

// The beginning of multi-line blocks.
constexpr std::string_view kTable = "Root Cause (first observed failure)";
// From the sentence between two exceptions to the second traceback, by ranks that print alternately.
constexpr std::uint64_t kAfterChain = 8;
constexpr std::uint64_t kAfterOwnChain = 3;
// Lines after which torchrun or Slurm may start the program again.
constexpr std::array<std::string_view, 4> kAttemptEnds = {"failed (exitcode:", "will restart worker group",
                                                          "DUE TO JOB REQUEUE", "DUE TO PREEMPTION"};
constexpr std::string_view kGivesUp = "ChildFailedError";
// After such a report the program uses None in place of what it did not read.
constexpr std::array<std::string_view, 2> kUnread = {"Unable to find latest file", "imread_("};
// Parts of lines that report an empty set.
constexpr std::array<std::string_view, 12> kNothing = {
    "ound 0 ", "oaded 0 ",   " 0 images",    " 0 samples", " 0 files",     " 0 examples",
    " 0 rows", " 0 records", " 0 documents", " 0 matches", " 0 sequences", "No files "};
constexpr std::uint64_t kManyNan = 20, kAfterNan = 200;
// Rules whose frames follow.
constexpr std::string_view kDumpOfHang = "dump-of-hang";
constexpr std::string_view kSanitizer = "sanitizer-";
// Rules of harmless lines that repeat the failure of a process.
constexpr std::array<std::string_view, 7> kFailedEnds = {
    "torchrun-child-failed", "torchrun-failed", "spawn-wrapper", "spawn-exited",
    "called-process",        "system-exit",     "srun-exit-code"};
// Words of notable lines, for logs without a match.
constexpr std::array<std::string_view, 20> kNotableWords = {
    "rror",     "ERROR",  "fatal",   "Fatal",     "FATAL",    "bort",   "illed",
    "ailed",    "FAILED", "annot ",  "denied",    "refused",  "dumped", "xcept",
    "imed out", "panic",  "No such", "not found", "CRITICAL", "sage: "};
// The error below such a line, as Ray's daemon prints it, is retried.
constexpr std::string_view kWillRetry = "so the task will be retried";
// Lines that complete the hit above them.
constexpr std::string_view kExecutable = "Executable: ";
constexpr std::string_view kWhat = "  what():";
// Lines from an announced retry to the error.
constexpr std::uint64_t kAfterWillRetry = 40;
// Lines above two words of one name in which the whole name is looked for.
constexpr std::size_t kAboveWords = 24;
constexpr std::string_view kUsesFile = "tool-file-missing";
constexpr std::string_view kThread = "Exception in thread ";

RuleMatcher& matcher() {
  static RuleMatcher all = [] {
    std::vector<std::string_view> others(kNotableWords.begin(), kNotableWords.end());
    others.insert(others.end(), {kTracebackStart, kTable, kLoggingError, kIgnored, kForwardCall});
    others.insert(others.end(), kAttemptEnds.begin(), kAttemptEnds.end());
    others.insert(others.end(), kUnread.begin(), kUnread.end());
    others.insert(others.end(), kNothing.begin(), kNothing.end());
    others.push_back(kWillRetry);
    return RuleMatcher(others);
  }();
  return all;
}

// Whether the line only separates others: "-----".
bool is_rule_of_box(std::string_view line) {
  return !line.empty() && line.find_first_not_of("-=*_ ") == std::string_view::npos;
}

bool is_noise(std::string_view line) {
  std::vector<std::uint16_t> found;
  const auto match = find_rule(line, found);
  return match && match->rule->failure_class == FailureClass::noise;
}

// Whether a line above a traceback reports that the program continues. A summary may count what was skipped.
bool announces_retry(std::string_view line_above) {
  return reports_retry(line_above) && !reports_success(line_above) && !reports_amount(line_above);
}

// Whether the line above a traceback shows that the program printed it.
bool is_announced(std::string_view line_above) {
  return level_of(line_above) == LogLevel::warning || announces_retry(line_above);
}

}  // namespace

std::optional<RuleMatch> find_rule(std::string_view text, std::vector<std::uint16_t>& found) {
  return matcher().find(text, found);
}

std::string shown(std::string_view text) { return printable(trim(text).substr(0, kShown)); }

void set_groups(const RuleMatch& match, Hit& hit) {
  hit.groups = {};
  for (std::size_t i = 1; i < static_cast<std::size_t>(match.group_count); ++i)
    hit.groups[i - 1] = shown(std::string_view(match.groups[i].data(), match.groups[i].size()));
}

LogScanner::LogScanner() { (void)matcher(); }

void LogScanner::scan(std::string_view block) {
  ends_.clear();
  block_ = block;
  matcher().automaton().find_lines(block, ends_);
  const auto count = [&](std::size_t from, std::size_t to, char what) {
    return static_cast<std::uint64_t>(std::count(block.data() + from, block.data() + to, what));
  };
  const bool has_overwrites = block.find('\r') != std::string_view::npos;  // rare, and counting takes time
  std::size_t at = 0;
  for (auto hit = ends_.begin(); at < block.size();) {
    std::size_t begin = at;
    if (!follows_a_block()) {
      while (hit != ends_.end() && *hit <= at) ++hit;
      if (hit == ends_.end()) break;
      begin = std::max(block.rfind('\n', *hit - 1) + 1, at);  // npos + 1 is 0
      line_ += count(at, begin, '\n');
      if (has_overwrites) overwrites_ += count(at, begin, '\r');
    }
    const std::size_t end = block.find('\n', begin);
    line_begin_ = begin;
    scan_line(block.substr(begin, end == std::string_view::npos ? end : end - begin));
    at = std::min(end, block.size());
    if (at < block.size()) {
      ++line_;
      ++at;
    }
  }
  line_ += count(at, block.size(), '\n');
  if (has_overwrites) overwrites_ += count(at, block.size(), '\r');
  remember_end(block);
}

// Keeps the last lines: they may report that the program finished, and show the end without notable lines.
void LogScanner::remember_end(std::string_view block) {
  std::string_view rest = block.substr(block.size() - std::min<std::size_t>(block.size(), 8192));
  const std::size_t blank = rest.find_last_not_of(" \t\r\n") + 1;  // npos + 1 is 0
  std::uint64_t number = line_ - static_cast<std::uint64_t>(std::count(
                                     rest.begin() + static_cast<std::ptrdiff_t>(blank), rest.end(), '\n'));
  rest = rest.substr(0, blank);
  std::deque<NotableLine> ends;
  while (!rest.empty() && ends.size() < kMaxLast) {
    const std::size_t start = rest.rfind('\n') + 1;
    const LogLine line = read_log_line(rest.substr(start));
    if (!trim(line.text).empty()) ends.push_front({number, shown(line.text), line.rank});
    rest = rest.substr(0, start == 0 ? 0 : start - 1);
    --number;
  }
  last_.insert(last_.end(), ends.begin(), ends.end());
  while (last_.size() > kMaxLast) last_.pop_front();
}

void LogScanner::scan_line(std::string_view raw) {
  watched_lines_ -= watched_lines_ > 0 ? 1 : 0;
  // A progress bar overwrites its own line; an error may follow on the same line.
  while (!raw.empty()) {
    const std::size_t end = std::min(raw.find('\r'), raw.size());
    scan_segment(raw.substr(0, end));
    overwrites_ += end < raw.size() ? 1 : 0;
    raw.remove_prefix(std::min(end + 1, raw.size()));
  }
}

void LogScanner::scan_segment(std::string_view raw) {
  const Automaton& automaton = matcher().automaton();
  if (raw.size() > kLongestLogLine) {
    const std::size_t hit = automaton.find_end(raw);
    if (hit == std::string_view::npos) return;
    raw = raw.substr(hit > kLongestLogLine / 4 ? hit - kLongestLogLine / 4 : 0, kLongestLogLine);
  }
  if (!follows_a_block()) {
    found_.clear();
    automaton.find_all(raw, found_);
    if (found_.empty()) return;
    if (has_only_notable_words()) return remember_notable(raw);
  }
  const LogLine line = read_log_line(raw);
  if (table_lines_ > 0) follow_table(line.text);
  follow_attempts(line.text);
  mark_retried(line.text, line.rank);
  const bool is_raised_from = line.text.starts_with("The above exception");
  if (is_raised_from || line.text.starts_with("During handling of")) {
    chained_line_ = line_;
    is_raised_from_ = is_raised_from;
  }
  if (follow_handled_report(line.text, line.rank)) return;
  if (follow_exception(line.text, line.rank) || follow_dump(line.text, line.rank)) return;
  if (complete_from_next(line.text, line.rank)) return;
  if (line.text.find(kWillRetry) != std::string::npos) retried_line_ = line_;
  if (std::any_of(kUnread.begin(), kUnread.end(),
                  [&](std::string_view each) { return line.text.find(each) != std::string::npos; }))
    unread_ = {line_, shown(line.text), line.rank};
  if (reports_nothing_found(line.text)) nothing_ = {line_, shown(line.text), line.rank};
  if (line.text.find(kForwardCall) != std::string::npos && tracebacks_.size() < kMaxTracebacks) {
    tracebacks_[line.rank] = {.begin = line_, .frame = "", .below = {}, .is_of_forward = true};
    return;
  }
  if (line.text.find(kTracebackStart) != std::string::npos) {
    remember_forward(line.rank);
    const std::string above = read_log_line(previous_line()).text;
    // Otherwise the line above may belong to the error before it.
    const bool is_about_this = level_of(above) == LogLevel::warning || result_.hits.empty() ||
                               line_ - result_.hits.back().line > kAfterError;
    const bool is_chained =
        chained_line_ > 0 && line_ - chained_line_ <= (line.rank < 0 ? kAfterOwnChain : kAfterChain);
    if (tracebacks_.size() < kMaxTracebacks)
      tracebacks_[line.rank] = {.begin = line_,
                                .lines = 0,
                                .frame = "",
                                .is_logged = is_announced(above),
                                .is_chained = is_chained,
                                .is_in_handler = is_chained && !is_raised_from_,
                                .is_retried = is_about_this && announces_retry(above),
                                .is_of_thread = above.starts_with(kThread),
                                .indent = line.text.starts_with(' ') ? line.text.find_first_not_of(' ') : 0,
                                .above = reason_above()};
    return;
  }
  if (line.text.find(kTable) != std::string::npos) table_lines_ = kTableLines;
  if (follow_traceback(line.text, line.rank)) return;
  if (line.text.starts_with(kSyntaxError) && match_syntax_error(line.text, line.rank, {.begin = line_}))
    return;
  if (match(line.text, line.rank, nullptr)) return;
  if (!found_.empty()) remember_notable(line.text);
  if (watched_lines_ == 0 || line.is_of_worker) return;
  remember_progress(line_, line.text, line.rank);
  remember_after_error(line.text, line.rank);
}

// Whether an attempt ended there, and whether torchrun gives up.
void LogScanner::follow_attempts(std::string_view text) {
  if (text.find(kGivesUp) != std::string_view::npos) result_.last_giving_up = line_;
  const bool is_end = std::any_of(kAttemptEnds.begin(), kAttemptEnds.end(), [&](std::string_view each) {
    return text.find(each) != std::string_view::npos;
  });
  if (!is_end || result_.attempt_ends.size() == kMaxAttempts) return;
  result_.attempt_ends.push_back(line_);
  watched_lines_ = kAfterAttempt;
}

void LogScanner::remember_progress(std::uint64_t line, std::string_view text, int rank) {
  if (!is_progress(text)) return;
  if (result_.progress.size() == kMaxProgress)
    result_.progress.erase(result_.progress.begin(), result_.progress.begin() + kMaxProgress / 2);
  result_.progress.push_back({line, rank, progress_count(text)});
}

void LogScanner::remember_after_error(std::string_view text, int rank) {
  if (result_.hits.empty()) return;
  const auto kind = after_error_of(text);
  if (!kind) return;
  if (result_.after.size() == kMaxProgress)
    result_.after.erase(result_.after.begin(), result_.after.begin() + kMaxProgress / 2);
  result_.after.push_back({line_, rank, *kind});
}

// Remembers the last progress above a hit that begins at that line, if the same block has it.
void LogScanner::remember_progress_before(std::uint64_t begin) {
  const std::uint64_t known = result_.progress.empty() ? 0 : result_.progress.back().line;
  std::string_view rest = block_.substr(0, line_begin_);
  std::uint64_t number = line_;
  for (std::size_t i = 0; i < kBeforeHit && !rest.empty() && number - 1 > known; ++i) {
    rest.remove_suffix(1);
    --number;
    const std::size_t start = rest.rfind('\n') + 1;  // npos + 1 is 0
    const LogLine line = read_log_line(rest.substr(start));
    if (number < begin && !line.is_of_worker && is_progress(line.text))
      return remember_progress(number, line.text, line.rank);
    rest = rest.substr(0, start);
  }
}

// Completes an end without a reason by the line above it, if that line states one.
void LogScanner::take_reason_above(Hit& hit) const {
  if (hit.rule->cause.find(kReasonAbove) == std::string_view::npos &&
      hit.rule->cause.find(kPlaceAbove) == std::string_view::npos)
    return;
  const bool takes_reason = hit.rule->cause.find(kReasonAbove) != std::string_view::npos;
  std::uint64_t number = line_;
  for (const std::string& text : lines_before(kAboveEnd)) {
    --number;
    if (is_of_launcher(text)) continue;
    if (text.starts_with(kFortranPlace)) hit.groups[3] = shown(text);
    if (!states_reason(text) || !takes_reason) return;
    hit.groups[3] = hit.text = shown(text);
    hit.line = hit.begin = number;
    return;
  }
}

// The line above a traceback that states a reason: the message of a tool that the program ran.
NotableLine LogScanner::reason_above() const {
  std::uint64_t number = line_;
  for (const std::string& text : lines_before(kAboveTraceback)) {
    --number;
    if (is_of_launcher(text)) continue;
    if (level_of(text) == LogLevel::none && states_reason(text)) return {number, shown(text), -1};
  }
  return {};
}

// Completes the failure of a tool by the message that it printed above the traceback.
void LogScanner::take_message_of_tool(const NotableLine& above, Hit& hit) {
  if (above.line == 0 || hit.rule->cause.find(kReasonAbove) == std::string_view::npos) return;
  const std::string_view tool = hit.groups[0];
  if (!above.text.starts_with(tool) && above.line + 1 != hit.begin) return;
  hit.groups[3] = hit.text = above.text;
  hit.line = above.line;
}

// A command that got the words of one name with blanks reports each of them on a line. The first hit then
// names the whole, if a line above has it.
void LogScanner::join_words(Hit& hit) {
  static const RE2 kCommand(R"(^(\w+): )");
  if (result_.hits.empty()) return;
  Hit& before = result_.hits.back();
  std::string command, command_before;
  const bool is_next = before.line + 1 == hit.line && before.rule->name == kUsesFile &&
                       before.rank == hit.rank && RE2::PartialMatch(hit.text, kCommand, &command) &&
                       RE2::PartialMatch(before.text, kCommand, &command_before) && command == command_before;
  if (!is_next) return;
  const std::string whole = format("{} {}", before.groups[0], hit.groups[0]);
  const std::vector<std::string> above = lines_before(kAboveWords);
  const bool is_known = std::any_of(above.begin(), above.end(), [&](const std::string& line) {
    return line.find(whole) != std::string::npos;
  });
  // A first word is no path, and no file with an ending.
  if (!is_known && before.groups[0].find_first_of("./*") != std::string::npos) return;
  const std::string in_words =
      is_known ? format("{}: {} (in words)", command, whole)
               : format("{}: {}, {} (perhaps words)", command, before.groups[0], hit.groups[0]);
  const auto found = find_rule(in_words, found_);
  if (!found) return;
  before.rule = found->rule;
  set_groups(*found, before);
}

// Completes the last hit by a line below it: the text of an exception of C++, the program of mpirun, the
// message of a panic, the place of an error of rustc, keys of a checkpoint.
bool LogScanner::complete_from_next(std::string_view text, int rank) {
  if (result_.hits.empty() || result_.hits.back().rank != rank) return false;
  Hit& hit = result_.hits.back();
  const std::uint64_t distance = line_ - hit.line;
  const std::string_view rule = hit.rule->name;
  constexpr std::uint64_t kBelowMpirun = 6;
  if (rule == "mpirun-cannot-start" && text.starts_with(kExecutable) && distance <= kBelowMpirun) {
    hit.groups[0] = shown(text.substr(kExecutable.size()));
    return true;
  }
  if (rule == "rust-panic" && distance == 1 && hit.groups[0].empty() && !text.starts_with("note: ") &&
      !text.starts_with("stack backtrace")) {
    hit.groups[0] = shown(text);
    return true;
  }
  if (rule == "rustc-error" && distance == 1) {
    hit.groups[2] = shown(trim(text.substr(std::min(text.find("--> ") + 4, text.size()))));
    return true;
  }
  if (rule == kRayActorDied && distance <= kBelowMpirun) {
    static const RE2 kField(R"(^ *(class_name|name|pid): (\S.*)$)");
    std::string name, value;
    if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kField, &name, &value)) return false;
    hit.groups[name == "class_name" ? 0 : name == "name" ? 1 : 2] = shown(value);
    return true;
  }
  if (rule == "tensorflow-not-finite" && distance <= 3 && text.find("[[IteratorGetNext]]") != text.npos) {
    if (const auto of_input =
            find_rule("Detected Infinity or NaN in output 0 of \"IteratorGetNext\"", found_)) {
      hit.rule = of_input->rule;
      return true;
    }
  }
  if (rule == "hub-gated" && distance <= 2 && hit.groups[0].empty() && hit.groups[1].empty()) {
    const auto named = find_rule(text, found_);
    if (!named || named->rule != hit.rule) return false;
    set_groups(*named, hit);
    return true;
  }
  static const RE2 kStandard(R"(only available (?:from|with|in|since) C\+\+(\d\d))");
  static const RE2 kKeys(R"re(^\s*(Missing|Unexpected) key\(s\) in state_dict: "([^"]+)")re");
  const re2::StringPiece subject(text.data(), text.size());
  if (rule == "compile-error" && distance <= kBelowMpirun &&
      RE2::PartialMatch(subject, kStandard, &hit.groups[3])) {
    hit.groups[3] = format("-std=c++{}", hit.groups[3]);
    return true;
  }
  std::string kind, key;
  const bool is_of_keys =
      rule == "state-dict-differs" && distance <= 2 && RE2::PartialMatch(subject, kKeys, &kind, &key);
  const auto of_keys = is_of_keys ? find_rule(text, found_) : std::nullopt;
  if (is_of_keys && (!of_keys || of_keys->rule == hit.rule)) {
    hit.groups[kind == "Missing" ? 1 : 2] = shown(key);
    return true;
  }
  const bool is_of_cpp = rule == "cpp-exception" && text.starts_with(kWhat) && distance <= 2;
  if (!is_of_cpp || find_rule(text, found_)) return false;
  hit.groups[1] = shown(text.substr(kWhat.size()));
  return true;
}

// Takes the last line in which the program reports its failure in its own words, if only lines without
// progress follow.
void LogScanner::take_own_error() {
  if ((result_.end.finished && !result_.end.is_doubtful) || result_.end.last_result) return;
  const NotableLine* usage = nullptr;
  const NotableLine* error = nullptr;
  for (auto each = last_.rbegin(); each != last_.rend() && error == nullptr; ++each) {
    if (reports_own_error(each->text)) error = &*each;
    if (prints_usage(each->text)) usage = &*each;
    if (is_progress(each->text)) break;
  }
  const NotableLine* line = error != nullptr ? error : usage;
  const auto verdict = own_verdict(last_);
  std::string words = line != nullptr ? std::string(own_words(line->text)) : "";
  // A verdict some lines below an error is the end of the program.
  if (verdict && usage == nullptr && (line == nullptr || verdict->line.line > line->line + kAfterError)) {
    line = error = &verdict->line;
    result_.is_own_verdict = true;
    words = verdict->words;
  }
  if (line == nullptr) return;
  if (error != nullptr) add_reason_above(*line, words);
  // A line that a rule knows is a hit, or harmless.
  const auto known = find_rule(own_words(line->text), found_);
  if (known && (known->rule->failure_class == FailureClass::noise || !result_.is_own_verdict)) return;
  const auto found = find_rule(error != nullptr ? "(in its own words)" : "(its usage)", found_);
  if (!found) return;
  Hit hit{
      .rule = found->rule, .line = line->line, .begin = line->line, .text = line->text, .rank = line->rank};
  hit.groups[0] = shown(words);
  result_.own_error = std::move(hit);
}

// Adds the line that reported an empty set, or a file that could not be read, to the words that end the
// program.
void LogScanner::add_reason_above(const NotableLine& end, std::string& words) const {
  for (const NotableLine& reason : {unread_, nothing_}) {
    if (reason.line == 0 || reason.line >= end.line || end.line - reason.line > kMaxLast) continue;
    words += format(" (line {}: {})", reason.line, own_words(reason.text));
    return;
  }
}

// Marks the last error, with its reasons, if the line reports that the program continued in spite of
// it.
void LogScanner::mark_retried(std::string_view text, int rank) {
  if (result_.hits.empty() || text.starts_with(kIgnored)) return;
  // A warning of Python that quotes a traceback ends with the line of code that gave it.
  const bool is_of_warning = text.starts_with("  warnings.warn(");
  if (!is_of_warning && !reports_retry(text) && !reports_fallback(text)) return;
  // A summary of tests: "1 failed, 2 skipped".
  static const RE2 kSummary(R"(\d (?:failed|passed), \d)");
  if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kSummary)) return;
  std::uint64_t until = line_;
  for (auto hit = result_.hits.rbegin(); hit != result_.hits.rend(); ++hit) {
    const bool is_near = hit->rank == rank && until > hit->line &&
                         until - hit->line <= (until == line_ ? kAfterError : kAfterChain);
    if (!is_near) return;
    hit->is_retried = true;
    if (!hit->is_chained) return;
    until = hit->begin;
  }
}

// The line before the current one, if it is in the same block.
std::string_view LogScanner::previous_line() const {
  if (line_begin_ < 2) return {};
  const std::string_view before = block_.substr(0, line_begin_ - 1);
  return before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
}

// Up to `count` lines before the current one in the same block, the nearest first.
std::vector<std::string> LogScanner::lines_before(std::size_t count) const {
  std::vector<std::string> lines;
  std::string_view rest = block_.substr(0, line_begin_);
  while (!rest.empty() && lines.size() < count) {
    rest.remove_suffix(1);
    const std::size_t start = rest.rfind('\n') + 1;  // npos + 1 is 0
    lines.push_back(read_log_line(rest.substr(start)).text);
    rest = rest.substr(0, start);
  }
  return lines;
}

// The rank after "Root Cause (first observed failure)" in torchrun's table.
void LogScanner::follow_table(std::string_view text) {
  static const RE2 kRank(R"(^\s*rank\s*: (\d{1,6}) \()");
  --table_lines_;
  int rank = -1;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kRank, &rank)) return;
  if (!result_.first_rank) result_.first_rank = rank;
  table_lines_ = 0;
}

// Applies the first matching rule. True if one matches.
bool LogScanner::match(std::string_view text, int rank, const Traceback* traceback) {
  const auto match = find_rule(text, found_);
  if (!match) return false;
  if (std::find(kFailedEnds.begin(), kFailedEnds.end(), match->rule->name) != kFailedEnds.end())
    result_.last_failed_end = line_;
  if (match->rule->name == kTaskExitCode) remember_task_end(text);
  if (match->rule->failure_class == FailureClass::noise) return true;
  Hit hit{.rule = match->rule,
          .line = traceback && traceback->line > 0 ? traceback->line : line_,
          .begin = traceback ? traceback->begin : line_,
          .overwrites = overwrites_,
          .text = shown(traceback ? text.substr(0, text.rfind(" (below ")) : text),
          .groups = {},
          .frame = traceback ? traceback->frame : "",
          .rank = rank >= 0 ? rank : rank_named_in(text),
          .time = time_of(text),
          .is_logged = traceback && traceback->is_logged,
          .is_chained = traceback && traceback->is_chained,
          .is_in_handler = traceback && traceback->is_in_handler,
          .level = traceback ? LogLevel::none : level_of(text),
          .is_fallback = reports_fallback(text),
          .is_retried = (traceback ? traceback->is_retried : reports_retry(text)) ||
                        (retried_line_ > 0 && line_ - retried_line_ <= kAfterWillRetry),
          .is_of_thread = traceback && traceback->is_of_thread};
  if (!traceback && is_exception(text)) {
    const std::string above = read_log_line(previous_line()).text;
    hit.is_fallback = hit.is_fallback || reports_fallback(above);
  }
  set_groups(*match, hit);
  if (traceback)
    take_message_of_tool(traceback->above, hit);
  else
    take_reason_above(hit);
  if (hit.rule->name == kUsesFile) join_words(hit);
  if (hit.rank < 0) take_rank_above(hit);
  const bool is_dump = hit.rule->name == kDumpOfHang || hit.rule->name == kDumpOfCrash ||
                       hit.rule->name == kDumpOnSignal || hit.rule->name.starts_with(kSanitizer);
  if (is_dump && dumps_.size() < kMaxTracebacks)
    dumps_.insert_or_assign(rank, OpenDump{.hit = std::move(hit), .lines = 0, .below = {}});
  else
    keep(std::move(hit));
  return true;
}

// The exceptions that the outer one was raised from have frames of libraries only if the program called them
// further out.
void LogScanner::name_frame_in_chain(const Hit& outer) {
  std::uint64_t until = outer.begin;
  for (auto hit = result_.hits.rbegin(); hit != result_.hits.rend(); ++hit) {
    if (hit->rank != outer.rank || hit->line > until || until - hit->line > kAfterChain) return;
    if (hit->frame.empty()) hit->outer_frame = outer.frame;
    if (!hit->is_chained) return;
    until = hit->begin;
  }
}

void LogScanner::keep(Hit hit) {
  if (hit.is_chained && !hit.frame.empty()) name_frame_in_chain(hit);
  if (hit.is_chained && !result_.hits.empty() && result_.hits.back().rank == hit.rank) {
    hit.is_logged = hit.is_logged || result_.hits.back().is_logged;
    hit.is_of_thread = result_.hits.back().is_of_thread;
  }
  if (!result_.survey.is_done) survey_ranks(hit);
  watched_lines_ = std::max(watched_lines_, kAfterHit);
  const std::uint64_t count = ++counts_[hit.rule];
  if (count <= kFirstWithProgress) remember_progress_before(hit.begin);
  if (count <= kFirstOfRule) {
    result_.hits.push_back(std::move(hit));
    return;
  }
  std::deque<Hit>& latest = latest_[hit.rule];
  latest.push_back(std::move(hit));
  if (latest.size() <= kLatestOfRule) return;
  latest.pop_front();
  ++result_.left_out;
}

// Whether the last line has no keyword of a rule and begins no multi-line block.
bool LogScanner::has_only_notable_words() const {
  const std::size_t first = matcher().first_other();
  return std::all_of(found_.begin(), found_.end(), [&](std::uint16_t word) {
    return word >= first && word < first + kNotableWords.size();
  });
}

void LogScanner::remember_notable(std::string_view text) {
  const std::size_t first = matcher().first_other();
  if (std::none_of(found_.begin(), found_.end(), [&](auto word) { return word >= first; })) return;
  if (notable_.size() < kMaxNotable) {
    notable_.push_back({line_, std::string(text.substr(0, kLongestNotable))});
    return;
  }
  // Reuses the memory of the oldest line: a log may have millions of such lines.
  std::rotate(notable_.begin(), notable_.begin() + 1, notable_.end());
  notable_.back().line = line_;
  notable_.back().text.assign(text.substr(0, kLongestNotable));
}

// A loss that is not a number for a few steps only, or long ago, is no finding.
void LogScanner::drop_passing_nan() {
  const auto is_nan = [](const Hit& hit) { return hit.rule->name == kLossIsNan; };
  std::vector<Hit>& hits = result_.hits;
  const auto last = std::find_if(hits.rbegin(), hits.rend(), is_nan);
  const auto count = static_cast<std::uint64_t>(std::count_if(hits.begin(), hits.end(), is_nan));
  if (last == hits.rend() ||
      (count >= std::min(kManyNan, result_.lines) && result_.lines - last->line <= kAfterNan))
    return;
  std::erase_if(hits, is_nan);
}

ScanResult LogScanner::finish() {
  while (!exceptions_.empty()) close_exception(exceptions_.begin());
  while (!dumps_.empty()) close_dump(dumps_.begin());
  for (auto& [rule, hits] : latest_) {
    for (Hit& hit : hits) result_.hits.push_back(std::move(hit));
  }
  std::stable_sort(result_.hits.begin(), result_.hits.end(),
                   [](const Hit& a, const Hit& b) { return a.line < b.line; });
  result_.lines = line_ - 1;
  drop_passing_nan();
  result_.overwrites = overwrites_;
  result_.end = end_of_log(last_);
  if (!last_.empty()) result_.last = last_.back();
  take_own_error();
  // The notable lines, the first lines of boxes, and the last lines if there are too few.
  std::vector<NotableLine> lines(notable_.begin(), notable_.end());
  for (std::size_t i = 1; i < last_.size() && lines.size() < kMaxNotable; ++i) {
    if (is_rule_of_box(last_[i - 1].text) && !is_rule_of_box(last_[i].text) && !is_noise(last_[i].text))
      lines.push_back(last_[i]);
  }
  for (auto each = last_.rbegin(); each != last_.rend() && lines.size() < 3; ++each) {
    if (is_noise(each->text) || is_rule_of_box(each->text)) continue;
    const bool is_known = std::any_of(lines.begin(), lines.end(),
                                      [&](const NotableLine& line) { return line.line == each->line; });
    if (!is_known) lines.push_back(*each);
  }
  for (NotableLine& line : lines) line.text = shown(read_log_line(line.text).text);
  std::sort(lines.begin(), lines.end(),
            [](const NotableLine& a, const NotableLine& b) { return a.line < b.line; });
  result_.notable = std::move(lines);
  return std::move(result_);
}

}  // namespace stoker::diagnose
