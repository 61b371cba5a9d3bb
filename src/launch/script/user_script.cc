// Submits a user script like a job file (submit.cc). Its attempt holds a copy of the script next to the batch
// script that starts it:
//   attempts/<n>/slurm_script   the submitted script, verbatim
//   attempts/<n>/job.sbatch     its #SBATCH lines, and `exec stoker run <attempt>`
#include "launch/script/user_script.h"

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/user.h"
#include "base/version.h"
#include "checkpoint/foreign/latest.h"
#include "job/read_job.h"
#include "launch/start/claim_attempt.h"
#include "launch/start/environment.h"
#include "launch/start/new_run.h"
#include "rank/capsule/facts.h"
#include "rank/script/script_run.h"
#include "record/capsule.h"
#include "slurm/allocation.h"
#include "slurm/script/option_names.h"
#include "slurm/script/script_writer.h"

namespace stoker::launch {
namespace {

// Slurm's own name for its copy of a script, so `basename "$0"` does not change.
constexpr std::string_view kScriptName = "slurm_script";

// The settings that apply to a script; the script sets the rest.
constexpr std::string_view kSettings[] = {"name", "record.directory", "site"};

std::string name_of(const Path& script) {
  std::string name = script.stem().string().substr(0, 64);
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '.' || c == '_' || c == '-';
    if (!is_plain) c = '-';
  }
  return name.empty() || name == "." || name == ".." ? "script" : name;
}

Status check_settings(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::string key = setting.substr(0, setting.find('='));
    if (std::find(std::begin(kSettings), std::end(kSettings), key) != std::end(kSettings)) continue;
    return invalid("--set {}: does not apply to batch scripts", printable(key))
        .cure("stoker submit SCRIPT --sbatch=--time=1:00:00");
  }
  return {};
}

// A job with defaults whose command is the script. Applies settings from the user's environment, too.
Result<job::Job> job_of(const ScriptRequest& request) {
  job::LoadOptions options{.environment = {}, .set = {}, .current_directory = request.directory};
  for (const auto& [name, value] : current_environment()) {
    if (name == "STOKER_SET_RECORD_DIRECTORY" || name == "STOKER_SET_SITE")
      options.environment.push_back(name + "=" + value);
  }
  options.set = {format("name={}", name_of(request.script))};
  options.set.insert(options.set.end(), request.set.begin(), request.set.end());
  job::TextSource source{.name = request.script.string(), .text = "run: script\nlauncher: single\n"};
  source.folder = request.directory;
  STOKER_ASSIGN_OR_RETURN(job, job::read_job(source, options));
  job.working_directory = request.directory;
  return std::move(job);
}

Status check_arguments(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view rest = arguments[i];
    while (!rest.empty()) {
      const std::size_t length = utf8_length(rest);
      if (length == 0 || rest.front() == '\0')
        return invalid("argument {} of the script: '{}' is not valid UTF-8", i + 1, printable(arguments[i]));
      rest.remove_prefix(length);
    }
  }
  return {};
}

// Finds missing log folders: Slurm would kill the job silently.
Status find_log_folders(PlannedScript& plan) {
  const auto chdir = given_option(plan, "--chdir");
  const Path base = chdir ? plan.request.directory / chdir->value : plan.request.directory;
  for (std::string_view name : {"--output", "--error"}) {
    const auto log = given_option(plan, name);
    const std::string folder = log ? slurm::log_folder(log->value) : "";
    if (folder.empty() || folder_exists(base / folder)) continue;
    Path above = (base / folder).lexically_normal();
    while (!path_exists(above) && above.has_relative_path()) above = above.parent_path();
    if (!folder_exists(above) || ::access(above.c_str(), W_OK | X_OK) != 0) {
      return invalid("{}: the log folder {} does not exist and cannot be created in {} ({})", name,
                     printable(folder), printable(above.string()), log->where)
          .cure("stoker submit {} --sbatch={}=FILE", shell_quote(plan.request.script.string()), name);
    }
    const Path missing = (base / folder).lexically_normal();
    if (std::find(plan.log_folders.begin(), plan.log_folders.end(), missing) == plan.log_folders.end())
      plan.log_folders.push_back(missing);
  }
  return {};
}

