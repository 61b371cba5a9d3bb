// What of a folder goes to another machine with a job: what git knows or does not ignore, as a snapshot of
// the code would have it; outside of a repository all that looks like code. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::launch {

struct ToSend {
  std::string below;                  ///< the folder that was looked at, relative to `here`; "" for `here`
  std::vector<std::string> files;     ///< relative to `here`, sorted
  std::vector<std::string> left_out;  ///< those that are too large
  std::uint64_t bytes = 0;
};

/// The files around `job`, a job file or script that `here` or a folder below has, named from there. Invalid
/// when it lies elsewhere, or when there are more than anybody wants to send with each job; NotFound when
/// there is none.
Result<ToSend> list_to_send(const std::string& job, const Path& here);

/// A tar of them, in a file without a name. `here` as above.
Result<File> pack_to_send(const ToSend& what, const Path& here);

/// In a folder that came over ssh: the names of all files that were sent there.
inline constexpr std::string_view kSentName = ".stoker-sent";
Status write_sent(const Path& folder, const std::vector<std::string>& files);
/// NotFound where none were. Names that lead out of the folder are left out.
Result<std::vector<std::string>> read_sent(const Path& folder);

}  // namespace stoker::launch
