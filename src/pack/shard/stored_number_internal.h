// Integers in the JSON that a pack stores for its next call. Internal to this folder. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>

#include "base/json/json.h"

namespace stoker::pack {

/// Throws nlohmann's exception unless `json` is a non-negative integer. Its own conversion would accept
/// fractions and wrap large numbers.
inline std::uint64_t stored_number(const nlohmann::ordered_json& json) {
  return json.get_ref<const nlohmann::ordered_json::number_unsigned_t&>();
}
/// 32-bit version; saturates.
inline std::uint32_t stored_number_32(const nlohmann::ordered_json& json) {
  const std::uint64_t number = stored_number(json);
  return number > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(number);
}
/// A list of three.
inline std::array<std::uint64_t, 3> stored_numbers(const nlohmann::ordered_json& json) {
  return {stored_number(json.at(0)), stored_number(json.at(1)), stored_number(json.at(2))};
}

}  // namespace stoker::pack