// Finds the script line of an sbatch error by the option or value in its message.
Status with_line(Status refused, const PlannedScript& plan) {
  const std::string answer(refused.message());
  const std::string script = printable(plan.request.script.string());
  for (const slurm::SbatchOption& option : plan.script.options) {
    const bool is_named = option.name.size() > 3 && answer.find(option.name) != std::string::npos;
    const bool is_valued = option.value.size() > 2 && answer.find(option.value) != std::string::npos;
    if (!is_named && !is_valued) continue;
    const std::string_view likely = is_named ? slurm::suggest_option(option.name) : "";
    const bool is_mistyped = !likely.empty() && likely != option.name;
    return Status(refused.code(), format("{} ({}:{}{})", answer, script, option.line,
                                         is_mistyped ? format("; did you mean '{}'?", likely) : ""));
  }
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"account", "--account"},
                                                                      {"partition", "--partition"},
                                                                      {"qos", "--qos"},
                                                                      {"reservation", "--reservation"},
                                                                      {"time limit", "--time"},
                                                                      {"memory", "--mem"},
                                                                      {"feature", "--constraint"},
                                                                      {"generic resource", "--gres"},
                                                                      {"job array", "--array"},
                                                                      {"gres", "--gres"},
                                                                      {"node count", "--nodes"},
                                                                      {"cpu count", "--cpus-per-task"}};
  const std::string lower = to_lower(answer);
  for (const auto& [word, name] : kWords) {
    if (lower.find(word) == std::string::npos) continue;
    if (const auto where = given_option(plan, name))
      return Status(refused.code(), format("{} ({})", answer, where->where));
  }
  return refused;
}

record::RunDescription describe(const PlannedScript& plan) {
  record::RunDescription what;
  what.name = plan.job.name;
  what.git = rank::short_commit(plan.request.directory);
  what.command = {plan.request.script.string()};
  what.command.insert(what.command.end(), plan.request.arguments.begin(), plan.request.arguments.end());
  what.working_directory = plan.request.directory.string();
  what.typed = plan.request.typed;
  what.world_size = plan.tasks;
  what.user = user_name();
  what.stoker_version = version();
  return what;
}

// For scripts that store checkpoints in Stoker's folder; most do not.
Path newest_checkpoint(const Path& folder) {
  if (!path_exists(folder)) return {};
  RealClock clock;
  NoProgress progress;
  const auto latest = checkpoint::find_latest(folder, {}, clock, progress);
  return latest.ok() && latest->path ? *latest->path : Path();
}

std::string yaml_of(const PlannedScript& plan, const Path& script) {
  job::Job job = plan.job;
  job.command = job::RunCommand{.arguments = {script.string()}};
  job.command->arguments.insert(job.command->arguments.end(), plan.request.arguments.begin(),
                                plan.request.arguments.end());
  return to_yaml(job);
}

}  // namespace

std::optional<job::GivenOption> given_option(const PlannedScript& plan, std::string_view name) {
  slurm::UserScript asked;
  for (const std::string& option : plan.request.options) {
    const auto read = slurm::read_user_script("", "#!\n#SBATCH " + option + "\n");
    if (read.ok()) asked.options.insert(asked.options.end(), read->options.begin(), read->options.end());
  }
  if (const auto* option = asked.find(name)) return job::GivenOption{option->value, "--sbatch"};
  if (const auto* option = plan.script.find(name))
    return job::GivenOption{option->value,
                            format("{}:{}", printable(plan.request.script.string()), option->line)};
  return std::nullopt;
}

job::SiteRequest site_request(const PlannedScript& plan, const slurm::Lookup& environment) {
  return job::site_request([&](std::string_view name) { return given_option(plan, name); },
                           printable(plan.request.script.string()), environment);
}

Path script_of(const record::Attempt& attempt) {
  return std::filesystem::absolute(attempt.folder() / kScriptName).lexically_normal();
}

Result<PlannedScript> plan_script(ScriptRequest request) {
  STOKER_RETURN_IF_ERROR(check_settings(request.set));
  STOKER_RETURN_IF_ERROR(check_arguments(request.arguments));
  for (const std::string& option : request.options)
    STOKER_RETURN_IF_ERROR(slurm::check_user_option(option).with_context("--sbatch"));
  STOKER_ASSIGN_OR_RETURN(text, read_file(request.directory / request.script));
  STOKER_ASSIGN_OR_RETURN(job, job_of(request));
  return plan_text(std::move(request), std::move(job), std::move(text));
}

Result<PlannedScript> plan_text(ScriptRequest request, job::Job job, std::string text) {
  STOKER_RETURN_IF_ERROR(check_settings(request.set));
  STOKER_ASSIGN_OR_RETURN(script, slurm::read_user_script(request.script.string(), text));
  PlannedScript plan{.request = std::move(request), .job = std::move(job), .text = std::move(text)};
  plan.script = std::move(script);
  if (const auto* wait = plan.script.find("--wait")) {
    return invalid("{}:{}: --wait would block until the job ends", printable(plan.request.script.string()),
                   wait->line)
        .cure("stoker wait last      (instead of --wait)");
  }
  if (const auto array = given_option(plan, "--array"))
    plan.tasks = static_cast<int>(std::clamp<std::size_t>(slurm::count_tasks(array->value), 1, 10'000'000));
  STOKER_RETURN_IF_ERROR(find_log_folders(plan));
  return plan;
}

