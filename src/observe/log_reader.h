// The logs of one attempt's ranks, line by line: whole files, or what has been added since the last look.
// Used by `stoker logs` and the report. An object belongs to one thread; writers may write meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "record/run_folder.h"

namespace stoker::observe {

/// Called with a rank and one line of its log, without the line end. Lines over 1 MiB come in pieces.
using LineSink = std::function<void(int rank, std::string_view line)>;

/// Reads `rank-*.log` of an attempt.
class LogReader {
 public:
  /// Of one rank, or with -1 of all. What has no log yet has said nothing so far: its log is found when it
  /// appears.
  LogReader(record::Attempt attempt, int rank) : attempt_(std::move(attempt)), rank_(rank) {}

  /// NotFound, naming the ranks there are, if the one rank it reads has no log.
  Status check() const;
  /// Gives every complete line that has come since the last call, rank after rank.
  Status read_new(const LineSink& sink);
  /// Gives what is left without a line end: call it once, when nobody writes any more.
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

/// Ranks that have a log in the attempt's folder, in order.
Result<std::vector<int>> ranks_with_logs(const record::Attempt& attempt);

}  // namespace stoker::observe
