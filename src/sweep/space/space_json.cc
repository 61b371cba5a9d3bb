#include "sweep/space/space_json.h"

namespace stoker::sweep {

namespace {

using Json = nlohmann::ordered_json;

Json json_of_list(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(json_of(value));
  return list;
}

}  // namespace

Json json_of(const Value& value) {
  return std::visit([](const auto& alternative) { return Json(alternative); }, value);
}

Json json_of(const Assignment& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_of(value);
  return json;
}

Json json_of(const Parameter& parameter) {
  Json json = {{"name", parameter.name}};
  if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) {
    json["values"] = json_of_list(choices->values);
  } else {
    const NumberRange& range = std::get<NumberRange>(parameter.domain);
    json["min"] = range.low;
    json["max"] = range.high;
    json["integer"] = range.is_integer;
    json["log"] = range.is_log;
    json["step"] = range.step;
  }
  if (parameter.when)
    json["when"] = {{"name", parameter.when->parameter}, {"values", json_of_list(parameter.when->values)}};
  return json;
}

std::optional<Value> value_from_json(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

}  // namespace stoker::sweep
