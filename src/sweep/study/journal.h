// Journals of a study: each worker appends to its own file, and everybody reads all of them. No file has two
// writers and nothing is locked over the network, so a journal survives NFS and kill -9. A reader belongs
// to one thread.
//
// base/journal.h describes the lines, and docs/formats/study.md their words.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// An attempt at a trial begins.
struct TrialStart {
  TrialNumber number = 0;
  std::uint32_t attempt = 0;  ///< 0, or how often the trial was tried before
  double time = 0;            ///< Unix time in seconds
  std::string origin;         ///< the sampler's name, "first", "grid 12", "retry"
  Coordinates point;
  std::string sampler_state = {};  ///< see StudyTrial
  std::string worker = {};         ///< the name of the journal, which is not in the line
};
/// A trial reported its metric.
struct TrialReport {
  TrialNumber number = 0;
  std::uint32_t attempt = 0;
  std::int64_t step = 0;
  double value = 0;
  std::vector<double> rungs;  ///< the trial's StudyTrial::rungs with this report
};
/// Before the sampler proposed the trial, it proposed points that had been tried.
struct SkippedPoints {
  TrialNumber number = 0;
  std::uint64_t count = 0;
};
/// The values of one seed of a trial. They stand before the end of the attempt.
struct SeedResult {
  TrialNumber number = 0;
  std::uint32_t attempt = 0;
  std::uint64_t seed = 0;
  std::vector<double> values;
};
/// An attempt ended.
struct TrialEnd {
  TrialNumber number = 0;
  std::uint32_t attempt = 0;
  double time = 0;
  TrialState state = TrialState::complete;  ///< not running
  std::vector<double> values;
  std::string message;
};
using Record = std::variant<TrialStart, SkippedPoints, TrialReport, SeedResult, TrialEnd>;

/// The line of a record, with its CRC and line end.
std::string line_of(const Record& record);
/// The record of a line without its line end, or nullopt if it is damaged.
std::optional<Record> record_of(std::string_view line);

/// Reads what was appended to a journal since the last read.
class JournalReader {
 public:
  explicit JournalReader(Path path) : path_(std::move(path)) {}

  /// Passes on new records in order. A line that is not complete yet is left for the next read. Damaged lines
  /// are counted in damaged(). NotFound if the file is gone. An error counts only if it is there before the
  /// first new record.
  Status read(const std::function<void(Record record)>& sink);
  std::uint64_t damaged() const { return damaged_; }
  const Path& path() const { return path_; }

 private:
  Path path_;
  std::uint64_t offset_ = 0;
  std::uint64_t damaged_ = 0;
};

}  // namespace stoker::sweep
