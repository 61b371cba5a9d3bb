// `stoker lab fault heal [TARGET]`, a subcommand of `stoker lab fault`.
#pragma once

#include <string>

#include "cli/output.h"

namespace stoker::cli {

/// Heals the faults of one target, or of the whole lab for "", prints each, and returns the exit code.
int lab_heal(const std::string& lab, const std::string& target, Output& out);

}  // namespace stoker::cli
