// Summarizes the samples and errors of each GPU of a run. For samples.cc only.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "record/metrics.h"
#include "report/facts.h"

namespace stoker::report {

class GpuTable {
 public:
  GpuTable();
  ~GpuTable();
  void add_samples(const record::MetricTable& table, int node);
  void add_events(const record::EventLog& log);
  /// By node and number.
  std::vector<GpuFacts> finish();

 private:
  struct Summary;
  std::map<std::pair<int, int>, std::unique_ptr<Summary>> all_;  // by node and number
  Summary& at(int node, int gpu);
};

}  // namespace stoker::report
