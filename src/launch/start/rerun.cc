#include "launch/start/rerun.h"

#include <algorithm>
#include <set>

#include "base/version.h"
#include "launch/start/changes.h"
#include "launch/start/environment.h"
#include "rank/capsule/facts.h"
#include "record/capsule.h"

namespace stoker::launch {
namespace {

constexpr std::size_t kShortCommit = 7;
constexpr std::size_t kShortVersion = 8;
constexpr std::size_t kNamesShown = 3;

// Adds a difference if both values are known.
void compare(std::vector<Drift>& all, std::string what, std::string then, std::string now) {
  if (then.empty() || now.empty() || then == now) return;
  all.push_back({std::move(what), printable(then), printable(now), ""});
}

void compare_code(const record::CodeInfo& then, const record::CodeInfo& now, std::vector<Drift>& all) {
  if (then.root.empty() || now.root.empty()) return;
  compare(all, "code", "commit " + then.commit.substr(0, kShortCommit),
          "commit " + now.commit.substr(0, kShortCommit));
  if (then.diff != now.diff) {
    const char* how = now.diff.empty()    ? "its uncommitted changes are gone (capsule/code.diff has them)"
                      : then.diff.empty() ? "there are uncommitted changes now"
                                          : "its uncommitted changes differ now (capsule/code.diff)";
    all.push_back({"code", "", "", how});
  }
  if (then.untracked != now.untracked) all.push_back({"code", "", "", "other files are untracked now"});
}

void compare_data(const std::vector<record::DataInfo>& then, const std::vector<record::DataInfo>& now,
                  std::vector<Drift>& all) {
  for (const record::DataInfo& is : now) {
    const auto was =
        std::find_if(then.begin(), then.end(), [&](const auto& each) { return each.name == is.name; });
    if (was == then.end()) continue;
    const std::string key = "data." + is.name;
    compare(all, key, was->source, is.source);
    if (was->version.empty() || is.version.empty() || was->version == is.version) continue;
    all.push_back({key, "version " + was->version.substr(0, kShortVersion),
                   "version " + is.version.substr(0, kShortVersion), ""});
  }
}

std::set<std::string, std::less<>> lines_of(std::string_view text) {
  std::set<std::string, std::less<>> lines;
  for (std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) lines.emplace(trim(line));
  }
  return lines;
}

void compare_environment(const record::EnvironmentInfo& then, const record::EnvironmentInfo& now,
                         std::vector<Drift>& all) {
  for (const auto& [program, version] : now.programs) {
    for (const auto& [name, was] : then.programs) {
      if (name == program) compare(all, program, was, version);
    }
  }
  if (then.packages.empty() || now.packages.empty()) return;
  const auto before = lines_of(then.packages);
  const auto after = lines_of(now.packages);
  std::vector<std::string> changed;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(changed));
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(changed));
  if (changed.empty()) return;
  const std::size_t shown = std::min(kNamesShown, changed.size());
  std::string text = join(std::span(changed).first(shown), ", ");
  if (changed.size() > shown) text += ", ...";
  all.push_back({"packages", "", "", format("{} differ: {}", changed.size(), printable(text))});
}

}  // namespace

std::string to_text(const Drift& drift) {
  if (!drift.note.empty()) return format("{}: {}", drift.what, drift.note);
  return format("{}: {} then, {} now", drift.what, drift.then, drift.now);
}

Result<Request> rerun_request(const record::RunFolder& run, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    if (!setting.starts_with("params.")) continue;
    return invalid("run {}: --set {}: its command already contains the values of params", run.id(),
                   printable(setting))
        .cure("stoker run {} --set {}", shell_quote(run.description().job_file), shell_quote(setting));
  }
  job::LoadOptions options;
  options.set = settings;
  STOKER_ASSIGN_OR_RETURN(job, job::load(run.job(), options));
  Request request{.job = std::move(job)};
  request.job_file = run.description().job_file;
  return request;
}

std::vector<Drift> find_drift(const record::RunFolder& run, const job::Job& job) {
  std::vector<Drift> all;
  const record::Capsule then = record::read_capsule(run);
  if (then.code) compare_code(*then.code, rank::code_facts(job.working_directory, job.record.directory), all);
  if (then.data) compare_data(*then.data, rank::data_facts(job), all);
  if (then.environment) {
    const Environment variables = inherited_environment(job, current_environment());
    const std::string interpreter =
        job.command ? rank::interpreter_of(job.command->arguments, job.environment) : "";
    compare_environment(*then.environment,
                        rank::environment_facts(interpreter, variables, job.working_directory), all);
  }
  compare(all, "stoker", run.description().stoker_version, std::string(version()));
  if (then.execution && !then.execution->empty() && run.description().scheduler_job.empty()) {
    const record::NodeInfo was = then.execution->front();
    const record::NodeInfo now = rank::node_facts();
    compare(all, "host", was.cpu, now.cpu);
    compare(all, "GPUs", join(was.gpus, ", "), join(now.gpus, ", "));
  }
  // The job file may have changed since; the run's own job counts.
  for (JobFileChange& change : job_file_changes(run, job))
    all.push_back({"job file", "", "", std::move(change.text)});
  return all;
}

}  // namespace stoker::launch
