// Windows as the map of chunks has them in JSON. Used only inside this folder: sees nlohmann's header.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "base/json/json.h"
#include "base/status.h"
#include "format/chunked/windows.h"

namespace stoker::formats {

nlohmann::json to_json(const Windows& windows);
/// Corrupt, beginning with `subject`, for what is no such thing.
Result<Windows> parse_windows(const nlohmann::json& from, std::string_view subject);

/// Sizes or places; nothing for anything else.
std::optional<Extents> extents_in(const nlohmann::json& list);

}  // namespace stoker::formats
