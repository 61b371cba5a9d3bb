// Protocol of a batch, so that no point is lost and none is stored twice:
//   1. the state on disk has the batch as pending
//   2. each request has a tag with the number of the batch and the points of it that are then delivered.
//      MLflow stores the tags of a request after its metrics
//   3. the next state on disk has the batch as done
// After an unclear end (killed, no answer) the tag shows which requests arrived. If a server died between
// metrics and tag, the repeated metrics are equal in all columns, and its database keeps one of each.
#include "track/mlflow/mlflow_tracker.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "base/json/json.h"
#include "stoker/text.h"
#include "track/mlflow/mlflow_names.h"
#include "track/mlflow/mlflow_registry.h"
#include "track/mlflow/mlflow_server.h"

namespace stoker::track {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kRunId = "run_id";
constexpr std::string_view kArtifacts = "artifact_uri";
constexpr std::string_view kParamsSent = "params";
constexpr std::string_view kInputsSent = "inputs";
constexpr std::string_view kModel = "model";
constexpr const char* kDeliveredTag = "stoker.delivered";
constexpr const char* kRunTag = "stoker.run";
constexpr std::size_t kLargestRequest = 900'000;  // bytes; the server accepts 1 MB
constexpr std::size_t kParamsOfRequest = 100;
constexpr std::size_t kMostNotes = 20;  // the results have the number of the refused items
constexpr std::string_view kArtifactScheme = "mlflow-artifacts:";

std::int64_t milliseconds(double unix_s) {
  return static_cast<std::int64_t>(std::clamp(unix_s, 0.0, 1e14) * 1000);
}

Json tag(std::string_view key, const std::string& value) {
  return {{"key", std::string(key)}, {"value", clipped(value, kLongestTag)}};
}

std::string text_at(const Json& object, const std::vector<const char*>& path) {
  const Json* at = &object;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

Json object_of(const MlflowServer::Answer& answer) {
  Json json = parse_json<Json>(answer.body);
  return json.is_object() ? json : Json::object();
}

// The tag of the last request that arrived.
struct Delivered {
  std::uint64_t batch = 0;
  std::uint64_t points = 0;
};
Delivered delivered_in(const Json& run) {
  const auto data = run.is_object() ? run.find("data") : run.end();
  if (!run.is_object() || data == run.end() || !data->is_object()) return {};
  for (const Json& each : data->value("tags", Json::array())) {
    if (text_at(each, {"key"}) != kDeliveredTag) continue;
    const std::string value = text_at(each, {"value"});
    const std::size_t slash = std::min(value.find('/'), value.size());
    Delivered delivered;
    const bool is_readable = parse_number(std::string_view(value).substr(0, slash), &delivered.batch) &&
                             slash < value.size() &&
                             parse_number(std::string_view(value).substr(slash + 1), &delivered.points);
    return is_readable ? delivered : Delivered();
  }
  return {};
}

std::string status_of(const TrackedRun& run) {
  if (!run.has_ended()) return "RUNNING";
  if (run.state.state == record::State::done) return "FINISHED";
  return run.state.state == record::State::stopped ? "KILLED" : "FAILED";
}

std::vector<Json> tags_of(const TrackedRun& run) {
  const record::RunDescription& what = run.folder.description();
  std::vector<Json> tags = {tag(kRunTag, run.name()),
                            tag("mlflow.runName", run.name()),
                            tag("mlflow.user", what.user),
                            tag("mlflow.source.name", run.command()),
                            tag("mlflow.source.type", "JOB"),
                            tag("stoker.folder", run.folder.folder().string()),
                            tag("stoker.ranks", format("{}", what.world_size)),
                            tag("stoker.hosts", join(what.hosts, ","))};
  if (!what.git.empty()) tags.push_back(tag("mlflow.source.git.commit", what.git));
  if (!what.scheduler_job.empty()) tags.push_back(tag("slurm.job", what.scheduler_job));
  return tags;
}

class MlflowTracker final : public Tracker {
 public:
  MlflowTracker(HttpOptions http, std::string experiment, ModelChoice model, NoteSink note);

  Status begin(const TrackedRun& run, TrackState& state) override;
  Status deliver(const PointBatch& batch, bool is_repeated, TrackState& state) override;
  Status end(const TrackedRun& run, TrackState& state) override;
  std::size_t batch_limit() const override { return 999; }
  bool needs_pending() const override { return true; }

 private:
  /// Items of one list of runs/log-batch: "metrics", "params" or "tags".
  struct Items {
    std::string_view list;
    std::vector<Json> items;
    std::size_t accepted = 0;
    std::size_t refused = 0;
    std::string problem;  ///< of the last refused one
  };

  Status find_or_create(const TrackedRun& run, TrackState& state);
  Result<std::string> experiment_id();
  Status create_run(const TrackedRun& run, const std::string& experiment, TrackState& state);
  Status send_params(const TrackedRun& run, TrackState& state);
  Status send_changes(const TrackedRun& run, const TrackState& state);
  Status send_inputs(const TrackedRun& run, TrackState& state);
  /// The root of the artifacts below the server's, or "" and a note once that `what` cannot be sent.
  std::string artifact_root(const TrackState& state, std::string_view what);
  Status send_artifacts(const TrackedRun& run, const TrackState& state);
  Status send_images(const PointBatch& batch, TrackState& state);
  Status send_model(const TrackedRun& run, TrackState& state);
  Status update_status(const TrackedRun& run, const TrackState& state);
  Result<std::size_t> delivered_of(const TrackState& state);
  Status check_active(const std::string& run_id);
  Status send_all(Items& items, const TrackState& state, std::size_t before);
  Status send(Items& items, std::size_t begin, std::size_t end, const Json& request);
  Json metric_of(const TrackedPoint& point);
  Status must_succeed(const MlflowServer::Answer& answer, std::string_view what) const;

  MlflowServer server_;
  std::string experiment_;
  ModelChoice model_;
  NoteSink note_;
  MlflowKeys keys_;
  std::set<std::string> noted_;  ///< what artifact_root() named
  std::size_t notes_ = 0;        ///< about refused items
  std::size_t largest_ = 999;    ///< items of a request; less for a server that refuses large requests
};

MlflowTracker::MlflowTracker(HttpOptions http, std::string experiment, ModelChoice model, NoteSink note)
    : server_(std::move(http)),
      experiment_(std::move(experiment)),
      model_(std::move(model)),
      note_(note),
      keys_(std::move(note)) {}

Status MlflowTracker::must_succeed(const MlflowServer::Answer& answer, std::string_view what) const {
  if (answer.is_ok()) return {};
  return invalid("{}: {}: HTTP {}{}", server_.address(), what, answer.status,
                 answer.message.empty() ? "" : ": " + answer.message);
}

Status MlflowTracker::begin(const TrackedRun& run, TrackState& state) {
  if (state.value(kRunId).empty()) STOKER_RETURN_IF_ERROR(find_or_create(run, state));
  if (state.value(kParamsSent).empty()) STOKER_RETURN_IF_ERROR(send_params(run, state));
  STOKER_RETURN_IF_ERROR(send_changes(run, state));
  return run.has_ended() ? Status() : update_status(run, state);
}

// The run may exist: a process was killed after its request.
Status MlflowTracker::find_or_create(const TrackedRun& run, TrackState& state) {
  STOKER_ASSIGN_OR_RETURN(experiment, experiment_id());
  const Json search = {{"experiment_ids", {experiment}},
                       {"filter", format("tags.`{}` = '{}'", kRunTag, run.name())},
                       {"max_results", 1}};
  STOKER_ASSIGN_OR_RETURN(found, server_.call("runs/search", json_ascii(search)));
  STOKER_RETURN_IF_ERROR(must_succeed(found, "runs/search"));
  const Json runs = object_of(found).value("runs", Json::array());
  if (!runs.is_array() || runs.empty()) return create_run(run, experiment, state);
  state.values.insert_or_assign(std::string(kRunId), text_at(runs.front(), {"info", "run_id"}));
  state.values.insert_or_assign(std::string(kArtifacts), text_at(runs.front(), {"info", "artifact_uri"}));
  // Its tag must not seem to be that of a later batch.
  state.batch = delivered_in(runs.front()).batch;
  return {};
}

Result<std::string> MlflowTracker::experiment_id() {
  const std::string query = "experiments/get-by-name?experiment_name=" + url_encoded(experiment_);
  STOKER_ASSIGN_OR_RETURN(known, server_.get(query));
  if (known.is_ok()) {
    if (text_at(object_of(known), {"experiment", "lifecycle_stage"}) == "deleted") {
      return invalid("{}: experiment '{}' is deleted (record.mlflow_experiment)", server_.address(),
                     printable(experiment_));
    }
    return text_at(object_of(known), {"experiment", "experiment_id"});
  }
  STOKER_ASSIGN_OR_RETURN(made, server_.call("experiments/create", json_ascii(Json{{"name", experiment_}})));
  if (made.is_ok()) return text_at(object_of(made), {"experiment_id"});
  // A different run has made it in the meantime.
  STOKER_ASSIGN_OR_RETURN(again, server_.get(query));
  STOKER_RETURN_IF_ERROR(must_succeed(again.is_ok() ? again : made, "experiments/create"));
  return text_at(object_of(again), {"experiment", "experiment_id"});
}

Status MlflowTracker::create_run(const TrackedRun& run, const std::string& experiment, TrackState& state) {
  const record::RunDescription& what = run.folder.description();
  const Json body = {{"experiment_id", experiment},
                     {"user_id", what.user},
                     {"run_name", run.name()},
                     {"start_time", milliseconds(what.created)},
                     {"tags", tags_of(run)}};
  STOKER_ASSIGN_OR_RETURN(made, server_.call("runs/create", json_ascii(body)));
  STOKER_RETURN_IF_ERROR(must_succeed(made, "runs/create"));
  const std::string id = text_at(object_of(made), {"run", "info", "run_id"});
  if (id.empty()) return unavailable("{}: runs/create: the answer has no run_id", server_.address());
  state.values.insert_or_assign(std::string(kRunId), id);
  state.values.insert_or_assign(std::string(kArtifacts),
                                text_at(object_of(made), {"run", "info", "artifact_uri"}));
  return {};
}

// MLflow's params never change, so later attempts do not send theirs.
Status MlflowTracker::send_params(const TrackedRun& run, TrackState& state) {
  Items params{.list = "params", .items = {}, .problem = {}};
  for (const auto& [name, value] : run.params) {
    if (value.size() > kLongestParam)
      note_(format("mlflow: param '{}' is cut to {} bytes", printable(name), kLongestParam));
    params.items.push_back({{"key", keys_.key_of(name)}, {"value", clipped(value, kLongestParam)}});
  }
  const Json request = {{"run_id", state.value(kRunId)}};
  for (std::size_t begin = 0; begin < params.items.size(); begin += kParamsOfRequest)
    STOKER_RETURN_IF_ERROR(
        send(params, begin, std::min(begin + kParamsOfRequest, params.items.size()), request));
  state.refused += params.refused;
  state.values.insert_or_assign(std::string(kParamsSent), "sent");
  return {};
}

Status MlflowTracker::send_changes(const TrackedRun& run, const TrackState& state) {
  Items tags{.list = "tags", .items = {}, .problem = {}};
  for (const auto& [name, value] : run.changes) tags.items.push_back(tag(mlflow_key(name), value));
  const Json request = {{"run_id", state.value(kRunId)}};
  for (std::size_t begin = 0; begin < tags.items.size(); begin += kParamsOfRequest)
    STOKER_RETURN_IF_ERROR(send(tags, begin, std::min(begin + kParamsOfRequest, tags.items.size()), request));
  return {};
}

Status MlflowTracker::send_inputs(const TrackedRun& run, TrackState& state) {
  if (run.data.empty() || !state.value(kInputsSent).empty()) return {};
  Json datasets = Json::array();
  for (const record::DataInfo& data : run.data) {
    const Json source = {{"uri", data.source}};
    const Json profile = {
        {"samples", data.samples}, {"shards", data.shards}, {"bytes", data.bytes}, {"version", data.version}};
    datasets.push_back(
        {{"tags", {{{"key", "mlflow.data.context"}, {"value", data.name}}}},
         {"dataset",
          {{"name", Path(data.source).filename().string() + (data.split.empty() ? "" : "/" + data.split)},
           {"digest", data.version.substr(0, 36)},
           {"source_type", "local"},
           {"source", json_text(source)},
           {"profile", json_text(profile)}}}});
  }
  const Json body = {{"run_id", state.value(kRunId)}, {"datasets", datasets}};
  STOKER_ASSIGN_OR_RETURN(answer, server_.call("runs/log-inputs", json_ascii(body)));
  if (!answer.is_ok())
    note_(format("mlflow: datasets are not accepted: HTTP {} {}", answer.status, answer.message));
  state.values.insert_or_assign(std::string(kInputsSent), "sent");
  return {};
}

Status MlflowTracker::update_status(const TrackedRun& run, const TrackState& state) {
  Json body = {{"run_id", state.value(kRunId)}, {"status", status_of(run)}};
  if (run.has_ended()) body["end_time"] = milliseconds(run.state.ended);
  STOKER_ASSIGN_OR_RETURN(answer, server_.call("runs/update", json_ascii(body)));
  if (!answer.is_ok()) STOKER_RETURN_IF_ERROR(check_active(state.value(kRunId)));
  return must_succeed(answer, "runs/update");
}

// A server without a proxy for artifacts stores them where only its own client can write.
std::string MlflowTracker::artifact_root(const TrackState& state, std::string_view what) {
  std::string root = state.value(kArtifacts);
  if (!root.starts_with(kArtifactScheme)) {
    if (noted_.insert(std::string(what)).second) {
      note_(format("mlflow: {} are not sent: the artifacts of the server are in {}", what, printable(root)));
    }
    return "";
  }
  // mlflow-artifacts:/1/RUN/artifacts, or with a host after two slashes.
  root.erase(0, kArtifactScheme.size());
  if (root.starts_with("//")) root.erase(0, std::min(root.find('/', 2), root.size()));
  while (root.starts_with('/')) root.erase(0, 1);
  return root;
}

// A repeated upload replaces the file.
Status MlflowTracker::send_images(const PointBatch& batch, TrackState& state) {
  for (const TrackedMedia& media : batch.media) {
    const record::LoggedImage* image = media.record.image();
    if (image == nullptr) continue;
    const std::string root = artifact_root(state, "images");
    const std::string path = ("images" / file_path_of(media)).string();
    const Status sent = root.empty() ? Status() : server_.upload(root + "/" + path, image->bytes);
    if (!sent.ok() && sent.code() != Code::invalid) return sent;
    if (!root.empty() && sent.ok()) continue;
    ++state.refused;
    if (!sent.ok() && ++notes_ <= kMostNotes)
      note_(format("mlflow: {} is not sent: {}", path, sent.message()));
  }
  return {};
}

Status MlflowTracker::send_artifacts(const TrackedRun& run, const TrackState& state) {
  const std::string root = artifact_root(state, "job.yaml and report.html");
  if (root.empty()) return {};
  for (const Path& file : {run.folder.job(), run.folder.report()}) {
    const auto text = read_file(file);
    if (!text.ok()) continue;
    if (record::access_of(*text) == Access::owner) {
      note_(format("mlflow: {} is not sent: it contains variables or secrets", file.filename().string()));
      continue;
    }
    const Status sent = server_.upload(root + "/" + file.filename().string(), file);
    if (sent.code() == Code::invalid)
      note_(format("mlflow: {} is not sent: {}", file.filename().string(), sent.message()));
    if (!sent.ok() && sent.code() != Code::invalid) return sent;
  }
  return {};
}

Status MlflowTracker::end(const TrackedRun& run, TrackState& state) {
  if (!run.has_ended()) return {};
  STOKER_RETURN_IF_ERROR(send_inputs(run, state));
  STOKER_RETURN_IF_ERROR(send_artifacts(run, state));
  STOKER_RETURN_IF_ERROR(send_model(run, state));
  return update_status(run, state);
}

// A model that the server refuses does not keep the state of the run from it.
Status MlflowTracker::send_model(const TrackedRun& run, TrackState& state) {
  if (model_.name.empty() || run.state.state != record::State::done) return {};
  const std::string root = artifact_root(state, "files of the model");
  if (root.empty()) return {};
  const auto files = run.task ? Result<ModelFiles>(invalid("a task of an array")) : find_model_files(model_);
  auto version = files.ok() ? register_model(server_, model_.name, *files,
                                             {state.value(kRunId), state.value(kArtifacts), root})
                            : Result<std::string>(files.status());
  if (version.ok()) {
    const std::string known = format("{}/{}", *version, files->label);
    if (state.value(kModel) != known)
      note_(format("mlflow: {} is version {} of model '{}'", printable(files->label), *version,
                   printable(model_.name)));
    state.values.insert_or_assign(std::string(kModel), known);
    return {};
  }
  const Status problem = version.status();
  if (problem.code() == Code::unavailable || problem.code() == Code::timeout) return problem;
  note_(format("mlflow: model '{}' is not registered: {}", printable(model_.name), problem.message()));
  return {};
}

Json MlflowTracker::metric_of(const TrackedPoint& point) {
  Json value = point.value;
  if (std::isnan(point.value)) value = "NaN";
  if (std::isinf(point.value)) value = point.value > 0 ? "Infinity" : "-Infinity";
  return {{"key", keys_.key_of(name_with_rank(point))},
          {"value", std::move(value)},
          {"timestamp", milliseconds(point.time)},
          {"step", point.step.value_or(0)}};
}

// How many points of the pending batch have arrived.
Result<std::size_t> MlflowTracker::delivered_of(const TrackState& state) {
  STOKER_ASSIGN_OR_RETURN(answer, server_.get("runs/get?run_id=" + url_encoded(state.value(kRunId))));
  STOKER_RETURN_IF_ERROR(must_succeed(answer, "runs/get"));
  const Delivered delivered = delivered_in(object_of(answer).value("run", Json::object()));
  return delivered.batch == state.batch ? delivered.points : std::size_t{0};
}

Status MlflowTracker::deliver(const PointBatch& batch, bool is_repeated, TrackState& state) {
  std::vector<TrackedPoint> points = batch.points;
  for (const TrackedMedia& media : batch.media) {
    for (TrackedPoint& point : points_of(media)) points.push_back(std::move(point));
  }
  std::size_t before = 0;
  if (is_repeated) {
    STOKER_ASSIGN_OR_RETURN(arrived, delivered_of(state));
    before = std::min(arrived, points.size());
  }
  Items metrics{.list = "metrics", .items = {}, .problem = {}};
  for (std::size_t i = before; i < points.size(); ++i) metrics.items.push_back(metric_of(points[i]));
  STOKER_RETURN_IF_ERROR(send_all(metrics, state, before));
  state.refused += metrics.refused;
  return send_images(batch, state);
}

Status MlflowTracker::send_all(Items& items, const TrackState& state, std::size_t before) {
  for (std::size_t begin = 0; begin < items.items.size();) {
    std::size_t end = begin;
    for (std::size_t bytes = 0; end < items.items.size() && end - begin < largest_; ++end) {
      bytes += items.items[end]["key"].get_ref<const std::string&>().size() + 100;
      if (bytes > kLargestRequest && end > begin) break;
    }
    const Json request = {{"run_id", state.value(kRunId)},
                          {"tags", {tag(kDeliveredTag, format("{}/{}", state.batch, before + end))}}};
    STOKER_RETURN_IF_ERROR(send(items, begin, end, request));
    begin = end;
  }
  // Something is wrong with the run or the server, not with single points.
  if (items.accepted == 0 && items.refused > 1)
    return invalid("{}: no point is accepted: {}", server_.address(), items.problem);
  return {};
}

// A refused request is divided until the refused items are alone.
Status MlflowTracker::send(Items& items, std::size_t begin, std::size_t end, const Json& request) {
  Json body = request;
  body[std::string(items.list)] = std::vector<Json>(items.items.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    items.items.begin() + static_cast<std::ptrdiff_t>(end));
  STOKER_ASSIGN_OR_RETURN(answer, server_.call("runs/log-batch", json_ascii(body)));
  const std::size_t count = end - begin;
  if (answer.is_ok()) {
    items.accepted += count;
    return {};
  }
  Json without_tag = request;
  without_tag.erase("tags");
  if (answer.is_too_large() && count > 1) {
    // Each request may lower the limit further.
    largest_ = std::min(largest_, count / 2);
    for (std::size_t at = begin; at < end;) {
      const std::size_t next = std::min(end, at + largest_);
      STOKER_RETURN_IF_ERROR(send(items, at, next, next == end ? request : without_tag));
      at = next;
    }
    return {};
  }
  STOKER_RETURN_IF_ERROR(check_active(request["run_id"].get<std::string>()));
  if (count == 1) {
    ++items.refused;
    items.problem = answer.message.empty() ? format("HTTP {}", answer.status) : answer.message;
    if (++notes_ <= kMostNotes)
      note_(format("mlflow: {} is not accepted: {}", json_text(items.items[begin]), items.problem));
    return {};
  }
  STOKER_RETURN_IF_ERROR(send(items, begin, begin + count / 2, without_tag));
  return send(items, begin + count / 2, end, request);
}

Status MlflowTracker::check_active(const std::string& run_id) {
  STOKER_ASSIGN_OR_RETURN(answer, server_.get("runs/get?run_id=" + url_encoded(run_id)));
  if (answer.is_ok() && text_at(object_of(answer), {"run", "info", "lifecycle_stage"}) != "deleted")
    return {};
  return not_found("{}: its run {} was deleted", server_.address(), printable(run_id));
}

}  // namespace

std::unique_ptr<Tracker> make_mlflow_tracker(HttpOptions http, std::string experiment, ModelChoice model,
                                             NoteSink note) {
  return std::make_unique<MlflowTracker>(std::move(http), std::move(experiment), std::move(model),
                                         std::move(note));
}

}  // namespace stoker::track
