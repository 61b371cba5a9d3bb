// Numbers over time as CSV: columns fixed when the file is made, one write(2) per row, so that a row survives
// kill -9 of its writer. Per-step metrics, epochs and system samples are all such files.
// Format: docs/formats/run.md#metrics. A writer belongs to one thread; readers are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::record {

/// Columns of `metrics-<rank>.csv` as the trainer writes them, in this order. `time` is the end of the step,
/// Unix seconds; `step` counts from 1 over all epochs; `samples`, `loss`, `top1`, `top5` are this rank's own
/// for the step, accuracies are fractions of 1. The *_s columns are seconds that exclude each other and add
/// up to at most `step_s`: `data_s` is waiting for the loader, `communication_s` only what backward did not
/// hide.
inline constexpr std::string_view kStepColumns[] = {
    "time",   "epoch",     "step",       "samples",         "loss",        "top1",         "top5",  "lr",
    "data_s", "forward_s", "backward_s", "communication_s", "optimizer_s", "checkpoint_s", "step_s"};
/// Columns of `epochs.csv`, written by rank 0 when an epoch and its validation are over: `step` is the last
/// one of the epoch, train_* are means over its samples on all ranks, `seconds` is the epoch with its
/// validation, of which `validation_s` is the latter. Values of a validation that was not held are nan.
inline constexpr std::string_view kEpochColumns[] = {
    "epoch",    "step",     "train_loss", "train_top1",    "val_loss",
    "val_top1", "val_top5", "seconds",    "samples_per_s", "validation_s"};

/// Appends rows to one CSV file.
class MetricWriter {
 public:
  MetricWriter() = default;
  /// Makes the file and writes the header line. Exists when the file is there: one writer, one file.
  static Result<MetricWriter> create(const Path& file, std::span<const std::string_view> columns);

  /// Writes one row; "nan", "inf" and "-inf" are values too. REQUIRES: one value per column. A default-made
  /// writer swallows rows. After a failed write (disk full) the next row starts on a line of its own.
  Status append(std::span<const double> values);

 private:
  MetricWriter(File file, std::size_t columns) : file_(std::move(file)), columns_(columns) {}

  File file_;
  std::size_t columns_ = 0;
  bool mid_line_ = false;
  std::string line_;
};

/// A CSV file as columns. Empty cells are NaN.
struct MetricTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> values;  ///< one vector per column, all of one length
  std::size_t damaged = 0;                  ///< complete lines left out: wrong number of cells or not numbers
  bool torn = false;                        ///< the last line had no end yet (or never will): left out
  bool truncated = false;                   ///< there were more rows than the limit

  std::size_t rows() const { return values.empty() ? 0 : values.front().size(); }
  /// The column of that name, empty when there is none.
  std::span<const double> column(std::string_view name) const;
  bool has(std::string_view name) const;
};

/// Bounds for reading files that somebody else may have damaged.
struct MetricLimits {
  std::size_t columns = 1024;
  std::size_t rows = 8'000'000;
  std::size_t line_bytes = 1u << 20;
};

/// Reads a whole file. NotFound without it, Corrupt when its first line is no header; damage further down is
/// counted, never fatal.
Result<MetricTable> read_metrics(const Path& file, const MetricLimits& limits = {});
/// The same from memory; `name` is for messages.
Result<MetricTable> parse_metrics(std::string_view name, std::string_view text,
                                  const MetricLimits& limits = {});

}  // namespace stoker::record
