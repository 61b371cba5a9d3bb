// A profile as text for a terminal. Thread-safe: no state.
#pragma once

#include <string>

#include "base/language/translator.h"
#include "profile/profile.h"

namespace stoker::profile {

/// A screen without control characters except newlines.
std::string to_plain_text(const Profile& profile, const Translator& words);

}  // namespace stoker::profile
