// Hits of several logs of one job as suspects for the root cause. Internal to this folder. Thread-safe: no
// state.
#pragma once

#include <string>

#include "diagnose/scan.h"

namespace stoker::diagnose {

/// The scan of one log or record.
struct LogScan {
  std::string name;
  int rank = -1;
  bool is_record = false;  ///< a record or scheduler state, not a log
  ScanResult result;
};

/// A hit and its source.
struct Suspect {
  const LogScan* log = nullptr;
  const Hit* hit = nullptr;

  int rank() const { return hit->rank >= 0 ? hit->rank : log->rank; }
};

/// Whether the hit can be a root cause by its rule: no end without a reason, and no effect.
inline bool is_cause(const Hit& hit) {
  return hit.rule->failure_class == FailureClass::root || hit.rule->failure_class == FailureClass::general;
}
inline bool is_cause(const Suspect& suspect) { return is_cause(*suspect.hit); }

}  // namespace stoker::diagnose
