#include "report/log_tails.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/secrets.h"

namespace stoker::report {
namespace {

/// Removes terminal escape sequences.
std::string without_colours(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
      continue;
    }
    plain += line[i] == '\t' ? ' ' : line[i];
  }
  return plain;
}

/// The last `most` bytes of a regular file, starting at a line.
Result<std::string> read_end(const Path& path, std::uint64_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return not_found("{}: no regular file", path.string());
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  const std::uint64_t begin = size - std::min(size, most);
  std::string end(size - begin, '\0');
  STOKER_RETURN_IF_ERROR(file.read_at(begin, std::as_writable_bytes(std::span(end.data(), end.size()))));
  if (begin > 0) end.erase(0, end.find('\n') + 1);
  return end;
}

std::optional<LogTail> read_tail(const record::Attempt& attempt, int rank) {
  constexpr std::size_t kLines = 20;
  constexpr std::size_t kLongest = 400;
  constexpr std::uint64_t kEnd = 256u << 10;
  LogTail tail{attempt.number(), rank, attempt.log(rank).filename().string(), {}};
  const auto end = read_end(attempt.log(rank), kEnd);
  if (!end) return std::nullopt;
  for (std::string_view line : split(trim(*end), '\n')) {
    // A progress bar rewrites its line: keep the last version.
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::size_t rewritten = line.rfind('\r'); rewritten != std::string_view::npos) {
      line.remove_prefix(rewritten + 1);
    }
    tail.lines.push_back(printable(hide_secrets(without_colours(line.substr(0, kLongest)))));
  }
  if (tail.lines.size() > kLines) tail.lines.erase(tail.lines.begin(), tail.lines.end() - kLines);
  if (tail.lines.size() == 1 && tail.lines[0].empty()) return std::nullopt;
  return tail;
}

}  // namespace

void read_logs(const record::Attempt& last, RunFacts& facts) {
  std::vector<int> ranks;
  if (facts.state.first_rank) ranks.push_back(*facts.state.first_rank);
  if (ranks.empty() || ranks.front() != 0) ranks.push_back(0);
  for (int rank : ranks) {
    auto tail = read_tail(last, rank);
    // Ranks with identical tails are shown once.
    if (tail && (facts.logs.empty() || facts.logs.back().lines != tail->lines))
      facts.logs.push_back(*std::move(tail));
  }
}

}  // namespace stoker::report
