// A run as it is at this moment, rank by rank: where each is, how fast, where its time goes, what it takes of
// the machine. Reads beacons and the ends of files, so that looking once a second costs the run nothing.
// Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/beacon.h"
#include "record/run_folder.h"

namespace stoker::observe {

/// Parts of a step, as the columns of metrics-<rank>.csv tell them apart.
inline constexpr std::array<std::string_view, 6> kStepParts = {"data",          "forward",   "backward",
                                                               "communication", "optimizer", "checkpoint"};

/// One rank. What its command does not record is not set.
struct LiveRank {
  int rank = 0;
  std::string host;
  std::optional<record::Sighting> beacon;
  std::optional<double> silent_s;     ///< since the beacon's last sign of life
  std::optional<std::int64_t> epoch;  ///< counted from 0
  std::optional<std::int64_t> step;
  std::optional<double> steps_per_s;
  std::optional<double> samples_per_s;
  std::array<std::optional<double>, kStepParts.size()> shares;  ///< of a step's time
  std::optional<double> cpu_cores;
  std::optional<double> memory_bytes;
  std::optional<std::string> ended;  ///< how, when it has
};

struct LiveGpu {
  int number = 0;
  std::optional<double> busy_percent;
  std::optional<double> memory_bytes;
  std::optional<double> power_w;
};

struct LiveRun {
  std::vector<LiveRank> ranks;
  std::vector<LiveGpu> gpus;  ///< of this run's first node
  std::optional<double> host_cpu_percent;

  /// Of all ranks together; nothing when none records it.
  std::optional<double> samples_per_s() const;
};

/// `now`: Unix seconds. Ranks beyond `at_most` are left out. Absent and damaged files are silence.
LiveRun look_live(const record::Attempt& attempt, int world_size, double now, int at_most = 4096);

}  // namespace stoker::observe
