// Metrics of a training over all ranks: means, ratios, counts by class. all_reduce() combines the metrics of
// all ranks. Ranks may have metrics of different names without a deadlock. Used by training loops. One thread
// of one rank.
//
//   Metrics metrics;
//   metrics.add_mean("loss", loss, batch);
//   metrics.add_ratio("top1", right, batch);
//   STOKER_ASSIGN_OR_RETURN(all, metrics.all_reduce(group));      // every 10 steps, for example
//   all.metrics.value("loss"), metrics.value("loss")   // of all ranks, of this one
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::train {

class ProcessGroup;

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
