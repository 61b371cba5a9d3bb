// The user and the host of this process.
#pragma once

#include <string>

namespace stoker {

/// Login name of the user, or the numeric id if there is no name. Not thread-safe, because getpwuid is not.
std::string user_name();

/// Name of this host, with or without its domain as configured; "" without a name. Thread-safe.
std::string host_name();

}  // namespace stoker
