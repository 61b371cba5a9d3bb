#include "track/mlflow/mlflow_server.h"

#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kApi = "/api/2.0/mlflow/";
constexpr std::size_t kLongestMessage = 300;

std::string message_of(const Json& body) {
  const auto found = body.is_object() ? body.find("message") : body.end();
  if (!body.is_object() || found == body.end() || !found->is_string()) return "";
  const std::string text = found->get<std::string>();
  return clipped(printable(std::string_view(text).substr(0, text.find('\n'))), kLongestMessage);
}

}  // namespace

Result<MlflowServer::Answer> MlflowServer::judge(const HttpAnswer& answer) const {
  const Json body = parse_json<Json>(answer.body);
  const int status = answer.status;
  Answer judged{status, answer.body, message_of(body)};
  const std::string detail = judged.message.empty() ? "" : ": " + judged.message;
  if (status >= 200 && status < 300) {
    if (body.is_object()) return judged;
    if (trim(answer.body).empty()) {
      judged.body = "{}";
      return judged;
    }
    return unavailable("{}: the answer is not JSON, so it is not from MLflow", address());
  }
  if (status == 413 || status == 409 || status == 400) return judged;
  if (status == 404 && body.is_object() && body.contains("error_code")) return judged;
  if (status == 401 || status == 403) {
    return invalid("{}: HTTP {}, no permission{}", address(), status, detail)
        .cure("export MLFLOW_TRACKING_TOKEN=...      (or MLFLOW_TRACKING_USERNAME and _PASSWORD)");
  }
  if (status == 408 || status == 425 || status == 429 || status >= 500 || status == 0)
    return unavailable("{}: HTTP {}{}", address(), status, detail);
  return invalid("{}: HTTP {}, expected the address of an MLflow server{}", address(), status, detail);
}

Result<MlflowServer::Answer> MlflowServer::call(std::string_view endpoint, std::string body) const {
  const HttpBody content{.text = std::move(body), .file = {}};
  STOKER_ASSIGN_OR_RETURN(answer, http_.request("POST", std::string(kApi) + std::string(endpoint), content));
  return judge(answer);
}

Result<MlflowServer::Answer> MlflowServer::get(std::string_view endpoint_and_query) const {
  STOKER_ASSIGN_OR_RETURN(answer, http_.request("GET", std::string(kApi) + std::string(endpoint_and_query)));
  return judge(answer);
}

Status MlflowServer::upload(const std::string& path, const Path& file) const {
  return put(path, {.type = "application/octet-stream", .text = "", .file = file});
}

Status MlflowServer::upload(const std::string& path, std::string bytes) const {
  return put(path, {.type = "application/octet-stream", .text = std::move(bytes), .file = {}});
}

Status MlflowServer::put(const std::string& path, const HttpBody& body) const {
  STOKER_ASSIGN_OR_RETURN(answer, http_.request("PUT", "/api/2.0/mlflow-artifacts/artifacts/" + path, body));
  if (answer.status >= 200 && answer.status < 300) return {};
  STOKER_ASSIGN_OR_RETURN(judged, judge(answer));
  return invalid("{}: HTTP {}{}", address(), judged.status,
                 judged.message.empty() ? "" : ": " + judged.message);
}

}  // namespace stoker::track
