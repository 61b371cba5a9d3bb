#include "diagnose/log_line.h"

#include <algorithm>
#include <array>

#include <re2/re2.h>

#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// Length of the terminal control sequence at the start of `text`: "\x1b[31m", "\x1b]0;title\a", "\x1b(B".
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  std::size_t end = 2;
  if (text[1] == '[') {
    while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
    return std::min(end + 1, text.size());
  }
  if (text[1] == ']' || text[1] == 'P' || text[1] == '_' || text[1] == '^') {
    while (end < text.size() && text[end] != '\a' && text[end] != '\x1b') ++end;
    return std::min(end + 1, text.size());
  }
  return text[1] == '(' || text[1] == ')' ? std::min<std::size_t>(3, text.size()) : 2;
}

std::string without_escapes(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    if (raw[at] == '\x1b') {
      at += escape_length(raw.substr(at));
    } else {
      const char c = raw[at++];
      if (c != '\0') text.push_back(c == '\t' ? ' ' : c);
    }
  }
  return text;
}

// Whether a value of R follows "[1] ", which then is no rank.
bool is_number_of_r(std::string_view rest) {
  static const RE2 kValue(R"(^ *(?:["'\d.<-]|(?:TRUE|FALSE|NULL|NA|NaN|Inf)\b))");
  return RE2::PartialMatch(piece(rest), kValue);
}

// Line prefixes of launchers: torchrun "[rank3]: " and "[default3]:", mpirun "[1,3]<stderr>:", srun -l "3: ",
// mpiexec -prepend-rank "[3] ", Ray "(Worker pid=7, ip=10.0.0.1) ".
bool strip_prefix(std::string_view& text, int& rank) {
  static const RE2 kPrefix(
      R"(^(?:\[rank(?:: )?(\d{1,6})\]:? ?|\[[a-z_]{1,20}(\d{1,6})\]: ?|\[\d+,(\d{1,6})\]<std(?:out|err)>: ?|)"
      R"( {0,5}(\d{1,6}): |\[(\d{1,6})\] |\([A-Za-z_:<>.]{1,60} (?:rank=\d+ )?pid=\d+(?:, ip=[\d.]+)?\) ))");
  std::array<re2::StringPiece, 6> groups;
  if (!kPrefix.Match(piece(text), 0, text.size(), RE2::ANCHOR_START, groups.data(), 6)) return false;
  if (!groups[5].empty() && is_number_of_r(text.substr(groups[0].size()))) return false;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    std::int64_t number = 0;
    if (!groups[i].empty() && parse_number(std::string_view(groups[i].data(), groups[i].size()), &number))
      rank = static_cast<int>(number);
  }
  text.remove_prefix(groups[0].size());
  return true;
}

double comparable_seconds(int month, int day, std::string_view clock, std::string_view fraction) {
  const auto two = [&](std::size_t at) { return (clock[at] - '0') * 10 + (clock[at + 1] - '0'); };
  double seconds = ((month * 31.0 + day) * 24 + two(0)) * 3600 + two(3) * 60 + two(6);
  double weight = 0.1;
  for (const char c : fraction) {
    seconds += (c - '0') * weight;
    weight /= 10;
  }
  return seconds;
}

std::string_view view(const re2::StringPiece& text) { return {text.data(), text.size()}; }

}  // namespace

LogLine read_log_line(std::string_view raw) {
  const std::string clean = without_escapes(raw.substr(0, kLongestLogLine));
  std::string_view text = clean;
  LogLine line;
  for (int i = 0; i < 3; ++i) {
    const bool is_of_worker = text.starts_with('(');
    if (!strip_prefix(text, line.rank)) break;
    line.is_of_worker = line.is_of_worker || is_of_worker;
  }
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  line.text = text;
  return line;
}

std::optional<double> time_of(std::string_view text) {
  static const RE2 kIso(R"(\b\d{4}[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?)");
  static const RE2 kGlog(R"((?:^|[\[\s])[EWIF](\d{1,2})(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)");
  static const RE2 kSyslog(
      R"((Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)");
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  int month = 0, day = 0;
  re2::StringPiece clock, fraction, name;
  if (RE2::PartialMatch(piece(text), kIso, &month, &day, &clock, &fraction) ||
      RE2::PartialMatch(piece(text), kGlog, &month, &day, &clock, &fraction))
    return comparable_seconds(month, day, view(clock), view(fraction));
  if (RE2::PartialMatch(piece(text), kSyslog, &name, &day, &clock, &fraction))
    return comparable_seconds(static_cast<int>(kMonths.find(view(name)) / 3) + 1, day, view(clock),
                              view(fraction));
  return std::nullopt;
}

std::vector<std::string> LinesAbove::nearest(std::size_t count) const {
  std::vector<std::string> lines;
  std::string_view rest = text;
  while (!rest.empty() && lines.size() < count) {
    rest.remove_suffix(1);
    const std::size_t start = rest.rfind('\n') + 1;  // npos + 1 is 0
    lines.push_back(read_log_line(rest.substr(start)).text);
    rest = rest.substr(0, start);
  }
  return lines;
}

int rank_named_in(std::string_view text) {
  static const RE2 kRank(
      R"(\[(?:PG [^\]]*|)[Rr]ank ?(\d{1,6})\]|\b(?:RANK|process rank|invoked on rank) (\d{1,6})\b)");
  std::string first, second;
  if (!RE2::PartialMatch(piece(text), kRank, &first, &second)) return -1;
  std::int64_t number = -1;
  return parse_number(first.empty() ? second : first, &number) ? static_cast<int>(number) : -1;
}

NodeInLine node_named_in(std::string_view text) {
  static const RE2 kTask(R"(\bsrun: error: ([\w.-]+): tasks? (\d{1,6})([,-]?))");
  static const RE2 kDaemon(R"(\bslurmstepd-([\w.-]+): )");
  static const RE2 kKernel(
      R"(^(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)? |\d{4}-\d\d-\d\dT\S+ )?([\w.-]+) kernel: )");
  // Stoker's own record of a GPU.
  static const RE2 kGpu(R"(^GPU \d+ \(([\w.-]+)[,)].* reported Xid \d)");
  NodeInLine found;
  int task = -1;
  std::string more;
  if (RE2::PartialMatch(piece(text), kTask, &found.node, &task, &more)) {
    if (more.empty()) found.task = task;
    return found;
  }
  if (!RE2::PartialMatch(piece(text), kDaemon, &found.node) &&
      !RE2::PartialMatch(piece(text), kKernel, &found.node))
    (void)RE2::PartialMatch(piece(text), kGpu, &found.node);
  return found;
}

}  // namespace stoker::diagnose
