// The current state of a run, rank by rank: position, speed, where its time goes, resource usage. Reads
// beacons and the ends of files, so reading once per second costs the run nothing. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/node_measures.h"
#include "record/beacon.h"
#include "record/points/points.h"
#include "record/run_folder.h"
#include "record/staged_data.h"

namespace stoker::observe {

/// Parts of a step, as in the columns of metrics-<rank>.csv.
inline constexpr std::array<std::string_view, 6> kStepParts = {"data",          "forward",   "backward",
                                                               "communication", "optimizer", "checkpoint"};

/// One rank. Values that its command does not record are unset.
struct LiveRank {
  int rank = 0;
  std::string host;
  std::optional<record::BeaconState> beacon;
  std::optional<double> silent_s;     ///< since the beacon's last heartbeat
  std::optional<std::int64_t> epoch;  ///< counted from 0
  std::optional<std::int64_t> step;
  std::optional<double> steps_per_s;
  std::optional<double> samples_per_s;
  std::array<std::optional<double>, kStepParts.size()> shares;  ///< fractions of a step's time
  std::optional<double> cpu_cores;
  std::optional<double> memory_bytes;
  std::map<std::string, record::Point> metrics;  ///< logged metrics, the last value of each
  std::optional<std::string> ended;              ///< reason, if it has ended
};

/// One GPU in the last sample. Values that were not recorded are unset.
struct LiveGpu {
  int node = 0;
  int number = 0;
  std::optional<double> busy_percent;
  std::optional<double> memory_bytes;
  std::optional<double> memory_total_bytes;
  std::optional<double> power_w;
  std::optional<double> sm_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<std::int64_t> throttle_reasons;  ///< bits: throttle_texts
  std::vector<int> xids;                         ///< codes of its errors in this attempt
};

/// One node in its last sample. Values that were not recorded are unset.
struct LiveNode {
  int node = 0;
  std::string host;
  double age_s = 0;                                     ///< of the sample
  std::array<std::optional<double>, kMeasures> values;  ///< by index in kNodeMeasures
  std::optional<double> cpus;                           ///< cores that the ranks may use
  std::optional<double> memory_limit_bytes;             ///< of the cgroup, else of the host
  std::optional<std::int64_t> oom_kills;
  NodeEnergy energy;              ///< since the first sample
  std::optional<double> power_w;  ///< of the node, else of the parts that are measured; mean of the last rows

  const std::optional<double>& value(std::string_view key) const { return values[measure_index(key)]; }
};

struct LiveRun {
  std::vector<LiveRank> ranks;
  std::vector<LiveGpu> gpus;                 ///< by node
  std::vector<LiveNode> nodes;               ///< that have samples
  std::optional<record::StagedData> staged;  ///< unset if nothing was staged

  /// The last values of logged metrics over all ranks, by name.
  std::vector<record::LastValue> metrics() const;
  /// Sum over all ranks; nothing if none records it.
  std::optional<double> samples_per_s() const;
};

/// The nodes and GPUs of an attempt in their last samples, without its ranks. `now`: Unix seconds. Reads at
/// most 4096 nodes.
LiveRun read_live_nodes(const record::Attempt& attempt, double now);
/// The same with the ranks, at most `at_most`. Absent and damaged files count as missing values.
LiveRun read_live_run(const record::Attempt& attempt, int world_size, double now, int at_most = 4096);

}  // namespace stoker::observe
