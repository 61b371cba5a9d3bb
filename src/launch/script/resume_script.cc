#include "launch/script/resume_script.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "launch/start/run.h"
#include "record/run_events.h"
#include "slurm/script/requested_resources.h"

namespace stoker::launch {
namespace {

// The values of --sbatch on a command line, up to the script's arguments.
std::vector<std::string> sbatch_options(const std::vector<std::string>& typed) {
  constexpr std::string_view kOption = "--sbatch";
  std::vector<std::string> options;
  for (std::size_t i = 0; i < typed.size() && typed[i] != "--"; ++i) {
    if (typed[i] == kOption && i + 1 < typed.size()) {
      options.push_back(typed[++i]);
    } else if (typed[i].starts_with(kOption) && typed[i].substr(kOption.size()).starts_with('=')) {
      options.push_back(typed[i].substr(kOption.size() + 1));
    }
  }
  return options;
}

// Rebuilds the original submission.
Result<PlannedScript> replan_script(const record::RunFolder& run, const std::vector<std::string>& settings,
                                    const Path& stoker) {
  const auto attempt = attempt_with_script(run);
  if (!attempt) return not_found("run {}: none of its attempts has a copy of its script", run.id());
  const record::RunDescription& was = run.description();
  if (was.command.empty()) return corrupt("run {}: its run.json names no script", run.id());
  ScriptRequest request{.script = was.command.front()};
  request.options = sbatch_options(was.typed);
  request.set = settings;
  request.stoker = stoker;
  request.directory = was.working_directory;
  if (!folder_exists(request.directory))
    return not_found("run {}: the folder {} of its submission no longer exists", run.id(), request.directory);
  STOKER_ASSIGN_OR_RETURN(text, read_file(script_of(*attempt)));
  STOKER_ASSIGN_OR_RETURN(job, job::load(run.job(), {.set = settings}));
  // run.json shows the arguments without secrets; the job has them unchanged.
  if (job.command && job.command->arguments.size() > 1)
    request.arguments.assign(job.command->arguments.begin() + 1, job.command->arguments.end());
  return plan_text(std::move(request), std::move(job), std::move(text));
}

std::string submit_command(const PlannedScript& plan, const std::string& option) {
  std::string words = "stoker submit";
  for (const std::string& each : plan.request.options) words += " " + shell_quote("--sbatch=" + each);
  if (!option.empty()) words += " " + shell_quote("--sbatch=" + option);
  words += " " + shell_quote(plan.request.script.string());
  if (!plan.request.arguments.empty()) words += " --";
  for (const std::string& each : plan.request.arguments) words += " " + shell_quote(each);
  return words;
}

// The tasks whose last record is not a success.
std::vector<std::uint32_t> not_done(const record::Attempt& attempt, std::vector<std::uint32_t> tasks) {
  std::set<std::uint32_t> done;
  const auto log = record::read_attempt_events(attempt.folder());
  for (std::size_t i = 0; log.ok() && i < log->events.size(); ++i) {
    const auto ended = record::attempt_ended(log->events[i]);
    if (!ended || ended->node < 0) continue;
    if (ended->outcome == record::Outcome::done) {
      done.insert(static_cast<std::uint32_t>(ended->node));
    } else {
      done.erase(static_cast<std::uint32_t>(ended->node));
    }
  }
  std::erase_if(tasks, [&](std::uint32_t task) { return done.contains(task); });
  return tasks;
}

}  // namespace

std::optional<record::Attempt> attempt_with_script(const record::RunFolder& run) {
  const auto attempts = run.attempts();
  if (!attempts.ok()) return std::nullopt;
  for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
    if (has_script(attempt->folder())) return *attempt;
  }
  return std::nullopt;
}

std::string to_array(const std::vector<std::uint32_t>& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size();) {
    std::size_t last = i;
    while (last + 1 < tasks.size() && tasks[last + 1] == tasks[last] + 1) ++last;
    text += format("{}{}", text.empty() ? "" : ",", tasks[i]);
    if (last > i) text += format("-{}", tasks[last]);
    i = last + 1;
  }
  return text;
}

Result<PlannedScript> resume_script(const record::RunFolder& run, const RunLife& life,
                                    const std::vector<std::string>& settings, const Path& stoker) {
  STOKER_RETURN_IF_ERROR(check_resumable(run, life));
  STOKER_ASSIGN_OR_RETURN(plan, replan_script(run, {}, stoker));
  if (!settings.empty()) {
    return invalid("run {}: --set {}: does not apply to batch scripts", run.id(), printable(settings.front()))
        .cure("{}      (starts a new run)", submit_command(plan, "--time=1:00:00"));
  }
  if (const auto given = given_option(plan, "--array")) {
    const std::string& array = given->value;
    const auto rest = not_done(*attempt_with_script(run), slurm::array_indices(array));
    const std::size_t cap = array.find('%');
    const std::string again = to_array(rest) + (cap == std::string::npos ? "" : array.substr(cap));
    return invalid("run {}: is an array, {} of {} tasks unfinished: submit them as a new run", run.id(),
                   rest.size(), slurm::array_indices(array).size())
        .cure("{}", submit_command(plan, "--array=" + again));
  }
  plan.resumed = run;
  return plan;
}

Result<PlannedScript> rerun_script(const record::RunFolder& run, const std::vector<std::string>& settings,
                                   const Path& stoker) {
  return replan_script(run, settings, stoker);
}

bool has_script_changed(const PlannedScript& plan) {
  const auto now = read_file(plan.request.directory / plan.request.script);
  return !now.ok() || *now != plan.text;
}

}  // namespace stoker::launch
