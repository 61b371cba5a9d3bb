#include "diagnose/rank_lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <re2/re2.h>

#include "base/file.h"
#include "diagnose/line_signs.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr ByteCount kStartOfLog = 1_MiB;
constexpr std::size_t kMaxStarts = 64;
constexpr std::size_t kMaxRankZero = 3;
constexpr std::size_t kLongestRankLine = 200;

// Numbers that are 0 once per node or group: "local rank 0/4".
constexpr std::array<std::string_view, 8> kPartialRanks = {"local", "node",     "machine", "group",
                                                           "data",  "pipeline", "tensor",  "expert"};

struct LogStart {
  std::string text;
  bool is_whole = true;
};

LogStart read_start(const Path& path) {
  const auto file = File::open_regular(path);
  if (!file.ok()) return {};
  const auto size = file->size();
  if (!size.ok() || *size == 0) return {};
  LogStart start;
  start.is_whole = *size <= kStartOfLog.value;
  start.text.resize(std::min<std::uint64_t>(*size, kStartOfLog.value));
  if (!file->read_at(0, std::as_writable_bytes(std::span(start.text))).ok()) return {};
  return start;
}

// The text from "rank 0/4" to the end of the line, without prefixes such as the node's name.
std::optional<std::string_view> rank_zero_in(std::string_view line) {
  static const RE2 kRankZero(
      R"((?i)(?:\b([a-z]+)[ -])?(\brank\s*[:=]?\s*0\s*(?:/|of|out of|,?\s*world[ _]?size\s*[:=]?)\s*\d+.*))");
  std::string before;
  re2::StringPiece rest;
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), kRankZero, &before, &rest))
    return std::nullopt;
  const std::string lower = to_lower(before);
  if (std::find(kPartialRanks.begin(), kPartialRanks.end(), lower) != kPartialRanks.end())
    return std::nullopt;
  return trim(std::string_view(rest.data(), rest.size()));
}

// Lines with rank 0 in one log, by their text from "rank 0" on.
using RankZeroLines = std::map<std::string, std::vector<Evidence>, std::less<>>;

RankZeroLines scan_start(const FailedLog& log, RankLines& found) {
  const LogStart start = read_start(log.file);
  if (!start.is_whole) found.has_progress = true;
  RankZeroLines lines;
  std::size_t number = 0;
  for (const std::string_view line : split(start.text, '\n')) {
    ++number;
    found.has_progress = found.has_progress || is_progress(line) || is_progress_bar(line);
    const auto zero = rank_zero_in(line);
    if (!zero) continue;
    std::vector<Evidence>& equal = lines[std::string(*zero)];
    if (equal.size() < kMaxRankZero)
      equal.push_back(
          {format("{}:{}", printable(log.name), number), clipped(printable(trim(line)), kLongestRankLine)});
  }
  return lines;
}

}  // namespace

RankLines read_rank_lines(const std::vector<FailedLog>& logs, LogLayout layout) {
  RankLines found;
  for (std::size_t i = 0; i < std::min(logs.size(), kMaxStarts); ++i) {
    const FailedLog& log = logs[i];
    if (log.fd >= 0) continue;
    RankZeroLines lines = scan_start(log, found);
    if (lines.empty()) continue;
    if (layout == LogLayout::log_per_process) {
      const bool is_counted = log.rank >= 0 && found.rank_zero.size() < kMaxRankZero;
      if (is_counted) found.rank_zero.push_back(lines.begin()->second.front());
      continue;
    }
    for (auto& [text, equal] : lines) {
      if (equal.size() > found.rank_zero.size()) found.rank_zero = std::move(equal);
    }
  }
  return found;
}

}  // namespace stoker::diagnose
