// Advice for pending jobs by Slurm's reason. Used by `stoker explain`. Thread-safe: no state.
#pragma once

#include <span>
#include <string_view>

namespace stoker::diagnose {

/// Advice for one reason.
struct PendingRule {
  std::string_view reason;  ///< Slurm's reason; '*' matches any text
  std::string_view remedy;  ///< how to start the job sooner, or at all
  bool needs_change;        ///< the job never starts without a change
};

/// Null for an unknown reason.
const PendingRule* find_pending_rule(std::string_view reason);
std::span<const PendingRule> pending_rules();

}  // namespace stoker::diagnose
