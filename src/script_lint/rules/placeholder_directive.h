// Placeholders in option values. Part of the rule placeholder; internal to this folder.
#pragma once

#include <optional>
#include <string>

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// "[account]", "ACCOUNT" for an account, "def-user", "N" for a count; nothing without one.
std::optional<std::string> placeholder_in_directive(const Directive& directive);

}  // namespace stoker::script_lint
