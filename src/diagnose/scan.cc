#include "diagnose/scan.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>

#include <re2/re2.h>

#include "diagnose/automaton.h"
#include "diagnose/log_line.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::uint64_t kFirstOfRule = 64;
constexpr std::size_t kLatestOfRule = 192;
constexpr std::size_t kMaxTracebacks = 4096;
constexpr std::uint64_t kLongestMessage = 400;  // TensorFlow lists the frames of a graph
constexpr std::uint64_t kLongestDump = 200;
constexpr std::uint64_t kLongestTraceback = 5000;  // recursion: 1000 frames of up to four lines
constexpr int kTableLines = 16;
constexpr std::size_t kMaxNotable = 3;
constexpr std::size_t kMaxLast = 24;
constexpr std::size_t kMaxProgress = 4096;
constexpr std::size_t kMaxAttempts = 1024;
// Progress is looked for within this number of lines after a hit, and after the end of an attempt.
constexpr int kAfterHit = 60;
constexpr int kAfterAttempt = 600;
constexpr std::size_t kShown = 300;
constexpr std::size_t kLongestNotable = 600;  // including text that is removed for display

// The beginning of multi-line blocks.
constexpr std::string_view kTraceback = "Traceback (most recent call last)";
constexpr std::string_view kTable = "Root Cause (first observed failure)";
// Reports of exceptions that do not end the program: by Python's logging and Loguru, and by destructors.
constexpr std::string_view kLoggingError = "--- Logging error";
constexpr std::string_view kIgnored = "Exception ignored ";
// Lines after which torchrun or Slurm may start the program again.
constexpr std::array<std::string_view, 4> kAttemptEnds = {"failed (exitcode:", "will restart worker group",
                                                          "DUE TO JOB REQUEUE", "DUE TO PREEMPTION"};
constexpr std::string_view kGivesUp = "ChildFailedError";
constexpr std::string_view kOfRayTask = "RayTaskError(";
// Rules whose frames follow.
constexpr std::string_view kDumpOfHang = "dump-of-hang";
constexpr std::string_view kDumpOfCrash = "dump-of-crash";
// Rules of harmless lines that repeat the failure of a process.
constexpr std::array<std::string_view, 7> kFailedEnds = {
    "torchrun-child-failed", "torchrun-failed", "spawn-wrapper", "spawn-exited",
    "called-process",        "system-exit",     "srun-exit-code"};
// Words of notable lines, for logs without a match.
constexpr std::array<std::string_view, 18> kNotableWords = {
    "rror",   "ERROR",  "fatal",   "Fatal",  "FATAL", "bort",     "illed", "ailed",   "FAILED",
    "annot ", "denied", "refused", "dumped", "xcept", "imed out", "panic", "No such", "not found"};

// A pattern that is compiled on first use: a log needs only a few of them.
class LazyPattern {
 public:
  explicit LazyPattern(std::string_view text) : text_(text) {}

  /// Null if a keyword is sufficient.
  const RE2* get() {
    if (text_.empty()) return nullptr;
    std::call_once(once_, [this] { compiled_ = std::make_unique<RE2>(std::string(text_)); });
    STOKER_CHECK(compiled_->ok());
    return compiled_.get();
  }

 private:
  const std::string_view text_;
  std::once_flag once_;
  std::unique_ptr<RE2> compiled_;
};

// All rules with their filter. Names in the table have static storage.
struct Compiled {
  std::vector<std::string_view> words;
  std::vector<std::vector<std::uint16_t>> rules_of;  // by keyword: indices of rules, in order
  std::deque<LazyPattern> patterns;                  // by rule
  std::unique_ptr<Automaton> automaton;
  std::size_t first_notable = 0;

  void add(std::string_view word, std::size_t rule) {
    auto at = std::find(words.begin(), words.end(), word);
    if (at == words.end()) {
      words.push_back(word);
      rules_of.emplace_back();
      at = words.end() - 1;
    }
    rules_of[static_cast<std::size_t>(at - words.begin())].push_back(static_cast<std::uint16_t>(rule));
  }
};

