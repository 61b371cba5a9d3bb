#include "diagnose/scan.h"

#include <algorithm>
#include <deque>

#include <re2/re2.h>

#include "diagnose/finality.h"
#include "diagnose/frames.h"
#include "diagnose/hit_context.h"
#include "diagnose/log_line.h"
#include "diagnose/own_error.h"
#include "diagnose/rule_match.h"
#include "diagnose/scan_blocks.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::uint64_t kFirstOfRule = 64;
constexpr std::size_t kLatestOfRule = 192;
constexpr int kTableLines = 16;
constexpr std::size_t kMaxProgress = 4096;
constexpr std::size_t kMaxAttempts = 1024;
// Progress is looked for within this number of lines after a hit, and after the end of an attempt.
constexpr int kAfterHit = 60;
constexpr int kAfterAttempt = 600;
// Lines before a hit in which progress is looked for, for the first hits of a rule.
constexpr std::size_t kBeforeHit = 40;
constexpr std::uint64_t kFirstWithProgress = 8;
constexpr std::size_t kShown = 300;

// The beginning of multi-line blocks.
constexpr std::string_view kTable = "Root Cause (first observed failure)";
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
// Lines from an announced retry to the error.
constexpr std::uint64_t kAfterWillRetry = 40;

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

}  // namespace

std::optional<RuleMatch> find_rule(std::string_view text, std::vector<std::uint16_t>& found) {
  return matcher().find(text, found);
}

std::optional<RuleMatch> find_rule(std::string_view text) {
  std::vector<std::uint16_t> found;
  return find_rule(text, found);
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
  excerpt_.add_block(block, line_);
  // finish() closes it, with the lines above.
  last_block_.assign(has_open_block() ? block : std::string_view());
  block_ = {};
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
  if (!result_.hits.empty() && result_.hits.back().rank == line.rank &&
      complete_from_below(line.text, line_ - result_.hits.back().line, result_.hits.back()))
    return;
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
    begin_traceback(line.text, line.rank);
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
    const std::vector<std::string> above = lines_above().nearest(1);
    hit.is_fallback = hit.is_fallback || (!above.empty() && reports_fallback(above.front()));
  }
  set_groups(*match, hit);
  if (traceback)
    complete_from_message(traceback->message_above, hit);
  else
    complete_from_above(lines_above(), hit);
  if (!result_.hits.empty()) join_words(lines_above(), hit, result_.hits.back());
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
  if (std::any_of(found_.begin(), found_.end(), [&](auto word) { return word >= first; }))
    excerpt_.add_notable(line_, text);
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

// What is still open ends with the log.
void LogScanner::close_open_blocks() {
  const std::uint64_t lines = line_;
  if (!last_block_.empty() && last_block_.back() != '\n') {
    last_block_ += '\n';
    line_ += 1;
  }
  block_ = last_block_;
  line_begin_ = block_.size();
  while (!exceptions_.empty()) close_exception(exceptions_.begin());
  while (!dumps_.empty()) close_dump(dumps_.begin());
  line_ = lines;
}

ScanResult LogScanner::finish() {
  close_open_blocks();
  for (auto& [rule, hits] : latest_) {
    for (Hit& hit : hits) result_.hits.push_back(std::move(hit));
  }
  std::stable_sort(result_.hits.begin(), result_.hits.end(),
                   [](const Hit& a, const Hit& b) { return a.line < b.line; });
  result_.lines = line_ - 1;
  drop_passing_nan();
  result_.overwrites = overwrites_;
  result_.end = end_of_log(excerpt_.last());
  if (!excerpt_.last().empty()) result_.last = excerpt_.last().back();
  const std::array<NotableLine, 2> reasons = {unread_, nothing_};
  if (auto own = find_own_error(excerpt_.last(), result_.end, reasons)) {
    result_.own_error = std::move(own->hit);
    result_.is_own_verdict = own->is_verdict;
  }
  result_.notable = excerpt_.evidence();
  return std::move(result_);
}

}  // namespace stoker::diagnose
