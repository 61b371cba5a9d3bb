// Windows as JSON in the chunk map. Used only inside this folder, because it includes nlohmann's header.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "base/json/json.h"
#include "codec/chunks/windows.h"
#include "stoker/status.h"

namespace stoker::codec {

nlohmann::json to_json(const Windows& windows);
/// Corrupt, beginning with `subject`, for invalid input.
Result<Windows> parse_windows(const nlohmann::json& from, std::string_view subject);

/// Sizes or positions; nullopt for anything else.
std::optional<Extents> parse_extents(const nlohmann::json& list);

}  // namespace stoker::codec
