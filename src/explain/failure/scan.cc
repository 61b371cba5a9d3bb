#include "explain/failure/scan.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>

#include <re2/re2.h>

#include "base/status.h"
#include "base/text.h"
#include "explain/failure/automaton.h"
#include "explain/failure/log_line.h"

namespace stoker::explain {
namespace {

constexpr std::uint64_t kFirstOfRule = 64;
constexpr std::size_t kLatestOfRule = 192;
constexpr std::size_t kMostTracebacks = 4096;
constexpr std::uint64_t kLongestTraceback = 400;
constexpr int kTableLines = 16;
constexpr std::size_t kMostTelling = 3;
constexpr std::size_t kShown = 300;
constexpr std::size_t kLongestTold = 600;  // with what is taken out before it is shown

// What begins something that goes on over several lines.
constexpr std::string_view kTraceback = "Traceback (most recent call last)";
constexpr std::string_view kTable = "Root Cause (first observed failure)";
// A line with one of these says more than most, where no rule knows it.
constexpr std::array<std::string_view, 18> kTelling = {
    "rror",   "ERROR",  "fatal",   "Fatal",  "FATAL", "bort",     "illed", "ailed",   "FAILED",
    "annot ", "denied", "refused", "dumped", "xcept", "imed out", "panic", "No such", "not found"};

// A rule's pattern, compiled when a line has one of its words: few of all are needed for one log.
class LazyPattern {
 public:
  explicit LazyPattern(std::string_view text) : text_(text) {}

  /// Null where a word is enough.
  const RE2* get() {
    if (text_.empty()) return nullptr;
    std::call_once(once_, [this] { compiled_ = std::make_unique<RE2>(std::string(text_)); });
    CHECK(compiled_->ok());
    return compiled_.get();
  }

