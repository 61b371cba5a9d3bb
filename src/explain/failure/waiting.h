// What would let a pending job start sooner, by the reason that Slurm gives. Used by `stoker explain`.
// Thread-safe: no state.
#pragma once

#include <span>
#include <string_view>

namespace stoker::explain {

/// Why a job waits and what a person may do about it.
struct WaitingRule {
  std::string_view reason;  ///< Slurm's word; one that ends in '*' stands for all that begin so
  std::string_view sooner;  ///< what would let it start sooner, or at all
  bool is_for_ever;         ///< it will not start unless something is changed
};

/// Nothing for a reason without a rule of its own.
const WaitingRule* waiting_rule(std::string_view reason);
std::span<const WaitingRule> waiting_rules();

}  // namespace stoker::explain
