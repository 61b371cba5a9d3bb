// Chooses the one cause among all that rules found in the logs of a failed job: the first to fail, not the
// loudest. Pure functions. Internal to this room.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "explain/failure/scan.h"

namespace stoker::explain {

/// What was found in one log, or in the words about a run.
struct Heard {
  std::string name;
  int rank = -1;
  bool is_told = false;  ///< words of records or the scheduler, not lines of a log
  Scanned scanned;
};

/// A hit, and where it is from.
struct Suspect {
  const Heard* heard = nullptr;
  const Hit* hit = nullptr;

  int rank() const { return hit->rank >= 0 ? hit->rank : heard->rank; }
};

struct Choice {
  std::optional<Suspect> cause;
  bool is_sure = false;             ///< a line says so; else it is what such lines mostly come of
  std::vector<Suspect> followed;    ///< effects beside it
  std::vector<Suspect> supporting;  ///< of the same rule, from other logs
};

/// `first_rank`: the rank that failed first, where that is known from elsewhere.
Choice choose(const std::vector<Heard>& heard, std::optional<int> first_rank);

}  // namespace stoker::explain
