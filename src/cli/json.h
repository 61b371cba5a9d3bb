// How commands write their one JSON value.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stoker::cli {

/// On one line. Bytes that are no UTF-8, as a path may have, become U+FFFD: JSON has no word for them.
inline std::string dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace stoker::cli
