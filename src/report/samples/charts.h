// The charts about the machines, from system-*.csv of all nodes. For samples.cc only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "record/metrics.h"
#include "report/sources.h"

namespace stoker::report {

/// Collects series over nodes and attempts.
class SystemCharts {
 public:
  SystemCharts();
  void add(const AttemptSource& source, const record::MetricTable& table, int node, bool has_nodes);
  /// Charts with more than 16 series have three instead: the lowest, mean and highest value at each time.
  std::vector<SystemChart> finish();

 private:
  void append(std::size_t rule, const std::string& name, const AttemptSource& source,
              std::span<const double> time, std::span<const double> values);
  void note_limit(const std::string& column, double limit);

  std::vector<std::map<std::string, Series>> series_;  // by rule
  std::vector<std::vector<std::string>> order_;
  std::map<std::string, double> limits_;
};

}  // namespace stoker::report
