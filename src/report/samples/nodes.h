// Summarizes the samples of each node of a run, and what the run used of what it asked for. For samples.cc
// only.
#pragma once

#include <map>
#include <vector>

#include "record/metrics.h"
#include "report/sources.h"

namespace stoker::report {

class NodeTable {
 public:
  /// One file of samples. Files of several attempts add up.
  void add_samples(const record::MetricTable& table, int node);
  void add_events(const record::EventLog& log);
  /// By number.
  std::vector<NodeFacts> finish();

 private:
  struct Sum {
    double sum = 0;  // of a mean, weighted by samples
    std::size_t samples = 0;
    double peak = 0;
    double total = 0;
  };
  struct Summary {
    NodeFacts facts;
    std::vector<Sum> sums;
    bool has_samples = false;
  };
  std::map<int, Summary> all_;
};

/// From the nodes and GPUs of `facts`, and the effective job of the last attempt.
Efficiency efficiency_of(const RunFacts& facts, const AttemptSource& last);

}  // namespace stoker::report
