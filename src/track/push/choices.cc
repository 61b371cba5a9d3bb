#include "track/push/choices.h"

#include <algorithm>

#include "job/job.h"
#include "stoker/text.h"
#include "track/comet/comet_tracker.h"
#include "track/files/csv_format.h"
#include "track/files/event_format.h"
#include "track/files/file_tracker.h"
#include "track/files/wandb_format.h"
#include "track/mlflow/mlflow_tracker.h"

namespace stoker::track {
namespace {

std::optional<job::Job> job_of(const record::RunFolder& run) {
  const auto attempt = run.last_attempt();
  auto job = job::load(attempt.ok() && path_exists(attempt->job()) ? attempt->job() : run.job());
  return job.ok() ? std::optional(*std::move(job)) : std::nullopt;
}

std::string variable_of(const Environment& environment, std::string_view name) {
  const auto found = std::find_if(environment.begin(), environment.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == environment.end() ? "" : found->second;
}

// The first that is not empty.
std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return "";
}

ModelChoice model_of(const record::RunFolder& run, const std::optional<job::Job>& job) {
  if (!job || !job->record.mlflow_register) return {};
  const std::optional<Path>& directory = job->checkpoint.directory;
  ModelChoice model{.name = *job->record.mlflow_register,
                    .path = {},
                    .checkpoints = directory ? *directory / run.id() : run.folder() / "checkpoints"};
  if (job->record.mlflow_register_path)
    model.path = Path(run.description().working_directory) / *job->record.mlflow_register_path;
  return model;
}

Result<std::unique_ptr<Tracker>> make_mlflow(const TrackerChoice& choice, const record::RunFolder& run,
                                             const std::optional<job::Job>& job, const NoteSink& note) {
  Environment environment = current_environment();
  if (job)
    environment.insert(environment.end(), job->environment.variables.begin(),
                       job->environment.variables.end());
  const std::string address = first_of({choice.value, job ? job->record.mlflow.value_or("") : "",
                                        variable_of(environment, "MLFLOW_TRACKING_URI")});
  if (address.empty()) {
    return invalid("the address of the MLflow server is not known (--to, record.mlflow, MLFLOW_TRACKING_URI)")
        .cure("stoker track push {} --to mlflow=http://HOST:5000", run.id());
  }
  if (!address.starts_with("http://") && !address.starts_with("https://")) {
    return invalid("'{}' is not the address of an MLflow server, which begins with http:// or https://",
                   printable(address))
        .cure("mlflow server --port 5000      (then --to mlflow=http://HOST:5000)");
  }
  const std::string experiment =
      first_of({job ? job->record.mlflow_experiment.value_or("") : "",
                variable_of(environment, "MLFLOW_EXPERIMENT_NAME"), run.description().name});
  return make_mlflow_tracker(http_options_from(environment, address), experiment, model_of(run, job), note);
}

}  // namespace

Result<TrackerChoice> parse_choice(std::string_view text) {
  const std::size_t equals = text.find('=');
  TrackerChoice choice{std::string(text.substr(0, equals)), ""};
  if (equals != std::string_view::npos) choice.value = text.substr(equals + 1);
  if (std::ranges::find(kTrackerNames, choice.name) != std::end(kTrackerNames)) return choice;
  return invalid("track: unknown tracker '{}'{} (--to)", printable(choice.name),
                 suggestion(choice.name, kTrackerNames));
}

std::vector<TrackerChoice> choices_of_job(const record::RunFolder& run) {
  std::vector<TrackerChoice> choices;
  const std::optional<job::Job> job = job_of(run);
  if (!job) return choices;
  const job::RecordOptions& record = job->record;
  if (record.mlflow) choices.push_back({"mlflow", ""});
  if (record.tensorboard) choices.push_back({"tensorboard", ""});
  if (record.wandb) choices.push_back({"wandb", ""});
  if (record.comet) choices.push_back({"comet", ""});
  if (record.csv) choices.push_back({"csv", ""});
  return choices;
}

Result<std::unique_ptr<Tracker>> make_tracker(const TrackerChoice& choice, const record::RunFolder& run,
                                              const Path& folder, const NoteSink& note) {
  const std::optional<job::Job> job = job_of(run);
  if (choice.name == "mlflow") return make_mlflow(choice, run, job, note);
  if (choice.name == "comet") {
    return make_comet_tracker(
        folder, first_of({choice.value, job ? job->record.comet.value_or("") : "", run.description().name}));
  }
  std::unique_ptr<FileFormat> file_format;
  if (choice.name == "csv") file_format = std::make_unique<CsvFormat>();
  if (choice.name == "tensorboard") file_format = std::make_unique<EventFormat>();
  if (choice.name == "wandb") {
    const std::string project =
        first_of({choice.value, job ? job->record.wandb.value_or("") : "", run.description().name});
    file_format = std::make_unique<WandbFormat>(project, run.description().created);
  }
  return std::make_unique<FileTracker>(folder, std::move(file_format));
}

}  // namespace stoker::track
