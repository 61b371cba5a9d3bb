#include "sweep/storage/optuna_storage.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/enum_names.h"
#include "base/user.h"
#include "sweep/optuna/bridge.h"
#include "sweep/space/space_json.h"
#include "sweep/study/prior.h"

namespace stoker::sweep {

namespace {

using Json = nlohmann::ordered_json;

// Each cell of a grid is enqueued, because a storage has no other way to give it out once.
constexpr std::uint64_t kMostCells = 1'000;
// In the folder of the runs.
constexpr std::string_view kIdFile = "storage.id";

std::string location_of(const StorageUrl& url) { return format("{}#{}", url.url, url.study); }

double number_or_nan(const Json& json) { return json.is_number() ? json.get<double>() : kInactive; }
Json number_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(); }

std::string_view end_state(TrialState state) {
  if (state == TrialState::complete) return "COMPLETE";
  return state == TrialState::pruned ? "PRUNED" : "FAIL";
}

std::string text_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& list_in(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : kEmpty;
}

Assignment values_in(const Json& params) {
  Assignment values;
  if (!params.is_object()) return values;
  for (const auto& [name, json] : params.items()) {
    if (auto value = value_from_json(json)) values.emplace_back(name, *std::move(value));
  }
  return values;
}

// [[seed, [value, ...]], ...]. Anybody may have written it.
SeedValues seeds_in(const Json& row) {
  SeedValues seeds;
  for (const Json& pair : list_in(row, "seeds")) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() || !pair[1].is_array())
      continue;
    std::vector<double>& values = seeds[pair[0].get<std::uint64_t>()];
    for (const Json& value : pair[1]) values.push_back(number_or_nan(value));
  }
  return seeds;
}

class OptunaStorage final : public StudyStorage {
 public:
  OptunaStorage(StorageUrl url, const Path& folder) : url_(std::move(url)), location_(location_of(url_)) {
    if (const auto id = read_file(folder / kIdFile)) folder_id_ = trim(*id);
  }

  // `wanted`: null without a sweep file.
  Result<Json> connect(const Json& wanted, MissingStudy missing) {
    bridge_.reset();
    auto bridge = OptunaBridge::start();
    if (!bridge) return std::move(bridge).error();
    auto opened = (*bridge)->call({{"op", "open"},
                                   {"url", url_.url},
                                   {"name", url_.study},
                                   {"wanted", wanted},
                                   {"create", missing == MissingStudy::create}});
    if (!opened) return std::move(opened).error().with_context(shown_url(location_));
    if (!worker_.empty()) STOKER_RETURN_IF_ERROR(send_worker(**bridge));
    bridge_ = *std::move(bridge);
    return opened;
  }
  void set_space(const Space& space, const Json& wanted) {
    space_ = space;
    wanted_ = wanted;
  }

  const std::string& location() const override { return location_; }
  std::uint64_t outside() const override { return outside_.size(); }
  const std::string& folder_id() const override { return folder_id_; }

  // The study knows an id before the folder has it. So a folder whose id the study does not know has the runs
  // of a different study, for example of one that was deleted.
  Status bind(const Path& folder) override {
    STOKER_RETURN_IF_ERROR(make_directories(folder));
    const bool is_new = !path_exists(folder / kIdFile);
    const std::string place = format("{}:{}", host_name(), std::filesystem::absolute(folder).string());
    folder_id_ = random_name(12);
    if (is_new) {
      STOKER_RETURN_IF_ERROR(call({{"op", "bind"}, {"id", folder_id_}, {"folder", place}}).status());
      const Status written = write_new_file(folder / kIdFile, folder_id_ + "\n", Durability::synced);
      if (!written.ok() && written.code() != Code::exists) return written;
    }
    STOKER_ASSIGN_OR_RETURN(id, read_file(folder / kIdFile));
    folder_id_ = trim(id);
    STOKER_ASSIGN_OR_RETURN(answer, call({{"op", "is_bound"}, {"id", folder_id_}}));
    if (answer.value("is_bound", false)) return {};
    return invalid("{}: has the runs of a different study, and not of {}", folder, shown_url(location_))
        .cure("mv {} {}", shell_quote(folder.string()), shell_quote(folder.string() + ".old"));
  }
  Status set_worker(const std::string& name) override {
    worker_ = format("{}/{}", folder_id_, name);
    if (bridge_ && bridge_->is_own()) return send_worker(*bridge_).with_context(shown_url(location_));
    return connect(wanted_, MissingStudy::refuse).status();
  }

