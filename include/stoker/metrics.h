// Metrics of a training. record::MetricLog records values under any name in the run of `stoker run`;
// `stoker status`, `top` and `report` show them. It does not need libtorch. train::Metrics combines metrics
// over all ranks: means, ratios, counts by class. Ranks may have metrics of different names without a
// deadlock.
//
//   record::MetricLog log = record::MetricLog::open();            // of this rank, from the environment
//   train::Metrics metrics;
//   metrics.add_mean("loss", loss, batch);
//   metrics.add_ratio("top1", right, batch);
//   STOKER_ASSIGN_OR_RETURN(all, metrics.all_reduce(group));      // every 10 steps, for example
//   STOKER_RETURN_IF_ERROR(log.log({{"loss", all.metrics.value("loss")}}, step));
//   STOKER_RETURN_IF_ERROR(log.summary({{"best_accuracy", best}}));
//   STOKER_RETURN_IF_ERROR(log.log_histogram("fc.weight", weights, step));
//   STOKER_RETURN_IF_ERROR(log.log_image("samples", png_or_jpeg_file, step));
//
// Logged values reach the kernel within 100 ms and then survive a kill -9 of the process. Formats:
// docs/formats/metrics.md and media.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::record {

/// The value of a metric. NaN and infinity are values too.
struct MetricValue {
  std::string_view metric;  ///< at most 256 bytes, without control characters
  double value = 0;
};

/// Pixels with 1 (grey), 2 (grey, alpha), 3 (red, green, blue) or 4 channels of 8 bits, row by row without
/// gaps.
struct PixelImage {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;
  std::span<const std::byte> pixels;
};

struct MetricLogOptions {
  Path attempt;  ///< folder of the attempt; empty: nothing is recorded
  int rank = 0;
  /// Of images and histograms of the process; further ones are left out, which is reported.
  std::uint64_t max_media_bytes = 1u << 30;
  std::int64_t last_step = 0;  ///< the first log() without a step records the next one
  /// Receives each problem once ("no space left on device ..."), from any thread. Unset: standard error.
  std::function<void(std::string_view problem)> report;
};

/// Appends to the file of this rank. Thread-safe. After fork(2), the child has its own file and writes each
/// call at once.
class MetricLog {
 public:
  /// From STOKER_ATTEMPT_DIR, RANK or SLURM_PROCID (STOKER_TASK in an array) and STOKER_RESUME. Outside a
  /// run, valid values are ignored.
  static MetricLog open();
  explicit MetricLog(const MetricLogOptions& options);
  MetricLog(MetricLog&& other) noexcept;
  MetricLog& operator=(MetricLog&& other) noexcept;
  /// Writes the remaining values, and syncs them.
  ~MetricLog();

  /// Whether the values are recorded: false outside a run.
  bool is_recording() const;

  /// Records values at `step`, by default the last one plus one. Steps may repeat and go back: the later
  /// value of a step counts. Invalid for a bad name or a negative step; nothing is recorded then. Never waits
  /// for the disk: values are written in the background, and kept in memory (up to 8 MiB) while the disk is
  /// full.
  Status log(std::span<const MetricValue> values, std::optional<std::int64_t> step = std::nullopt);
  Status log(std::initializer_list<MetricValue> values, std::optional<std::int64_t> step = std::nullopt) {
    return log(std::span(values.begin(), values.size()), step);
  }
  /// Records values of the whole run, such as the best accuracy. The last value of a name counts.
  Status summary(std::span<const MetricValue> values);
  Status summary(std::initializer_list<MetricValue> values) {
    return summary(std::span(values.begin(), values.size()));
  }

