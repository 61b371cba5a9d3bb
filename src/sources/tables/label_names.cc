#include "sources/tables/label_names.h"

#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using Json = nlohmann::json;

const Json* member(const Json* json, const std::string& key) {
  if (json == nullptr || !json->is_object()) return nullptr;
  const auto found = json->find(key);
  return found == json->end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> class_label_names(std::string_view hub_metadata, std::string_view column) {
  if (hub_metadata.empty()) return {};
  const auto json = parse_json<Json>(hub_metadata);
  const Json* const features = member(member(&json, "info"), "features");
  const Json* feature = member(features, std::string(column));
  if (feature == nullptr) {
    feature = features;
    for (const std::string_view part : split(column, '.')) feature = member(feature, std::string(part));
  }
  const Json* const type = member(feature, "_type");
  const Json* const names = member(feature, "names");
  if (type == nullptr || *type != "ClassLabel" || names == nullptr || !names->is_array()) return {};
  std::vector<std::string> found;
  for (const Json& name : *names) {
    if (!name.is_string()) return {};
    found.push_back(name.get<std::string>());
  }
  return found;
}

}  // namespace stoker::sources