  Result<std::vector<StudyTrial>> read() override {
    STOKER_ASSIGN_OR_RETURN(answer, call({{"op", "read"}}));
    std::vector<StudyTrial> trials;
    for (const Json& row : list_in(answer, "trials")) {
      StudyTrial trial;
      trial.number = row.value("number", TrialNumber{0});
      const auto params = row.find("params");
      auto point = params != row.end() && params->is_object() ? space_.encode(values_in(*params))
                                                              : Result<Coordinates>(invalid("outside"));
      if (!point) {
        outside_.insert(trial.number);
        continue;
      }
      trial.point = *std::move(point);
      trial.state = enum_named<TrialState>(text_in(row, "state")).value_or(TrialState::failed);
      trial.origin = text_in(row, "origin");
      trial.worker = text_in(row, "worker");
      if (!folder_id_.empty() && trial.worker.starts_with(folder_id_ + "/"))
        trial.worker.erase(0, folder_id_.size() + 1);
      if (const auto attempt = row.find("attempt"); attempt != row.end() && attempt->is_number_unsigned())
        trial.attempt = attempt->get<std::uint32_t>();
      trial.seeds = seeds_in(row);
      for (const Json& value : list_in(row, "values")) trial.values.push_back(number_or_nan(value));
      for (const Json& report : list_in(row, "reports")) {
        if (report.is_array() && report.size() == 2 && report[0].is_number_integer())
          trial.reports[report[0].get<std::int64_t>()] = number_or_nan(report[1]);
      }
      for (const Json& rung : list_in(row, "rungs")) trial.rungs.push_back(number_or_nan(rung));
      trial.started = row.value("started", 0.0);
      trial.ended = row.value("ended", 0.0);
      trial.message = text_in(row, "message");
      trial.sampler_state = text_in(row, "sampler");
      trials.push_back(std::move(trial));
    }
    return trials;
  }

  Result<std::optional<BegunTrial>> begin(Begin what) override {
    STOKER_ASSIGN_OR_RETURN(answer, call({{"op", "begin"}, {"only_enqueued", what == Begin::enqueued}}));
    const auto number = answer.find("number");
    if (number == answer.end() || !number->is_number_unsigned()) return std::optional<BegunTrial>();
    return std::optional(BegunTrial{.number = number->get<TrialNumber>(),
                                    .fixed = values_in(answer.value("fixed", Json())),
                                    .origin = text_in(answer, "origin")});
  }
  Result<TrialNumber> begin_again(const StudyTrial& earlier) override {
    STOKER_ASSIGN_OR_RETURN(answer, call({{"op", "begin_again"},
                                          {"params", json_of(space_.decode(earlier.point))},
                                          {"origin", format("retry {}", earlier.number)},
                                          {"attempt", earlier.attempt + 1}}));
    return answer.value("number", TrialNumber{0});
  }
  Status set_point(const StudyTrial& trial) override {
    const Json state = trial.sampler_state.empty() ? Json() : Json(trial.sampler_state);
    return call({{"op", "set_point"},
                 {"number", trial.number},
                 {"params", json_of(space_.decode(trial.point))},
                 {"origin", trial.origin},
                 {"sampler", state}})
        .status();
  }
  Status report(TrialNumber number, std::int64_t step, double value,
                const std::vector<double>& rungs) override {
    Json reached = Json::array();
    for (const double rung : rungs) reached.push_back(number_or_null(rung));
    return call({{"op", "report"},
                 {"number", number},
                 {"step", step},
                 {"value", number_or_null(value)},
                 {"rungs", reached}})
        .status();
  }
  Status set_seeds(TrialNumber number, const SeedValues& seeds) override {
    Json list = Json::array();
    for (const auto& [seed, values] : seeds) list.push_back({seed, values});
    return call({{"op", "set_seeds"}, {"number", number}, {"seeds", list}}).status();
  }
  Status end(TrialNumber number, TrialState state, const std::vector<double>& values,
             const std::string& message) override {
    return call({{"op", "end"},
                 {"number", number},
                 {"state", end_state(state)},
                 {"values", values},
                 {"message", message}})
        .status();
  }

 private:
  Status send_worker(OptunaBridge& bridge) const {
    return bridge.call({{"op", "set_worker"}, {"worker", worker_}}).status();
  }
  Result<Json> call(const Json& request) {
    if (!bridge_ || !bridge_->is_own()) {
      STOKER_ASSIGN_OR_RETURN(opened, connect(wanted_, MissingStudy::refuse));
      (void)opened;
    }
    auto answer = bridge_->call(request);
    if (answer) return answer;
    if (answer.error().code() == Code::unavailable || answer.error().code() == Code::timeout) bridge_.reset();
    return std::move(answer).error().with_context(shown_url(location_));
  }

  StorageUrl url_;
  std::string location_;
  Space space_;
  Json wanted_;
  std::unique_ptr<OptunaBridge> bridge_;
  std::string folder_id_;
  std::string worker_;
  std::set<TrialNumber> outside_;
};

Result<Json> enqueued_points(const WantedStudy& wanted) {
  const Definition& definition = wanted.definition;
  Json list = Json::array();
  for (std::size_t i = 0; i < definition.first.size(); ++i)
    list.push_back({{"params", json_of(definition.space.decode(definition.first[i]))},
                    {"origin", format("first {}", i)}});
  if (definition.sampler != SamplerKind::grid) return list;
  STOKER_ASSIGN_OR_RETURN(grid, make_sampler(SamplerKind::grid, definition.space, 0));
  const std::vector<Goal> goals = definition.goals();
  for (std::uint64_t cell = 0;; ++cell) {
    STOKER_ASSIGN_OR_RETURN(point, grid->propose(cell, {definition.space, goals, {}}));
    if (!point) return list;
    const bool is_known = std::any_of(wanted.prior.begin(), wanted.prior.end(), [&](const StudyTrial& trial) {
      return is_same_point(trial.point, *point);
    });
    if (definition.skip_tried && is_known) continue;
    if (list.size() == kMostCells)
      return invalid("sampler grid: over {} points in a storage of Optuna", kMostCells)
          .cure("sampler: sobol");
    list.push_back(
        {{"params", json_of(definition.space.decode(*point))}, {"origin", format("grid {}", cell)}});
  }
}

