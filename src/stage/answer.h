// What `stoker stage` on a node says to the run that started it: one line of JSON each time. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker::stage {

struct Answer {
  int node = 0;
  std::string host;
  bool is_back = false;  ///< after the run; else before it
  std::string folder;    ///< on the node
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::uint64_t fingerprint = 0;
  Status problem;  ///< what went wrong
};

/// With a line end.
std::string to_line(const Answer& answer);
/// Nothing for a line that is none, as other programs print.
std::optional<Answer> parse_answer(std::string_view line);

}  // namespace stoker::stage
