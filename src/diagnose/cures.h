// The texts of a rule about its match: the cause, and a cure and a command in the terms of what the user has:
// a job file, a batch script, or just a log. Internal to this folder. Thread-safe: no state.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/language/message.h"
#include "diagnose/failure.h"
#include "diagnose/scan.h"

namespace stoker::diagnose {

/// A cure of rules in other terms. An empty text is the same as `cure`.
struct CureVariants {
  std::string_view cure;      ///< as in the rules: for logs, and for scripts without `script`
  std::string_view script;    ///< for batch scripts
  std::string_view job_file;  ///< for submitted job files
  std::string_view local;     ///< on this machine, without Slurm
};

/// All cures with other terms.
std::span<const CureVariants> cure_table();

/// Fills the groups of a match into a text of its rule.
Message rule_text(std::string_view text, const Hit& hit, const FailureFacts& facts);

/// How to fix it; may be empty.
Message cure_of(const Hit& hit, const FailureFacts& facts);

/// A command that confirms the cause; empty if it needs something that is lacking there.
std::string confirmation_of(const Hit& hit, const FailureFacts& facts);

}  // namespace stoker::diagnose