Result<Json> json_of_wanted(const WantedStudy& wanted) {
  const Definition& definition = wanted.definition;
  Json directions = Json::array();
  Json metrics = Json::array();
  for (const Objective& objective : definition.objectives) {
    directions.push_back(stoker::to_text(objective.goal));
    metrics.push_back(objective.metric);
  }
  Json space = Json::array();
  for (const Parameter& parameter : definition.space.parameters()) space.push_back(json_of(parameter));
  STOKER_ASSIGN_OR_RETURN(enqueue, enqueued_points(wanted));
  return Json{{"directions", directions},
              {"metrics", metrics},
              {"space", space},
              {"enqueue", enqueue},
              {"prior", prior_text(wanted.prior)},
              {"definition", to_json(definition)}};
}

// "my study" as "my_study": names of studies here have no blanks.
std::string clean_name(std::string name) {
  for (char& c : name) {
    const bool is_clean = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '.' || c == '_' || c == '-';
    if (!is_clean) c = '_';
  }
  return name.substr(0, 64);
}

// "loss: minimize, size: maximize".
std::string goals_text(const Definition& definition) {
  std::string text;
  for (const Objective& objective : definition.objectives)
    text += format("{}{}: {}", text.empty() ? "" : ", ", objective.metric, stoker::to_text(objective.goal));
  return text;
}

// The definition of a study by an Optuna user: the wanted one, or else the parameters of its trials.
Result<Definition> foreign_definition(const StorageUrl& url, const Json& opened, const WantedStudy* wanted) {
  Definition definition;
  definition.name = clean_name(url.study);
  definition.id = "optuna";
  for (const Json& objective : list_in(opened, "objectives"))
    definition.objectives.push_back({text_in(objective, "metric"),
                                     enum_named<Goal>(text_in(objective, "goal")).value_or(Goal::minimize)});
  if (wanted != nullptr) {
    if (wanted->definition.goals() != definition.goals())
      return invalid("{}: its objectives are others ({})", shown_url(location_of(url)),
                     goals_text(definition))
          .cure("objectives: {{{}}}", goals_text(definition));
    if (wanted->definition.sampler == SamplerKind::grid || !wanted->definition.first.empty() ||
        !wanted->definition.warm_start.empty())
      return invalid("{}: is a study of Optuna (grid, first and warm_start are for a new study)",
                     shown_url(location_of(url)))
          .cure("storage: {}#{}-2", shown_url(url.url), url.study);
    return wanted->definition;
  }
  Json json = parse_json<Json>(to_json(definition));
  json["space"] = list_in(opened, "space");
  return definition_from_json(json_text(json), shown_url(location_of(url)));
}

}  // namespace

Result<bool> has_stored_study(const StorageUrl& url) {
  STOKER_RETURN_IF_ERROR(check_storage(url));
  if (!url.file.empty() && !path_exists(url.file)) return false;
  STOKER_ASSIGN_OR_RETURN(bridge, OptunaBridge::start());
  auto answer = bridge->call({{"op", "exists"}, {"url", url.url}, {"name", url.study}});
  if (!answer) return std::move(answer).error().with_context(shown_url(url.url));
  return answer->value("exists", false);
}

Result<StoredStudy> open_stored_study(const StorageUrl& url, const Path& folder, const WantedStudy* wanted,
                                      MissingStudy missing) {
  STOKER_RETURN_IF_ERROR(check_storage(url));
  if (missing == MissingStudy::refuse && !url.file.empty() && !path_exists(url.file))
    return posix_error(url.file.string(), ENOENT);
  Json request;
  if (wanted != nullptr) {
    STOKER_ASSIGN_OR_RETURN(json, json_of_wanted(*wanted));
    request = json;
  }
  auto storage = std::make_unique<OptunaStorage>(url, folder);
  STOKER_ASSIGN_OR_RETURN(opened, storage->connect(request, missing));
  const std::string text = text_in(opened, "definition");
  const std::string subject = shown_url(location_of(url));
  STOKER_ASSIGN_OR_RETURN(definition, text.empty() ? foreign_definition(url, opened, wanted)
                                                   : definition_from_json(text, subject));
  STOKER_ASSIGN_OR_RETURN(prior, prior_from_text(definition, text_in(opened, "prior"), subject));
  storage->set_space(definition.space, request);
  STOKER_ASSIGN_OR_RETURN(study,
                          Study::open(std::move(storage), folder, std::move(definition), std::move(prior)));
  return StoredStudy{std::move(study), opened.value("new", false)};
}

}  // namespace stoker::sweep
