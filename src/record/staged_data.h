// Data staged in an attempt, summed over its nodes. Values.
#pragma once

#include <cstdint>
#include <optional>

#include "record/events.h"

namespace stoker::record {

/// Bytes of all nodes together.
struct StagedData {
  std::size_t nodes = 0;
  std::uint64_t read = 0;      ///< from the source
  std::uint64_t received = 0;  ///< from other nodes
  std::uint64_t cached = 0;    ///< of datasets that were on the nodes already
  double seconds = 0;          ///< of the slowest node

  /// Adds what a node copied, `received_bytes` of it from other nodes, and what it had already.
  void add(std::uint64_t bytes, std::uint64_t received_bytes, std::uint64_t cached_bytes);
  /// Share of the bytes for which the source was not read.
  double hit_rate() const {
    return static_cast<double>(received + cached) / static_cast<double>(read + received + cached);
  }
};

/// nullopt if nothing was staged.
std::optional<StagedData> staged_data(const EventLog& log);

}  // namespace stoker::record
