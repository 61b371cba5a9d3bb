// Files of the checkout for unit tests, wherever they are started. No state.
#pragma once

#include <filesystem>

#include "base/file.h"

namespace stoker {

/// `name` in the checkout: the build folder is inside it, so one of the program's parent folders has the
/// file.
inline Path in_checkout(const Path& name) {
  Path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!path_exists(folder / name) && folder.has_relative_path()) folder = folder.parent_path();
  return folder / name;
}

}  // namespace stoker
