#include "observe/log_reader.h"

#include <algorithm>
#include <array>

#include "base/file.h"

namespace stoker::observe {
namespace {

constexpr std::size_t kLongestRead = 1u << 20;

// The rank in "rank-0003.log", or -1.
int rank_of(std::string_view name) {
  constexpr std::string_view kStem = "rank-";
  constexpr std::string_view kExtension = ".log";
  if (!name.starts_with(kStem) || !name.ends_with(kExtension)) return -1;
  name.remove_prefix(kStem.size());
  name.remove_suffix(kExtension.size());
  std::int64_t rank = 0;
  return parse_number(name, &rank) && rank >= 0 && rank < 1'000'000 ? static_cast<int>(rank) : -1;
}

}  // namespace

Result<std::vector<int>> ranks_with_logs(const record::Attempt& attempt) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(attempt.folder()));
  std::vector<int> ranks;
  for (const std::string& name : names) {
    if (const int rank = rank_of(name); rank >= 0) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Status LogReader::check() const {
  STOKER_ASSIGN_OR_RETURN(ranks, ranks_with_logs(attempt_));
  if (rank_ < 0 || std::find(ranks.begin(), ranks.end(), rank_) != ranks.end()) return {};
  if (ranks.empty()) return not_found("attempt {}: no rank has a log", attempt_.number());
  return not_found("attempt {}: rank {} has no log (ranks {} to {} have)", attempt_.number(), rank_,
                   ranks.front(), ranks.back());
}

Status LogReader::read_new(const LineSink& sink) {
  if (rank_ >= 0) return read_rank(rank_, positions_[rank_], sink);
  STOKER_ASSIGN_OR_RETURN(ranks, ranks_with_logs(attempt_));
  for (const int rank : ranks) STOKER_RETURN_IF_ERROR(read_rank(rank, positions_[rank], sink));
  return {};
}

Status LogReader::read_rank(int rank, Position& position, const LineSink& sink) {
  const auto opened = File::open_regular(attempt_.log(rank));
  if (!opened.ok()) return opened.error().code() == Code::not_found ? Status() : opened.error();
  const File& file = *opened;
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::array<std::byte, 65536> buffer;
  while (position.offset < size) {
    const auto piece =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - position.offset));
    STOKER_RETURN_IF_ERROR(file.read_at(position.offset, piece));
    position.offset += piece.size();
    std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      position.partial += text.substr(0, end);
      sink(rank, position.partial);
      position.partial.clear();
      text.remove_prefix(end + 1);
    }
    position.partial += text;
    if (position.partial.size() >= kLongestRead) {
      sink(rank, position.partial);
      position.partial.clear();
    }
  }
  return {};
}

void LogReader::finish(const LineSink& sink) {
  for (auto& [rank, position] : positions_) {
    if (!position.partial.empty()) sink(rank, position.partial);
    position.partial.clear();
  }
}

}  // namespace stoker::observe
