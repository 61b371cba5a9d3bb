// What in the value of an option says that it is to be filled in. Part of the rule placeholder; internal to
// this folder.
#pragma once

#include <optional>
#include <string>

#include "explain/script/rule.h"

namespace stoker::explain {

/// "[account]", "ACCOUNT" for an account, "def-user", "N" for a count; nothing without one.
std::optional<std::string> left_in_directive(const Directive& directive);

}  // namespace stoker::explain