void compile(Compiled& all) {
  const auto& rules = failure_rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    for (const std::string_view word : split(rules[i]->words, '\n')) all.add(word, i);
    all.patterns.emplace_back(rules[i]->pattern);
  }
  all.first_notable = all.words.size();
  for (const std::string_view word : kNotableWords) {
    all.words.push_back(word);
    all.rules_of.emplace_back();
  }
  const auto add_begin = [&](std::string_view begin) {
    all.words.push_back(begin);
    all.rules_of.emplace_back();
  };
  for (const std::string_view begin : {kTraceback, kTable, kLoggingError, kIgnored}) add_begin(begin);
  for (const std::string_view end : kAttemptEnds) add_begin(end);
  all.automaton = std::make_unique<Automaton>(all.words);
}

Compiled& compiled() {
  static Compiled all;
  static std::once_flag once;
  std::call_once(once, [] { compile(all); });
  return all;
}

const FailureRule& exception_rule() {
  static const FailureRule& rule =
      **std::find_if(failure_rules().begin(), failure_rules().end(),
                     [](const FailureRule* each) { return each->name == "python-exception"; });
  return rule;
}

std::string shown(std::string_view text) { return printable(trim(text).substr(0, kShown)); }

bool is_of_library(std::string_view file) {
  for (const std::string_view part :
       {"site-packages/", "dist-packages/", "/lib/python", "<frozen", "<string>", "/torch/", "/bin/"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// "train.py:88" of `  File "/users/ada/train.py", line 88, in main`, of a dump or a rich traceback; "" for
// any other line.
std::string frame_of(std::string_view text) {
  static const RE2 kFrame(R"re(^\s*File "([^"]+)", line (\d+))re");
  static const RE2 kBoxed(R"(^│ (\S+\.py):(\d+) in )");
  const re2::StringPiece subject(text.data(), text.size());
  std::string file, line;
  if (!RE2::PartialMatch(subject, kFrame, &file, &line) && !RE2::PartialMatch(subject, kBoxed, &file, &line))
    return "";
  if (is_of_library(file)) return "";
  return printable(file.substr(file.rfind('/') + 1)) + ":" + line;
}

// The part of torch that a frame belongs to, in whose traceback an unspecific exception has a known reason.
std::string_view part_of_torch(std::string_view text) {
  if (text.find("PyTorchFileReader(") != std::string_view::npos) return "torch.load";
  if (text.find("torch/utils/data/") != std::string_view::npos) return "torch.utils.data";
  return {};
}

struct RuleMatch {
  const FailureRule* rule = nullptr;
  std::array<re2::StringPiece, 5> groups;
  int group_count = 0;  // with the whole match
};

// The first matching rule. `found` receives the keywords of the line.
std::optional<RuleMatch> find_rule(std::string_view text, std::vector<std::uint16_t>& found) {
  Compiled& all = compiled();
  found.clear();
  all.automaton->find_all(text, found);
  std::vector<std::uint16_t> rules;
  for (const std::uint16_t word : found)
    rules.insert(rules.end(), all.rules_of[word].begin(), all.rules_of[word].end());
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  for (const std::uint16_t number : rules) {
    const RE2* pattern = all.patterns[number].get();
    RuleMatch match{.rule = failure_rules()[number], .groups = {}, .group_count = 0};
    if (pattern == nullptr) return match;
    match.group_count = std::min(5, pattern->NumberOfCapturingGroups() + 1);
    const re2::StringPiece subject(text.data(), text.size());
    if (pattern->Match(subject, 0, text.size(), RE2::UNANCHORED, match.groups.data(), match.group_count))
      return match;
  }
  return std::nullopt;
}

bool is_noise(std::string_view line) {
  std::vector<std::uint16_t> found;
  const auto match = find_rule(line, found);
  return match && match->rule->failure_class == FailureClass::noise;
}

bool is_exception(std::string_view text) {
  static const RE2 kException(
      R"(^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Expired|Timeout|Empty|Full|Iteration|Failure)\b|)"
      R"(^(?:\w+\.)+[A-Z]\w*:)");
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kException);
}

}  // namespace

LogScanner::LogScanner() { (void)compiled(); }

void LogScanner::scan(std::string_view block) {
  ends_.clear();
  block_ = block;
  compiled().automaton->find_lines(block, ends_);
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
    const std::string text = shown(read_log_line(rest.substr(start)).text);
    if (!text.empty()) ends.push_front({number, text});
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
  const Automaton& automaton = *compiled().automaton;
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
  if (follow_handled_report(line.text, line.rank)) return;
  if (follow_exception(line.text, line.rank) || follow_dump(line.text, line.rank)) return;
  if (line.text.find(kTraceback) != std::string::npos) {
    if (tracebacks_.size() < kMaxTracebacks)
      tracebacks_[line.rank] = {
          .begin = line_,
          .lines = 0,
          .frame = "",
          .is_logged = level_of(read_log_line(previous_line()).text) == LogLevel::warning};
    return;
  }
  if (line.text.find(kTable) != std::string::npos) table_lines_ = kTableLines;
  if (follow_traceback(line.text, line.rank)) return;
  if (match(line.text, line.rank, nullptr)) return;
  if (!found_.empty()) remember_notable(line.text);
  if (watched_lines_ > 0 && !line.is_of_worker) remember_progress(line.text, line.rank);
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

void LogScanner::remember_progress(std::string_view text, int rank) {
  if (!is_progress(text)) return;
  if (result_.progress.size() == kMaxProgress)
    result_.progress.erase(result_.progress.begin(), result_.progress.begin() + kMaxProgress / 2);
  result_.progress.push_back({line_, rank});
}

// The line before the current one, if it is in the same block.
std::string_view LogScanner::previous_line() const {
  if (line_begin_ < 2) return {};
  const std::string_view before = block_.substr(0, line_begin_ - 1);
  return before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
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
  if (text.find(kTraceback) != std::string::npos) {
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

// Whether the line belongs to a traceback of that rank and needs no matching.
bool LogScanner::follow_traceback(std::string_view text, int rank) {
  for (auto each = tracebacks_.begin(); each != tracebacks_.end();)
    each = ++each->second.lines > kLongestTraceback ? tracebacks_.erase(each) : std::next(each);
  const auto open = tracebacks_.find(rank);
  if (open == tracebacks_.end()) return false;
  // The box comes from rich.
  const bool is_inside = text.empty() || text.front() == ' ' || text.front() == '|' ||
                         text.starts_with("│") || text.starts_with("╭") || text.starts_with("╰");
  if (is_inside) {
    if (std::string frame = frame_of(text); !frame.empty()) open->second.frame = std::move(frame);
    if (const std::string_view part = part_of_torch(text); !part.empty()) open->second.below = part;
    return true;
  }
  if (!is_exception(text)) return false;
  const Traceback traceback = open->second;
  tracebacks_.erase(open);
  // The traceback of the task and its exception follow.
  if (text.find(kOfRayTask) != std::string_view::npos)
    tracebacks_[rank] = {
        .begin = line_, .lines = 0, .frame = "", .is_logged = traceback.is_logged, .below = {}};
  return close_traceback(text, rank, traceback);
}

// Keeps the exception that ends a traceback.
bool LogScanner::close_traceback(std::string_view text, int rank, const Traceback& traceback) {
  const std::string below = format("{} (below {})", text, traceback.below);
  const auto specific = traceback.below.empty() ? std::nullopt : find_rule(below, found_);
  if (specific && specific->rule->words.starts_with("(below ")) return match(below, rank, &traceback);
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
          .is_logged = traceback.is_logged};
  const std::size_t colon = text.find(": ");
  hit.groups[0] = shown(text.substr(0, colon));
  hit.groups[1] = shown(text);
  if (ExceptionMessage::is_continued(text) && exceptions_.size() < kMaxTracebacks)
    exceptions_.insert_or_assign(rank, OpenException{std::move(hit), ExceptionMessage(text), 0});
  else
    keep(std::move(hit));
  return true;
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
  const bool is_over = text.find(kTraceback) != std::string_view::npos || level_of(text) != LogLevel::none ||
                       text.starts_with("The above exception") || text.starts_with("During handling") ||
                       is_progress(text);
  if (is_over) {
    close_exception(open);
    return false;
  }
  if (match(text, rank, nullptr)) return true;
  const bool had_reason = open->second.message.has_reason();
  const bool wants_more = open->second.message.add(text);
  if (!had_reason && open->second.message.has_reason()) {
    open->second.hit.line = line_;
    open->second.hit.text = shown(text);
  }
  if (!wants_more) close_exception(open);
  return true;
}

void LogScanner::close_exception(std::map<int, OpenException>::iterator open) {
  Hit hit = std::move(open->second.hit);
  hit.groups[1] = shown(open->second.message.text());
  exceptions_.erase(open);
  keep(std::move(hit));
}

// Whether the line belongs to a dump of stacks, the newest frame first.
bool LogScanner::follow_dump(std::string_view text, int rank) {
  for (auto each = dumps_.begin(); each != dumps_.end();) {
    const auto next = std::next(each);
    if (++each->second.lines > kLongestDump) {
      keep(std::move(each->second.hit));
      dumps_.erase(each);
    }
    each = next;
  }
  const auto open = dumps_.find(rank);
  if (open == dumps_.end()) return false;
  const bool is_inside = text.empty() || text.starts_with("  File ") || text.starts_with("  ...") ||
                         text.starts_with("Thread 0x") || text.starts_with("Current thread 0x");
  std::string frame = is_inside ? frame_of(text) : "";
  if (is_inside && frame.empty()) return true;
  open->second.hit.frame = std::move(frame);
  keep(std::move(open->second.hit));
  dumps_.erase(open);
  return is_inside;
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
  if (match->rule->failure_class == FailureClass::noise) {
    if (std::find(kFailedEnds.begin(), kFailedEnds.end(), match->rule->name) != kFailedEnds.end())
      result_.last_failed_end = line_;
    return true;
  }
  Hit hit{.rule = match->rule,
          .line = line_,
          .begin = traceback ? traceback->begin : line_,
          .overwrites = overwrites_,
          .text = shown(traceback ? text.substr(0, text.rfind(" (below ")) : text),
          .groups = {},
          .frame = traceback ? traceback->frame : "",
          .rank = rank >= 0 ? rank : rank_named_in(text),
          .time = time_of(text),
          .is_logged = traceback && traceback->is_logged,
          .level = traceback ? LogLevel::none : level_of(text),
          .is_fallback = reports_fallback(text)};
  for (std::size_t i = 1; i < static_cast<std::size_t>(match->group_count); ++i)
    hit.groups[i - 1] = shown(std::string_view(match->groups[i].data(), match->groups[i].size()));
  const bool is_dump = hit.rule->name == kDumpOfHang || hit.rule->name == kDumpOfCrash;
  if (is_dump && dumps_.size() < kMaxTracebacks)
    dumps_.insert_or_assign(rank, OpenDump{std::move(hit), 0});
  else
    keep(std::move(hit));
  return true;
}

void LogScanner::keep(Hit hit) {
  watched_lines_ = std::max(watched_lines_, kAfterHit);
  if (++counts_[hit.rule] <= kFirstOfRule) {
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
  const Compiled& all = compiled();
  return std::all_of(found_.begin(), found_.end(), [&](std::uint16_t word) {
    return word >= all.first_notable && word < all.first_notable + kNotableWords.size();
  });
}

void LogScanner::remember_notable(std::string_view text) {
  const Compiled& all = compiled();
  if (std::none_of(found_.begin(), found_.end(), [&](auto word) { return word >= all.first_notable; }))
    return;
  if (notable_.size() < kMaxNotable) {
    notable_.push_back({line_, std::string(text.substr(0, kLongestNotable))});
    return;
  }
  // Reuses the memory of the oldest line: a log may have millions of such lines.
  std::rotate(notable_.begin(), notable_.begin() + 1, notable_.end());
  notable_.back().line = line_;
  notable_.back().text.assign(text.substr(0, kLongestNotable));
}

// Whether one of the last lines reports that the program finished, and no later one that it continued or
// failed.
void LogScanner::find_finish() {
  for (auto each = last_.rbegin(); each != last_.rend(); ++each) {
    if (reports_failed_end(each->text)) return;
    if (reports_success(each->text)) {
      result_.finished = each->line;
      result_.is_finish_logged = level_of(each->text) != LogLevel::none;
      return;
    }
    if (is_progress(each->text)) return;
  }
}

ScanResult LogScanner::finish() {
  while (!exceptions_.empty()) close_exception(exceptions_.begin());
  for (auto& [rank, open] : dumps_) keep(std::move(open.hit));
  for (auto& [rule, hits] : latest_) {
    for (Hit& hit : hits) result_.hits.push_back(std::move(hit));
  }
  std::stable_sort(result_.hits.begin(), result_.hits.end(),
                   [](const Hit& a, const Hit& b) { return a.line < b.line; });
  result_.lines = line_ - 1;
  result_.overwrites = overwrites_;
  find_finish();
  // The notable lines, and the last lines if there are too few.
  std::vector<NotableLine> lines(notable_.begin(), notable_.end());
  for (auto each = last_.rbegin(); each != last_.rend() && lines.size() < 3; ++each) {
    if (is_noise(each->text)) continue;
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
