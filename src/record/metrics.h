// Time series as CSV: columns are fixed when the file is created, one write(2) per row, so a row survives
// kill -9 of its writer. Used for step metrics, epochs and system samples. Format:
// docs/formats/run.md#metrics. A writer belongs to one thread; any number of readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::record {

/// Columns of `metrics-<rank>.csv`, in the trainer's order. `time` is the end of the step in Unix seconds;
/// `step` counts from 1 over all epochs; `samples`, `loss`, `top1`, `top5` are this rank's values for the
/// step, accuracies as fractions of 1. The *_s columns are disjoint seconds that sum to at most `step_s`:
/// `data_s` is the wait for the loader, `communication_s` only the part that backward did not hide.
inline constexpr std::string_view kStepColumns[] = {
    "time",   "epoch",     "step",       "samples",         "loss",        "top1",         "top5",  "lr",
    "data_s", "forward_s", "backward_s", "communication_s", "optimizer_s", "checkpoint_s", "step_s"};
/// Columns of `epochs.csv`, written by rank 0 after each epoch and its validation: `step` is the epoch's last
/// step, train_* are means over its samples on all ranks, `seconds` is the epoch including its validation,
/// `validation_s` the validation alone. Values of a skipped validation are nan.
inline constexpr std::string_view kEpochColumns[] = {
    "epoch",    "step",     "train_loss", "train_top1",    "val_loss",
    "val_top1", "val_top5", "seconds",    "samples_per_s", "validation_s"};

/// Appends rows to one CSV file.
class MetricWriter {
 public:
  MetricWriter() = default;
  /// Creates the file and writes the header line. Exists if the file exists: one writer per file.
  static Result<MetricWriter> create(const Path& file, std::span<const std::string_view> columns);

  /// Continues a file that `create` made with the same columns. Invalid for other columns.
  static Result<MetricWriter> reopen(const Path& file, std::span<const std::string_view> columns);

  /// Writes one row; "nan", "inf" and "-inf" are valid values. REQUIRES: one value per column. A
  /// default-constructed writer ignores rows. After a failed write (disk full) the next row starts on a new
  /// line.
  Status append(std::span<const double> values);

 private:
  MetricWriter(File file, std::size_t columns) : file_(std::move(file)), columns_(columns) {}

  File file_;
  std::size_t columns_ = 0;
  bool mid_line_ = false;
  std::string line_;
};

/// A CSV file as columns. Empty cells become NaN.
struct MetricTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> values;  ///< one vector per column, all of equal length
  std::size_t damaged = 0;  ///< complete lines that were skipped: wrong number of cells, or not numbers
  bool torn = false;        ///< the last line is incomplete and was skipped
  bool truncated = false;   ///< the file has more rows than the limit

  std::size_t rows() const { return values.empty() ? 0 : values.front().size(); }
  /// The column of that name; empty if it does not exist.
  std::span<const double> column(std::string_view name) const;
  bool has(std::string_view name) const;
};

/// Limits for reading files that may be damaged.
struct MetricLimits {
  std::size_t columns = 1024;
  std::size_t rows = 8'000'000;
  std::size_t line_bytes = 1u << 20;
};

/// Reads a whole file. NotFound if it does not exist, Corrupt if its first line is not a header; later damage
/// is counted and never an error.
Result<MetricTable> read_metrics(const Path& file, const MetricLimits& limits = {});
/// Same, from memory; `name` is used in messages.
Result<MetricTable> parse_metrics(std::string_view name, std::string_view text,
                                  const MetricLimits& limits = {});

}  // namespace stoker::record
