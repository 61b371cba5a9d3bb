// Advice on communication settings from measured communication times. No libtorch. Pure functions over plain
// values, called by the trainer at its end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stoker::train {

/// Measurements of one rank, as means over its steps.
struct CommunicationStats {
  double step_s = 0;
  double waited_s = 0;  ///< part of the step spent waiting for peers
};

/// Settings that all ranks share.
struct CommunicationSettings {
  std::vector<std::int64_t> buckets;  ///< bytes of each gradient bucket
  bool is_compressed = false;         ///< train.compress_gradients is not none
};

/// One sentence with the measured wait and the setting that reduces it most. Empty if ranks wait less than 5
/// % of a step, or if no rank measured anything.
///
/// The rank that waits least is the last one in nearly every collective: its wait is the cost of data
/// transfer. The additional wait of its peers is caused by stragglers, and no communication setting reduces
/// it.
std::string communication_advice(std::span<const CommunicationStats> ranks,
                                 const CommunicationSettings& settings);

/// Serializes a rank's statistics for rank 0 and parses them. An invalid text gives empty statistics.
std::string stats_text(const CommunicationStats& facts);
CommunicationStats parse_stats(const std::string& text);

}  // namespace stoker::train
