// Figures of a training over all ranks: means, shares of right answers, counts by class. Each rank adds to
// those it has, whichever they are; over_ranks() puts them together. Its exchange does not depend on names,
// so ranks with different ones cannot wait for each other for ever. Used by training loops. One thread of one
// rank.
//
//   Metrics metrics;
//   metrics.add_mean("loss", loss, batch);
//   metrics.add_share("top1", right, batch);
//   OK_OR_RETURN(all, metrics.over_ranks(group));      // every 10 steps, say
//   all.metrics.value("loss"), metrics.value("loss")   // of all ranks, of this one
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::torch {

class ProcessGroup;

class Metrics {
 public:
  struct OfAllRanks;

  /// A mean over samples: `value` is that of `weight` samples.
  void add_mean(std::string_view name, double value, double weight = 1);
  /// `part` of `whole`: right answers of samples, say.
  void add_share(std::string_view name, double part, double whole);
  /// Counts that add up element by element: a histogram, or a confusion matrix row by row. The first call for
  /// a name decides the number of elements; another one is Invalid.
  Status add_counts(std::string_view name, std::span<const double> counts);
  /// One more in `column` of `row` of a square matrix: the class found for a sample of a class. Invalid when
  /// either is not below `classes`.
  Status add_to_confusion(std::string_view name, std::int64_t row, std::int64_t column, std::int64_t classes);
  /// One more in the bin of `value`: `bins` of equal width from `low` to `high`, what lies beyond in the
  /// outer ones. REQUIRES: bins > 0, low < high.
  Status add_to_histogram(std::string_view name, double value, double low, double high, std::int64_t bins);

  /// The mean or share so far; NaN when nothing was added.
  double value(std::string_view name) const;
  /// The counts so far; empty when there are none.
  std::vector<double> counts(std::string_view name) const;
  /// Of means and counts, sorted; a name may stand for one of each.
  std::vector<std::string> names() const;
  void reset() {
    means_.clear();
    counts_.clear();
  }

  /// What all ranks added up to now, equal on all of them. Collective, whatever names each rank has. Invalid,
  /// on all ranks alike, when counts of one name differ in size between ranks.
  template <typename Group = ProcessGroup>
  Result<OfAllRanks> over_ranks(Group& group) const;

 private:
  using Sums = std::map<std::string, std::vector<double>, std::less<>>;
  static Result<OfAllRanks> together(const std::vector<std::string>& all);
  std::string packed() const;
  Status merge(std::string_view packed, int rank);
  std::vector<double>* counts_of(std::string_view name, std::size_t size);

  Sums means_;  ///< the weighted sum, and the weight
  Sums counts_;
};

struct Metrics::OfAllRanks {
  Metrics metrics;
  /// Names that some ranks lack: "'head2.loss' only on rank 1".
  std::vector<std::string> partial;
};

template <typename Group>
Result<Metrics::OfAllRanks> Metrics::over_ranks(Group& group) const {
  OK_OR_RETURN(all, group.gather(packed()));
  return together(all);
}

}  // namespace stoker::torch
