// Made-up installations for the tests of this room: programs are shell scripts.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"

namespace stoker::trainers {

/// Writes an executable shell script.
inline void write_program(const Path& path, const std::string& body) {
  std::filesystem::create_directories(path.parent_path());
  (void)write_file(path, "#!/bin/sh\n" + body + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

/// A torch of this version, complete enough to be found and compiled with.
inline Path write_torch(const Path& folder, const std::string& version) {
  std::filesystem::create_directories(folder / "lib");
  std::filesystem::create_directories(folder / "include/ATen/core");
  (void)write_file(folder / "version.py", "__version__ = '" + version + "'\n");
  (void)write_file(folder / "lib/libtorch_cpu.so", "");
  (void)write_file(folder / "include/ATen/core/Tensor.h", "");
  return folder;
}

/// A Python that has the torch in `folder`, or none.
inline void write_python(const Path& path, const Path& folder) {
  write_program(path, "echo " + (folder.empty() ? "" : (folder / "__init__.py").string()));
}

}  // namespace stoker::trainers
