// Values and parameters of a space as JSON: in study.json, in tables, and for Optuna. Pure functions.
#pragma once

#include "base/json/json.h"
#include "sweep/space/space.h"

namespace stoker::sweep {

nlohmann::ordered_json json_of(const Value& value);
/// {"lr": 0.1}.
nlohmann::ordered_json json_of(const Assignment& values);
/// {"name", "values"} or {"name", "min", "max", "integer", "log", "step"}; with {"when": {"name", "values"}}.
nlohmann::ordered_json json_of(const Parameter& parameter);

/// The value of a boolean, number or string; else nullopt.
std::optional<Value> value_from_json(const nlohmann::ordered_json& json);

}  // namespace stoker::sweep