Result<std::string> wrapped_script(const PlannedScript& plan, const record::Attempt& attempt,
                                   const std::string& run_id) {
  const Path folder = std::filesystem::absolute(attempt.folder()).lexically_normal();
  slurm::Wrapping wrapping;
  const std::string file = plan.request.script.filename().string();
  wrapping.title =
      format("{}, attempt {} of run {}, submitted by stoker {}", file, attempt.number(), run_id, version());
  wrapping.job_name = file;
  wrapping.comment = given_option(plan, "--comment") ? "" : comment_of(run_id, attempt.number());
  if (!given_option(plan, "--output")) {
    // One per task of an array.
    const bool is_array = given_option(plan, "--array").has_value();
    STOKER_ASSIGN_OR_RETURN(
        log, slurm::log_pattern(is_array ? folder / "slurm" : folder / attempt.batch_log().filename()));
    wrapping.log = is_array ? log + "-%a.log" : log;
  }
  wrapping.extra = plan.request.options;
  wrapping.command = {plan.request.stoker.string(), "run", folder.string()};
  return slurm::wrap_user_script(plan.script, wrapping);
}

Result<Submission> submit_script(const PlannedScript& plan, slurm::Scheduler& scheduler, Deadline deadline) {
  for (const Path& folder : plan.log_folders)
    STOKER_RETURN_IF_ERROR(make_directories(folder).with_context("the log folder"));
  const Path example = plan.job.record.directory / "run/attempts/1";
  STOKER_RETURN_IF_ERROR(wrapped_script(plan, record::Attempt(example, 1), "run").status());
  auto made = plan.resumed
                  ? Result<record::RunFolder>(*plan.resumed)
                  : record::RunFolder::create(plan.job.record.directory, describe(plan),
                                              yaml_of(plan, plan.request.directory / plan.request.script));
  if (!made.ok()) return std::move(made).error();
  const record::RunFolder& folder = *made;
  const auto last = folder.last_attempt();
  const int number = last.ok() ? last->number() + 1 : 1;
  const Path next = folder.folder() / "attempts" / std::to_string(number);
  STOKER_ASSIGN_OR_RETURN(attempt,
                          folder.start_attempt(yaml_of(plan, script_of(record::Attempt(next, number)))));
  if (attempt.number() != number)
    return unavailable("run {}: another process has just started attempt {}", folder.id(), number);
  STOKER_RETURN_IF_ERROR(write_file(script_of(attempt), plan.text));
  if (::chmod(script_of(attempt).c_str(), 0700) != 0) return posix_error(script_of(attempt).string(), errno);
  STOKER_ASSIGN_OR_RETURN(text, wrapped_script(plan, attempt, folder.id()));
  QueueEntry entry{.script = std::move(text)};
  if (!given_option(plan, "--comment")) entry.comment = comment_of(folder.id(), attempt.number());
  entry.tasks = plan.tasks;
  entry.explain = [&](Status refused) { return with_line(std::move(refused), plan); };
  entry.is_new_run = !plan.resumed;
  return enqueue(folder, attempt, entry, scheduler, deadline);
}

bool has_script(const Path& attempt_folder) { return path_exists(attempt_folder / kScriptName); }

Result<Exit> run_script(const Path& attempt_folder) {
  STOKER_ASSIGN_OR_RETURN(request, prepared_request(attempt_folder));
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  rank::ScriptRun script{.attempt = *request.prepared};
  const auto task = environment_value("SLURM_ARRAY_TASK_ID");
  std::int64_t number = 0;
  if (task && parse_number(*task, &number)) {
    script.is_array = true;
    script.task = static_cast<int>(number);
  } else {
    STOKER_ASSIGN_OR_RETURN(
        attempt,
        claim_attempt(request, *request.resumed, allocation ? allocation->job_id : "", to_yaml(request.job)));
    script.attempt = attempt;
  }
  script.command = request.job.command->arguments;
  if (allocation) script.scheduler_job = allocation->job_id;
  const Environment inherited = current_environment();
  const Path checkpoints = request.resumed->folder() / "checkpoints";
  (void)make_directories(checkpoints);  // the script may not use it
  const bool will_continue = script.attempt.number() > 1;
  script.environment =
      run_environment(inherited, {.job = request.job,
                                  .folder = *request.resumed,
                                  .attempt = script.attempt,
                                  .checkpoints = checkpoints,
                                  .resume = will_continue ? newest_checkpoint(checkpoints) : Path(),
                                  .deadline = allocation ? allocation->end_time : std::nullopt});
  const record::RunFolder& folder = *request.resumed;
  if (!path_exists(folder.capsule())) {
    script.background_task = [&] {
      (void)record::write_execution(folder, {rank::node_facts()});
      (void)record::write_code(folder,
                               rank::code_facts(request.job.working_directory, request.job.record.directory));
      (void)record::write_environment(folder,
                                      rank::environment_facts("", inherited, request.job.working_directory));
    };
  }
  return rank::run_script(script);
}

}  // namespace stoker::launch