  /// Records how `values` are distributed: their number in each of `bins` bins (1 to 512) of equal width.
  /// Values that are not finite are counted apart. By default at the last step of log(). Invalid without a
  /// value, and like log(). Never waits for the disk: up to 64 MiB of histograms and images wait in memory.
  Status log_histogram(std::string_view name, std::span<const double> values,
                       std::optional<std::int64_t> step = std::nullopt, int bins = 64);
  Status log_histogram(std::string_view name, std::span<const float> values,
                       std::optional<std::int64_t> step = std::nullopt, int bins = 64);
  /// Records a picture: the bytes of a PNG or JPEG file of at most 4 MiB with sides of at most 8192 pixels,
  /// or pixels, which the caller's thread encodes as PNG. Invalid for anything else; steps and waiting like
  /// log_histogram().
  Status log_image(std::string_view name, std::span<const std::byte> file,
                   std::optional<std::int64_t> step = std::nullopt);
  Status log_image(std::string_view name, const PixelImage& image,
                   std::optional<std::int64_t> step = std::nullopt);

  /// Blocks until all values are written. Returns the error of the last write, or Timeout.
  Status flush(Deadline deadline = Deadline::after(std::chrono::seconds(5)));
  /// flush(), and fsync(2): the values then survive a power failure. For checkpoints.
  Status sync(Deadline deadline = Deadline::after(std::chrono::seconds(5)));
  /// Has the values so far synced, and returns at once. For checkpoints that are written in the background.
  void sync_later();

 private:
  class Writer;
  Writer& points();
  Writer& media();
  template <typename Logged>
  Status log_media(std::string_view name, std::optional<std::int64_t> step, Result<Logged> content);

  // Each has its file and its thread, so that no point waits behind images.
  std::atomic<Writer*> points_ = nullptr;
  std::atomic<Writer*> media_ = nullptr;
};

}  // namespace stoker::record

namespace stoker::train {

class ProcessGroup;

/// Used by one thread of one rank.
class Metrics {
 public:
  struct Reduced;

  /// Adds `value`, the mean of `weight` samples.
  void add_mean(std::string_view name, double value, double weight = 1);
  /// Adds `part` of `whole`, for example correct answers of all samples.
  void add_ratio(std::string_view name, double part, double whole);
  /// Adds counts element by element: a histogram, or a confusion matrix in row order. The first call for a
  /// name sets the number of elements; a different number is Invalid.
  Status add_counts(std::string_view name, std::span<const double> counts);
  /// Increments `column` of `row` of a square matrix: the predicted class of a sample of a class. Invalid if
  /// either is not below `classes`.
  Status add_to_confusion(std::string_view name, std::int64_t row, std::int64_t column, std::int64_t classes);
  /// Increments the bin of `value`: `bins` of equal width from `low` to `high`. Values outside count in the
  /// outer bins. REQUIRES: bins > 0, low < high.
  Status add_to_histogram(std::string_view name, double value, double low, double high, std::int64_t bins);

  /// The current mean or ratio; NaN without any value.
  double value(std::string_view name) const;
  /// The current counts; empty without any value.
  std::vector<double> counts(std::string_view name) const;
  /// Names of means and counts, sorted. A mean and a count may have the same name.
  std::vector<std::string> names() const;
  void reset() {
    means_.clear();
    counts_.clear();
  }

  /// The combined metrics of all ranks, equal on all of them. Collective, even if names differ. Invalid on
  /// all ranks if counts of one name differ in size.
  template <typename Group = ProcessGroup>
  Result<Reduced> all_reduce(Group& group) const;

 private:
  using Sums = std::map<std::string, std::vector<double>, std::less<>>;
  static Result<Reduced> combine(const std::vector<std::string>& all);
  std::string serialize() const;
  Status merge(std::string_view packed, int rank);
  std::vector<double>* counts_of(std::string_view name, std::size_t size);

  Sums means_;  ///< weighted sum and weight
  Sums counts_;
};

struct Metrics::Reduced {
  Metrics metrics;
  /// Names that some ranks lack: "'head2.loss' only on rank 1".
  std::vector<std::string> partial;
};

template <typename Group>
Result<Metrics::Reduced> Metrics::all_reduce(Group& group) const {
  STOKER_ASSIGN_OR_RETURN(all, group.all_gather(serialize()));
  return combine(all);
}

}  // namespace stoker::train
