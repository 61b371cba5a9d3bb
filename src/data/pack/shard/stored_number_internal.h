// Whole numbers of the JSON that a packing leaves for the next one. Internal to this room. Thread-safe: no
// state.
#pragma once

#include <array>
#include <cstdint>

#include "base/json/json.h"

namespace stoker::data {

/// What `json` holds. Throws nlohmann's exception for what is no whole number from 0 on: a fraction, or one
/// too large, which its own conversion would make another number of, or none.
inline std::uint64_t stored_number(const nlohmann::ordered_json& json) {
  return json.get_ref<const nlohmann::ordered_json::number_unsigned_t&>();
}
/// The same of 32 bits; of a larger one the largest.
inline std::uint32_t stored_number_32(const nlohmann::ordered_json& json) {
  const std::uint64_t number = stored_number(json);
  return number > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(number);
}
/// The same of a list of three.
inline std::array<std::uint64_t, 3> stored_numbers(const nlohmann::ordered_json& json) {
  return {stored_number(json.at(0)), stored_number(json.at(1)), stored_number(json.at(2))};
}

}  // namespace stoker::data
