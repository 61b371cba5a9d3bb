// The list of files that another host sent into a folder over ssh. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::launch {

/// In a folder that was sent over ssh: lists the sent files.
inline constexpr std::string_view kSentName = ".stoker-sent";
Status write_sent(const Path& folder, const std::vector<std::string>& files);
/// NotFound without such a list. Skips names that lead out of the folder.
Result<std::vector<std::string>> read_sent(const Path& folder);

}  // namespace stoker::launch
