// The part of LogScanner for lines about ranks: what they printed last, and how launchers report their end.
#include "diagnose/scan_ranks.h"

#include <algorithm>
#include <map>
#include <utility>

#include <re2/re2.h>

#include "diagnose/frames.h"
#include "diagnose/line_signs.h"
#include "diagnose/log_line.h"
#include "diagnose/matches.h"
#include "diagnose/scan.h"
#include "diagnose/scan_blocks.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kSurveyedLines = 4000;
constexpr std::size_t kLinesPerRank = 4;
constexpr std::size_t kMaxRanks = 4096;
constexpr std::size_t kMaxTaskEnds = 64;
// Maximum of further lines of an exception's message.
constexpr std::size_t kAfterException = 3;
constexpr std::size_t kHeadOfLine = 80;
constexpr std::size_t kBanner = 8;

// The rank after the time in a line: "10:03:11 | rank2 | INFO |".
int rank_in_head(std::string_view text) {
  static const RE2 kRank(R"((?i)(?:^|[\s\[(|<])(?:(\w+)[ _-])?rank[ =:#]{0,2}(\d{1,6})(?:$|[\]\s:|)>,]))");
  std::string before, number;
  const std::string_view head = text.substr(0, kHeadOfLine);
  if (!RE2::PartialMatch(re2::StringPiece(head.data(), head.size()), kRank, &before, &number)) return -1;
  // "local rank 0", "waits for rank 3".
  static const RE2 kLevel(R"((?i)^(?:debug|info|warning|error|critical|global|)$)");
  if (!matches(before, kLevel)) return -1;
  std::int64_t rank = -1;
  return parse_number(number, &rank) ? static_cast<int>(rank) : -1;
}

int world_size_in(std::string_view text) {
  static const RE2 kSize(R"((?i)\b(?:num_processes|world[_ ]size|nranks|num_tasks)\b\W{1,3}(\d{1,6})\b)");
  int size = 0;
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kSize, &size) ? size : 0;
}

// Whether the line is an exception that was printed without its traceback, and none of a connection.
bool is_bare_exception(std::string_view text) {
  static const RE2 kException(R"(^(?:[a-z]\w*\.)+\w*(?:Error|Exception): \S)");
  static const RE2 kOfPeer(
      R"((?i)torch\.distributed|c10d|gloo|nccl|connection|timed? ?out|broken pipe|EOF|Dist\w+Error)");
  return matches(text, kException) && !matches(text, kOfPeer);
}

}  // namespace

// At the first line about a lost or missing peer: what each rank printed before it in the same block. A rank
// that printed an exception there, and then nothing more, has ended by it.
void LogScanner::survey_ranks(const Hit& loss) {
  if (!is_among(loss.rule->name, kLostPeer) && !is_among(loss.rule->name, kNotAllConnected)) return;
  RankSurvey& survey = result_.survey;
  survey.is_done = true;
  std::string_view rest = block_.substr(0, line_begin_);
  std::uint64_t number = line_;
  std::map<int, bool> is_handled;  // by rank: whether a line below reports that it continued
  for (std::size_t i = 0; i < kSurveyedLines && !rest.empty(); ++i) {
    rest.remove_suffix(1);
    --number;
    const std::size_t start = rest.rfind('\n') + 1;  // npos + 1 is 0
    const LogLine line = read_log_line(rest.substr(start));
    rest = rest.substr(0, start);
    if (line.text.empty() || line.is_of_worker) continue;
    if (survey.world_size == 0) survey.world_size = world_size_in(line.text);
    const int rank = line.rank >= 0 ? line.rank : rank_in_head(line.text);
    if (rank < 0 || (survey.last.size() == kMaxRanks && !survey.last.contains(rank))) continue;
    std::vector<std::string>& lines = survey.last[rank];
    if (lines.empty()) survey.line[rank] = number;
    is_handled[rank] = is_handled[rank] || reports_retry(line.text) || reports_fallback(line.text);
    if (lines.size() < kAfterException && rank != loss.rank && !is_handled[rank] &&
        is_bare_exception(line.text) && level_of(line.text) == LogLevel::none) {
      const bool is_known = std::any_of(result_.hits.begin(), result_.hits.end(),
                                        [&](const Hit& hit) { return hit.line == number; });
      if (!is_known) keep_bare_exception(number, line.text, rank);
    }
    if (lines.size() < kLinesPerRank) lines.push_back(shown(line.text));
  }
}

void LogScanner::keep_bare_exception(std::uint64_t line, std::string_view text, int rank) {
  Hit hit{.rule = &exception_rule(), .line = line, .begin = line, .text = shown(text), .rank = rank};
  hit.groups[0] = shown(text.substr(0, text.find(": ")));
  hit.groups[1] = hit.text;
  result_.hits.push_back(std::move(hit));
}

// The rank that the banner of mpiexec names above the signal: "=   RANK 3 PID 1214 RUNNING AT n2".
void LogScanner::take_rank_above(Hit& hit) const {
  static const RE2 kRank(R"(^=\s+RANK (\d{1,6}) PID \d+ RUNNING AT )");
  static const RE2 kTask(R"(\b(?:task|rank|process) (\d{1,6}))");
  if (hit.rule->name == kTaskSignal) (void)RE2::PartialMatch(hit.text, kTask, &hit.rank);
  if (hit.rule->name != kMpiCrashed && hit.rule->name != kMpichCrashed) return;
  for (const std::string& text : lines_above().nearest(kBanner)) {
    if (RE2::PartialMatch(text, kRank, &hit.rank)) return;
  }
}

void LogScanner::remember_task_end(std::string_view text) {
  static const RE2 kTask(R"(\b(?:task|rank) (\d{1,6}): )");
  if (result_.task_ends.size() == kMaxTaskEnds) return;
  TaskExit end{.line = line_, .text = shown(text)};
  (void)RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kTask, &end.task);
  result_.task_ends.push_back(std::move(end));
}

}  // namespace stoker::diagnose