 private:
  const std::string_view text_;
  std::once_flag once_;
  std::unique_ptr<RE2> compiled_;
};

// All rules, with the filter before them. The table's names live as long as the program.
struct Compiled {
  std::vector<std::string_view> words;
  std::vector<std::vector<std::uint16_t>> rules_of;  // by word: numbers of rules, in their order
  std::deque<LazyPattern> patterns;                  // by rule
  std::unique_ptr<Automaton> automaton;
  std::size_t first_telling = 0;

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
  all.first_telling = all.words.size();
  for (const std::string_view word : kTelling) {
    all.words.push_back(word);
    all.rules_of.emplace_back();
  }
  all.words.push_back(kTraceback);
  all.rules_of.emplace_back();
  all.words.push_back(kTable);
  all.rules_of.emplace_back();
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

// "train.py:88" of `  File "/users/ada/train.py", line 88, in main`, or of rich's box; "" for any other line.
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

bool is_exception(std::string_view text) {
  static const RE2 kException(
      R"(^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Expired|Timeout|Empty|Full|Iteration|Failure)\b|)"
      R"(^(?:\w+\.)+[A-Z]\w*:)");
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kException);
}

}  // namespace

Scan::Scan() { (void)compiled(); }

void Scan::take(std::string_view block) {
  ends_.clear();
  compiled().automaton->find_lines(block, ends_);
  const auto count = [&](std::size_t from, std::size_t to, char what) {
    return static_cast<std::uint64_t>(std::count(block.data() + from, block.data() + to, what));
  };
  const bool is_drawn = block.find('\r') != std::string_view::npos;  // few are, and counting takes time
  std::size_t at = 0;
  for (auto hit = ends_.begin(); at < block.size();) {
    std::size_t begin = at;
    if (tracebacks_.empty() && table_lines_ == 0) {
      while (hit != ends_.end() && *hit <= at) ++hit;
      if (hit == ends_.end()) break;
      begin = std::max(block.rfind('\n', *hit - 1) + 1, at);  // npos + 1 is 0
      line_ += count(at, begin, '\n');
      if (is_drawn) drawn_ += count(at, begin, '\r');
    }
    const std::size_t end = block.find('\n', begin);
    take_line(block.substr(begin, end == std::string_view::npos ? end : end - begin));
    at = std::min(end, block.size());
    if (at < block.size()) {
      ++line_;
      ++at;
    }
  }
  line_ += count(at, block.size(), '\n');
  if (is_drawn) drawn_ += count(at, block.size(), '\r');
  remember_end(block);
}

// The last lines, in case that nothing else tells anything.
void Scan::remember_end(std::string_view block) {
  std::string_view rest = block.substr(block.size() - std::min<std::size_t>(block.size(), 8192));
  const std::size_t blank = rest.find_last_not_of(" \t\r\n") + 1;  // npos + 1 is 0
  std::uint64_t number = line_ - static_cast<std::uint64_t>(std::count(
                                     rest.begin() + static_cast<std::ptrdiff_t>(blank), rest.end(), '\n'));
  rest = rest.substr(0, blank);
  std::deque<TellingLine> ends;
  while (!rest.empty() && ends.size() < 3) {
    const std::size_t start = rest.rfind('\n') + 1;
    const std::string text = shown(read_log_line(rest.substr(start)).text);
    if (!text.empty()) ends.push_front({number, text});
    rest = rest.substr(0, start == 0 ? 0 : start - 1);
    --number;
  }
  last_.insert(last_.end(), ends.begin(), ends.end());
  while (last_.size() > 3) last_.pop_front();
}

void Scan::take_line(std::string_view raw) {
  // A progress bar draws over its own line; what fails then stands behind it.
  while (!raw.empty()) {
    const std::size_t end = std::min(raw.find('\r'), raw.size());
    take_segment(raw.substr(0, end));
    drawn_ += end < raw.size() ? 1 : 0;
    raw.remove_prefix(std::min(end + 1, raw.size()));
  }
}

void Scan::take_segment(std::string_view raw) {
  const Automaton& automaton = *compiled().automaton;
  if (raw.size() > kLongestLogLine) {
    const std::size_t hit = automaton.find_end(raw);
    if (hit == std::string_view::npos) return;
    raw = raw.substr(hit > kLongestLogLine / 4 ? hit - kLongestLogLine / 4 : 0, kLongestLogLine);
  }
  if (tracebacks_.empty() && table_lines_ == 0) {
    found_.clear();
    automaton.find_all(raw, found_);
    if (found_.empty()) return;
    if (is_only_telling()) return remember_telling(raw);
  }
  const LogLine line = read_log_line(raw);
  if (table_lines_ > 0) follow_table(line.text);
  if (line.text.find(kTraceback) != std::string::npos) {
    if (tracebacks_.size() < kMostTracebacks) tracebacks_[line.rank] = {line_, 0, ""};
    return;
  }
  if (line.text.find(kTable) != std::string::npos) table_lines_ = kTableLines;
  if (follow_traceback(line.text, line.rank)) return;
  if (!match(line.text, line.rank, nullptr) && !found_.empty()) remember_telling(line.text);
}

// Whether the line belongs to a traceback of that rank and needs no other look.
bool Scan::follow_traceback(std::string_view text, int rank) {
  for (auto each = tracebacks_.begin(); each != tracebacks_.end();)
    each = ++each->second.lines > kLongestTraceback ? tracebacks_.erase(each) : std::next(each);
  const auto open = tracebacks_.find(rank);
  if (open == tracebacks_.end()) return false;
  // The box is rich's.
  const bool is_inside = text.empty() || text.front() == ' ' || text.front() == '|' ||
                         text.starts_with("│") || text.starts_with("╭") || text.starts_with("╰");
  if (is_inside) {
    if (std::string frame = frame_of(text); !frame.empty()) open->second.frame = std::move(frame);
    return true;
  }
  if (!is_exception(text)) return false;
  const Traceback traceback = open->second;
  tracebacks_.erase(open);
  if (match(text, rank, &traceback)) return true;
  Hit hit{.rule = &exception_rule(),
          .line = line_,
          .begin = traceback.begin,
          .drawn = drawn_,
          .text = shown(text),
          .groups = {},
          .frame = traceback.frame,
          .rank = rank,
          .time = std::nullopt};
  const std::size_t colon = text.find(": ");
  hit.groups[0] = shown(text.substr(0, colon));
  hit.groups[1] = shown(text);
  keep(std::move(hit));
  return true;
}

// The rank behind "Root Cause (first observed failure)" in torchrun's table.
void Scan::follow_table(std::string_view text) {
  static const RE2 kRank(R"(^\s*rank\s*: (\d{1,6}) \()");
  --table_lines_;
  int rank = -1;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kRank, &rank)) return;
  if (!scanned_.first_rank) scanned_.first_rank = rank;
  table_lines_ = 0;
}

