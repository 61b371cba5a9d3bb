#include "job/json_schema.h"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "job/settings.h"

namespace stoker::job {
namespace {

using config::Setting;
using config::Type;
using Json = nlohmann::ordered_json;

constexpr std::string_view kDraft = "https://json-schema.org/draft/2020-12/schema";
// As config::is_name, parse_bytes and parse_duration read them.
constexpr std::string_view kNamePattern = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$";
constexpr std::string_view kSizePattern = "^([0-9]+\\.?[0-9]*|\\.[0-9]+) *([KkMmGgTtPp][Ii]?)?[Bb]$";
constexpr std::string_view kDurationPattern =
    "^(([0-9]+\\.?[0-9]*|\\.[0-9]+)(d|h|min|m|s|ms|us|ns))+$|^([0-9]+-)?[0-9]+(:[0-9]+){1,2}$";
constexpr std::string_view kReferencePattern = "\\$\\{";

Json reference_to(std::string_view definition) { return {{"$ref", format("#/$defs/{}", definition)}}; }

// Null removes a value; a reference may be written in place of any value.
Json or_reference(Json schema) {
  return {{"anyOf", Json::array({std::move(schema), reference_to("reference")})}};
}

Json number_schema(const Setting& setting, std::string_view type) {
  Json schema = {{"type", type}};
  const auto bound = [](double value) {
    const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
    return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
  };
  if (std::isfinite(setting.at_least)) schema["minimum"] = bound(setting.at_least);
  if (std::isfinite(setting.at_most)) schema["maximum"] = bound(setting.at_most);
  return schema;
}

// "never", "auto" or a count of a unit, whose plural is declared.
Json interval_schema(const Setting& setting) {
  std::string words = "never";
  std::string units;
  for (const std::string_view choice : split(setting.choices, '|')) {
    if (choice == "auto") {
      words += "|auto";
      continue;
    }
    units += (units.empty() ? "" : "|") + std::string(choice);
    if (choice.ends_with('s')) units += "?";
  }
  return {{"type", "string"}, {"pattern", format("^({}|[0-9]+ *({}))$", words, units)}};
}

Json words_schema(std::int64_t at_least) {
  return {{"type", Json::array({"string", "array", "null"})},
          {"minLength", at_least},
          {"minItems", at_least},
          {"items", {{"type", Json::array({"string", "number", "boolean"})}}}};
}

Json type_schema(const Setting& setting) {
  switch (setting.type) {
    case Type::text:
      return reference_to("text");
    case Type::path:
      return {{"$ref", "#/$defs/text"}, {"minLength", 1}};
    case Type::boolean:
      return or_reference({{"type", "boolean"}});
    case Type::count:
      return or_reference(number_schema(setting, "integer"));
    case Type::number:
      return or_reference(number_schema(setting, "number"));
    case Type::size:
      return or_reference(reference_to("size"));
    case Type::duration:
      return or_reference(reference_to("duration"));
    case Type::choice:
      return or_reference({{"enum", split(setting.choices, '|')}});
    case Type::numbers:
      return {{"type", Json::array({"array", "null"})},
              {"items",
               {{"anyOf", Json::array({number_schema(setting, "number"),
                                       {{"type", "string"}, {"pattern", kReferencePattern}}})}}}};
    case Type::every:
      return {{"anyOf",
               Json::array({interval_schema(setting), reference_to("duration"), reference_to("reference")})}};
    case Type::words:
      return words_schema(1);
    case Type::texts:
      return words_schema(0);
  }
  return Json::object();
}

std::string description_of(const Setting& setting) {
  std::string text(setting.help);
  if (!setting.note.empty()) text += " " + std::string(setting.note);
  const bool has_unit = setting.type == Type::size || setting.type == Type::duration;
  if (const std::string range = config::range_text(setting); has_unit && !range.empty())
    text += format(" Range: {}.", range);
  if (!setting.unset.empty()) text += format(" Default: {}.", setting.unset);
  if (setting.is_required()) text += " Required.";
  return text;
}

// The default as the file has it: a number or boolean where the setting is one.
Json default_of(const Setting& setting) {
  const std::string text(setting.fallback);
  const bool is_plain =
      setting.type == Type::boolean || setting.type == Type::count || setting.type == Type::number;
  return is_plain ? parse_json<Json>(text) : Json(text);
}

Json setting_schema(const Setting& setting) {
  Json schema = {{"description", description_of(setting)}};
  if (!setting.fallback.empty()) schema["default"] = default_of(setting);
  schema.update(type_schema(setting));
  return schema;
}

// A setting, a group of keys, or either of them (`run`). REQUIRES: the path leads to declared settings.
Json schema_at(const std::string& path) {
  const config::KeyKind kind = schema().find(path);
  if (!kind.is_group) return setting_schema(*kind.setting);
  const std::string prefix = path.empty() ? "" : path + ".";
  Json group = {{"type", path.empty() ? Json("object") : Json::array({"object", "null"})}};
  for (const std::string_view key : schema().children(path))
    group["properties"][std::string(key)] = schema_at(prefix + std::string(key));
  group["additionalProperties"] = kind.allows_any_name ? schema_at(prefix + "*") : Json(false);
  if (kind.allows_any_name) group["propertyNames"] = {{"pattern", kNamePattern}};
  if (kind.setting == nullptr) return group;
  return {{"anyOf", Json::array({setting_schema(*kind.setting), std::move(group)})}};
}

Json definitions() {
  return {
      {"text", {{"type", Json::array({"string", "number", "boolean", "null"})}}},
      {"size",
       {{"description", "A byte count with its unit: 64GB, 4MiB."},
        {"type", "string"},
        {"pattern", kSizePattern}}},
      {"duration",
       {{"description", "A duration with its unit, or hours:minutes:seconds: 90s, 20h, 1h30m, 1:30:00."},
        {"type", "string"},
        {"pattern", kDurationPattern}}},
      {"reference",
       {{"description", "A reference to another key, as in ${params.lr}; null removes the value."},
        {"type", Json::array({"string", "null"})},
        {"pattern", kReferencePattern}}},
  };
}

}  // namespace

std::string json_schema() {
  Json json = {{"$schema", kDraft}, {"title", "Stoker job file"}};
  json.update(schema_at(""));
  json["$defs"] = definitions();
  return json_text(json, 2);
}

}  // namespace stoker::job
