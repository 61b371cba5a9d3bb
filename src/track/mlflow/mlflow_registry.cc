#include "track/mlflow/mlflow_registry.h"

#include "base/json/json.h"
#include "stoker/text.h"
#include "track/mlflow/mlflow_names.h"

namespace stoker::track {
namespace {

using Registered = nlohmann::json;

constexpr const char* kSourceTag = "stoker.checkpoint";

std::string text_of(const Registered& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Status must_accept(const MlflowServer& server, const MlflowServer::Answer& answer, std::string_view what) {
  if (answer.is_ok()) return {};
  return invalid("{}: {}: HTTP {}{}", server.address(), what, answer.status,
                 answer.message.empty() ? "" : ": " + answer.message);
}

// "" without one.
Result<std::string> version_of(const MlflowServer& server, const std::string& name, const ModelFiles& model,
                               const std::string& run_id) {
  const std::string filter = url_encoded(format("run_id='{}'", run_id));
  STOKER_ASSIGN_OR_RETURN(found, server.get("model-versions/search?max_results=1000&filter=" + filter));
  STOKER_RETURN_IF_ERROR(must_accept(server, found, "model-versions/search"));
  const Registered answer = parse_json<Registered>(found.body);
  for (const Registered& version : answer.value("model_versions", Registered::array())) {
    if (text_of(version, "name") != name) continue;
    for (const Registered& tag : version.value("tags", Registered::array())) {
      if (text_of(tag, "key") == kSourceTag && text_of(tag, "value") == model.label)
        return text_of(version, "version");
    }
  }
  return std::string();
}

// Several runs may make the model at the same moment.
Status make_model(const MlflowServer& server, const std::string& name) {
  const std::string query = "registered-models/get?name=" + url_encoded(name);
  STOKER_ASSIGN_OR_RETURN(known, server.get(query));
  if (known.is_ok()) return {};
  STOKER_ASSIGN_OR_RETURN(made,
                          server.call("registered-models/create", json_ascii(Registered{{"name", name}})));
  if (made.is_ok()) return {};
  STOKER_ASSIGN_OR_RETURN(again, server.get(query));
  return must_accept(server, again.is_ok() ? again : made, "registered-models/create");
}

}  // namespace

Result<std::string> register_model(const MlflowServer& server, const std::string& name,
                                   const ModelFiles& model, const ModelOwner& owner) {
  STOKER_ASSIGN_OR_RETURN(known, version_of(server, name, model, owner.run_id));
  if (!known.empty()) return known;
  const std::string place = "/models/" + url_encoded(model.label);
  for (const Path& file : model.files) {
    std::string path = owner.artifact_root + place;
    for (const Path& part : file) path += "/" + url_encoded(part.string());
    STOKER_RETURN_IF_ERROR(server.upload(path, model.folder / file));
  }
  STOKER_RETURN_IF_ERROR(make_model(server, name));
  const Registered tag = {{"key", kSourceTag}, {"value", clipped(model.label, kLongestTag)}};
  const Registered body = {{"name", name},
                           {"source", owner.artifact_uri + place},
                           {"run_id", owner.run_id},
                           {"tags", Registered::array({tag})}};
  STOKER_ASSIGN_OR_RETURN(made, server.call("model-versions/create", json_ascii(body)));
  STOKER_RETURN_IF_ERROR(must_accept(server, made, "model-versions/create"));
  const Registered answer = parse_json<Registered>(made.body);
  return text_of(answer.value("model_version", Registered::object()), "version");
}

}  // namespace stoker::track