// The first rule in the order of the tables that the line fits. True when one does.
bool Scan::match(std::string_view text, int rank, const Traceback* traceback) {
  Compiled& all = compiled();
  found_.clear();
  all.automaton->find_all(text, found_);
  std::vector<std::uint16_t> rules;
  for (const std::uint16_t word : found_)
    rules.insert(rules.end(), all.rules_of[word].begin(), all.rules_of[word].end());
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  for (const std::uint16_t number : rules) {
    const RE2* pattern = all.patterns[number].get();
    std::array<re2::StringPiece, 5> groups;
    const int count = pattern == nullptr ? 0 : std::min(5, pattern->NumberOfCapturingGroups() + 1);
    const re2::StringPiece subject(text.data(), text.size());
    if (pattern != nullptr && !pattern->Match(subject, 0, text.size(), RE2::UNANCHORED, groups.data(), count))
      continue;
    const FailureRule* rule = failure_rules()[number];
    if (rule->weight == Weight::noise) return true;
    Hit hit{.rule = rule,
            .line = line_,
            .begin = traceback ? traceback->begin : line_,
            .drawn = drawn_,
            .text = shown(text),
            .groups = {},
            .frame = traceback ? traceback->frame : "",
            .rank = rank >= 0 ? rank : rank_named_in(text),
            .time = time_of(text)};
    for (std::size_t i = 1; i < groups.size() && static_cast<int>(i) < count; ++i)
      hit.groups[i - 1] = shown(std::string_view(groups[i].data(), groups[i].size()));
    keep(std::move(hit));
    return true;
  }
  return false;
}

void Scan::keep(Hit hit) {
  if (++counts_[hit.rule] <= kFirstOfRule) {
    scanned_.hits.push_back(std::move(hit));
    return;
  }
  std::deque<Hit>& latest = latest_[hit.rule];
  latest.push_back(std::move(hit));
  if (latest.size() <= kLatestOfRule) return;
  latest.pop_front();
  ++scanned_.left_out;
}

// Whether no rule has a word in the line looked at last, and nothing begins with it that goes on.
bool Scan::is_only_telling() const {
  const Compiled& all = compiled();
  return std::all_of(found_.begin(), found_.end(), [&](std::uint16_t word) {
    return word >= all.first_telling && word < all.first_telling + kTelling.size();
  });
}

void Scan::remember_telling(std::string_view text) {
  const Compiled& all = compiled();
  if (std::none_of(found_.begin(), found_.end(), [&](auto word) { return word >= all.first_telling; }))
    return;
  if (telling_.size() < kMostTelling) {
    telling_.push_back({line_, std::string(text.substr(0, kLongestTold))});
    return;
  }
  // The oldest one's memory is used again: a log may have such lines by the million.
  std::rotate(telling_.begin(), telling_.begin() + 1, telling_.end());
  telling_.back().line = line_;
  telling_.back().text.assign(text.substr(0, kLongestTold));
}

Scanned Scan::finish() {
  for (auto& [rule, hits] : latest_) {
    for (Hit& hit : hits) scanned_.hits.push_back(std::move(hit));
  }
  std::stable_sort(scanned_.hits.begin(), scanned_.hits.end(),
                   [](const Hit& a, const Hit& b) { return a.line < b.line; });
  scanned_.lines = line_ - 1;
  scanned_.drawn = drawn_;
  // The telling ones, and where there are too few the last ones of all.
  std::vector<TellingLine> lines(telling_.begin(), telling_.end());
  for (auto each = last_.rbegin(); each != last_.rend() && lines.size() < 3; ++each) {
    const bool is_known = std::any_of(lines.begin(), lines.end(),
                                      [&](const TellingLine& line) { return line.line == each->line; });
    if (!is_known) lines.push_back(*each);
  }
  for (TellingLine& line : lines) line.text = shown(read_log_line(line.text).text);
  std::sort(lines.begin(), lines.end(),
            [](const TellingLine& a, const TellingLine& b) { return a.line < b.line; });
  scanned_.telling = std::move(lines);
  return std::move(scanned_);
}

}  // namespace stoker::explain
