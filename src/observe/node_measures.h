// The samples of a node (system-<node>.csv) as the quantities that people compare: use of
// cores, memory, I/O, network, GPUs and power. The columns of all interfaces, filesystems and GPUs of a node
// are put together. Used by `top`, `status` and `report`. Thread-safe: no state.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "record/metrics.h"

namespace stoker::observe {

enum class MeasureUnit { cores, percent, bytes, bytes_per_s, per_s, watts };

/// A quantity of a node over time.
struct NodeMeasure {
  std::string_view key;    ///< name in JSON: "network_received_bytes_per_s"
  std::string_view title;  ///< "network, received"
  MeasureUnit unit;
  std::string_view prefix;  ///< columns named <prefix>...<suffix>
  std::string_view suffix;
  bool is_mean = false;             ///< of the columns instead of their sum
  std::string_view otherwise = "";  ///< suffix of "rank" columns in files of earlier versions
};

inline constexpr NodeMeasure kNodeMeasures[] = {
    {"cpu_cores", "cores used by ranks", MeasureUnit::cores, "ranks", ".cpu_cores", false, ".cpu_cores"},
    {"job_cpu_percent", "use of the job's cores", MeasureUnit::percent, "job_cpu_percent", ""},
    {"host_cpu_percent", "use of all cores", MeasureUnit::percent, "host_cpu_percent", ""},
    {"memory_bytes", "memory of ranks", MeasureUnit::bytes, "ranks", ".rss_bytes", false, ".rss_bytes"},
    {"cgroup_memory_bytes", "memory of the cgroup", MeasureUnit::bytes, "cgroup_memory_bytes", ""},
    {"asked_bytes_per_s", "read, page cache included", MeasureUnit::bytes_per_s, "ranks",
     ".asked_bytes_per_s", false, ".asked_bytes_per_s"},
    {"read_bytes_per_s", "read from storage", MeasureUnit::bytes_per_s, "ranks", ".read_bytes_per_s", false,
     ".read_bytes_per_s"},
    {"write_bytes_per_s", "written to storage", MeasureUnit::bytes_per_s, "ranks", ".write_bytes_per_s",
     false, ".write_bytes_per_s"},
    {"shared_read_bytes_per_s", "shared filesystems, read", MeasureUnit::bytes_per_s, "shared",
     ".read_bytes_per_s"},
    {"shared_write_bytes_per_s", "shared filesystems, written", MeasureUnit::bytes_per_s, "shared",
     ".write_bytes_per_s"},
    {"shared_opens_per_s", "shared filesystems, opens", MeasureUnit::per_s, "shared", ".opens_per_s"},
    {"local_read_bytes_per_s", "local disks, read", MeasureUnit::bytes_per_s, "local", ".read_bytes_per_s"},
    {"local_write_bytes_per_s", "local disks, written", MeasureUnit::bytes_per_s, "local",
     ".write_bytes_per_s"},
    {"network_received_bytes_per_s", "network, received", MeasureUnit::bytes_per_s, "net.",
     ".received_bytes_per_s"},
    {"network_sent_bytes_per_s", "network, sent", MeasureUnit::bytes_per_s, "net.", ".sent_bytes_per_s"},
    {"fabric_received_bytes_per_s", "InfiniBand, received", MeasureUnit::bytes_per_s, "ib.",
     ".received_bytes_per_s"},
    {"fabric_sent_bytes_per_s", "InfiniBand, sent", MeasureUnit::bytes_per_s, "ib.", ".sent_bytes_per_s"},
    {"gpu_busy_percent", "GPUs busy", MeasureUnit::percent, "gpu", ".busy_percent", true},
    {"gpu_memory_bytes", "memory of GPUs", MeasureUnit::bytes, "gpu", ".memory_bytes"},
    {"gpu_power_w", "power of GPUs", MeasureUnit::watts, "gpu", ".power_w"},
};
inline constexpr std::size_t kMeasures = std::size(kNodeMeasures);
/// The index of a key in kNodeMeasures. REQUIRES: it is there.
constexpr std::size_t measure_index(std::string_view key) {
  std::size_t i = 0;
  while (i < kMeasures && kNodeMeasures[i].key != key) ++i;
  return i;
}

/// The measure in each row; nan where no column has a possible value. Empty if the node does not record it.
std::vector<double> values_of(const record::MetricTable& samples, const NodeMeasure& measure);
/// Mean and largest finite value; nullopt without one.
struct MeanAndPeak {
  double mean = 0;
  double peak = 0;
};
std::optional<MeanAndPeak> mean_and_peak(const std::vector<double>& values);
/// The sum of a rate over the time between rows: bytes of bytes per second. Gaps over 2 min count as none.
double total_of(const record::MetricTable& samples, const std::vector<double>& rates);
/// The last possible value of a column: not negative, and below 1e18.
std::optional<double> last_value(const record::MetricTable& samples, std::string_view column);
/// How much a count from the start of its sampler has increased: a successor starts from 0. nullopt without a
/// value.
std::optional<double> increase_of(const record::MetricTable& samples, std::string_view column);

/// Joules over all rows, by part. Unset: not measured.
struct NodeEnergy {
  std::optional<double> cpu_j;
  std::optional<double> memory_j;
  std::optional<double> node_j;
  std::optional<double> gpu_j;
  bool is_gpu_integrated = false;  ///< from samples of power, because a GPU has no counter
};
NodeEnergy energy_of(const record::MetricTable& samples);

/// How a value differs over nodes. Indices refer to `values`.
struct Spread {
  double mean = 0;
  std::size_t lowest = 0;
  std::size_t highest = 0;
};
/// nullopt without a finite value.
std::optional<Spread> spread_of(const std::vector<std::optional<double>>& values);

}  // namespace stoker::observe
