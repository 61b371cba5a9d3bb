// Messages of `stoker stage` on a node to the run that started it: one line of JSON each. Values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::stage {

enum class StagePhase {
  in,    ///< the ranks may start
  rest,  ///< what was copied beside them
  back,  ///< after the run
};
constexpr std::array<std::string_view, 3> names_of(StagePhase) { return {"in", "rest", "back"}; }

struct StageReport {
  int node = 0;
  std::string host;
  StagePhase phase = StagePhase::in;
  bool has_rest = false;  ///< a report of StagePhase::rest follows
  std::string folder;     ///< on the node
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t received_bytes = 0;  ///< as in TransferStats
  std::uint64_t cached_bytes = 0;
  double seconds = 0;
  std::uint64_t fingerprint = 0;
  Status problem;  ///< the error, if any
};

/// With a newline.
std::string to_line(const StageReport& answer);
/// Nothing for any other line, such as output of other programs.
std::optional<StageReport> parse_stage_report(std::string_view line);

}  // namespace stoker::stage
