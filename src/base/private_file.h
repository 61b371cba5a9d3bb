// Files that only their owner may read. Used for records with values of the environment. Functions without
// state. Thread-safe.
#pragma once

#include <string_view>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker {

/// Who may read a new file: everybody whom the umask allows, or only its owner (mode 600).
enum class Access { umask, owner };

/// write_file() with that access from the start.
Status write_file(const Path& path, std::string_view content, Durability durability, Access access);

}  // namespace stoker
