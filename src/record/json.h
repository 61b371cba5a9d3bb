// Reads JSON files written by Stoker that may be damaged. Only for .cc files of this room, because it
// includes nlohmann.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json/json.h"

namespace stoker::record {

using Json = nlohmann::ordered_json;

/// The object in `file` (at most 64 MiB), or NotFound, or Corrupt "<file>: not a JSON object".
inline Result<Json> read_json_object(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file));
  Json object = parse_json<Json>(text);
  if (!object.is_object()) return corrupt("{}: not a JSON object", printable(file.string()));
  return object;
}

/// Text for the disk: two spaces of indentation, invalid UTF-8 replaced, a newline at the end.
inline std::string to_file_text(const Json& object) { return json_text(object, 2) + "\n"; }

inline std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

inline std::int64_t integer_of(const Json& object, const char* key, std::int64_t otherwise = 0) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return otherwise;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return otherwise;
  return found->get<std::int64_t>();
}

inline double number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

inline std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& item : *found) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

/// {"a": "b", ...} in file order.
inline std::vector<std::pair<std::string, std::string>> pairs_of(const Json& object, const char* key) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return pairs;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) pairs.emplace_back(name, value.get<std::string>());
  }
  return pairs;
}

inline Json to_json_object(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

}  // namespace stoker::record
