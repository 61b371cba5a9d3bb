// Energy that this node and its processors have used, from the counters that users may read: Cray's
// pm_counters, RAPL (mostly readable by root only) and power meters of hwmon. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "observe/node/counter.h"

namespace stoker::observe {

/// Joules since the first call. Unset: not measured.
struct EnergyUse {
  std::optional<double> cpu_j;
  std::optional<double> memory_j;
  std::optional<double> node_j;
};

class EnergyReader {
 public:
  static EnergyReader find(const NodeRoots& roots);

  bool has_cpu() const { return has(Part::cpu); }
  bool has_memory() const { return has(Part::memory); }
  bool has_node() const { return has(Part::node); }
  /// `mono_s`: monotonic time. An interval whose counter was reset, or whose power exceeds 100 kW, counts 0.
  /// After a pause in which a counter may have wrapped more than once, its part is unset.
  EnergyUse read(double mono_s);
  /// "cpu: RAPL package-0, package-1"; "" without a source.
  const std::string& source() const { return source_; }

 private:
  enum class Part { cpu, memory, node };
  /// A counter of energy, or a meter of power, which is integrated.
  struct Meter {
    Part part = Part::cpu;
    Path file;
    double joules_per_unit = 1;
    Counter wraps_at;  ///< the counter's largest value; unset: it never wraps
    bool is_power = false;
    Counter before;
    double before_s = 0;  ///< when it was read
  };

  bool has(Part part) const;
  void add_interval(Meter& meter, double mono_s);
  void add_pm_counters(const Path& folder);
  void add_rapl(const Path& folder);
  void add_power_meters(const Path& folder);
  void add_source(Part part, std::string_view what);

  std::vector<Meter> meters_;
  std::optional<double> joules_[3] = {0, 0, 0};  // by part
  std::string source_;
};

}  // namespace stoker::observe
