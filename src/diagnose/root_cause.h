// Chooses the root cause among all hits of a failed job: the first failure, not the most frequent one. Pure
// functions. Internal to this folder.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

struct Choice {
  std::optional<Suspect> cause;
  std::optional<int> rank;            ///< of the cause, if its line does not name it
  bool is_sure = false;               ///< a line states the cause; otherwise it is the usual one
  std::vector<Suspect> consequences;  ///< consequences of the cause
  std::vector<Suspect> same_rule;     ///< hits of the same rule in other logs
  std::optional<Suspect> in_handler;  ///< an error in the code that handled the cause
};

/// `first_rank`: the first rank to fail, if known from records.
Choice choose_root_cause(const std::vector<LogScan>& logs, std::optional<int> first_rank);

}  // namespace stoker::diagnose
