// The logs of one attempt's ranks, line by line: whole files, or the lines added since the last read. Used by
// `stoker logs` and the report. An object belongs to one thread; the logs may be written at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::observe {

/// Called with a rank and one line of its log, without the newline. Lines longer than 1 MiB arrive in pieces.
using LineSink = std::function<void(int rank, std::string_view line)>;

/// Reads `rank-*.log` of an attempt.
class LogReader {
 public:
  /// Reads one rank, or all with -1. A missing log counts as empty and is found once it appears.
  LogReader(record::Attempt attempt, int rank) : attempt_(std::move(attempt)), rank_(rank) {}

  /// NotFound, with the list of ranks, if the single rank it reads has no log.
  Status check() const;
  /// Passes on every complete line since the last call, rank by rank.
  Status read_new(const LineSink& sink);
  /// Passes on the remaining incomplete lines: call it once, after all writers have ended.
  void finish(const LineSink& sink);

 private:
  struct Position {
    std::uint64_t offset = 0;
    std::string partial;
  };
  Status read_rank(int rank, Position& position, const LineSink& sink);

  record::Attempt attempt_;
  int rank_ = -1;
  std::map<int, Position> positions_;
};

/// Ranks with a log in the attempt's folder, in order.
Result<std::vector<int>> ranks_with_logs(const record::Attempt& attempt);

}  // namespace stoker::observe
