// The files that are sent to another machine with a job: files that git tracks or does not ignore, as for a
// code snapshot. Outside a repository, all files that look like code. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::launch {

struct FilesToSend {
  std::string below;                  ///< the inspected folder, relative to `here`; "" for `here`
  std::vector<std::string> files;     ///< relative to `here`, sorted
  std::vector<std::string> left_out;  ///< files over the size limit
  std::vector<std::string> secret;    ///< files that usually hold secrets: .env
  std::uint64_t bytes = 0;
};

/// The files around `job`, a job file or script below `here`. Invalid when it is elsewhere, or when the files
/// exceed the limits; NotFound when it does not exist.
Result<FilesToSend> list_files_to_send(const std::string& job, const Path& here);

/// A tar of them, in an unnamed file. `here` as above.
Result<File> pack_files_to_send(const FilesToSend& what, const Path& here);

}  // namespace stoker::launch
