// The user of this process. Not thread-safe, because getpwuid is not.
#pragma once

#include <string>

namespace stoker {

/// Login name of the user, or the numeric id if there is no name.
std::string user_name();

}  // namespace stoker
