// A profile as JSON: docs/commands/profile.md. Thread-safe: no state.
#pragma once

#include <string>

#include "profile/profile.h"

namespace stoker::profile {

/// One JSON object. Messages are in English.
std::string to_json(const Profile& profile);

}  // namespace stoker::profile
