// Shared by the commands of `stoker lab`.
#pragma once

#include <string>

#include "cli/arguments.h"

namespace stoker::cli {

/// Declares --name.
inline void add_lab_name(Arguments& arguments, std::string* name) {
  arguments.option("--name", name, "NAME", "Select the lab");
}

}  // namespace stoker::cli
