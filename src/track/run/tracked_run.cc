#include "track/run/tracked_run.h"

#include <map>

#include "base/secrets.h"
#include "job/job.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

bool is_param(std::string_view key) { return key.starts_with("params.") || key.starts_with("train."); }

// `params.lr` is `lr`, as in run.json.
std::string param_name(const std::string& key) { return key.starts_with("params.") ? key.substr(7) : key; }

void add_job(const record::Attempt& attempt, const job::Job& before, bool is_first, TrackedRun* run) {
  const auto job = job::load(attempt.job());
  if (!job.ok()) return;
  for (const job::Difference& each : job::differences(before, *job)) {
    const std::string value = hide_setting(each.key, each.after);
    if (is_first && is_param(each.key) && !each.after.empty())
      run->params.emplace_back(param_name(each.key), value);
    if (!is_first && each.key != "record.directory")
      run->changes.emplace_back(format("attempt {}: {}", attempt.number(), each.key), value);
  }
}

}  // namespace

bool TrackedRun::has_ended() const {
  return state.state != record::State::created && state.state != record::State::queued &&
         state.state != record::State::running;
}

std::string TrackedRun::name() const { return task ? format("{}-task{}", folder.id(), *task) : folder.id(); }

std::string TrackedRun::command() const { return join(folder.description().command, " "); }

TrackedRun describe_run(const record::RunFolder& folder) {
  TrackedRun run{.folder = folder,
                 .state = record::derive_state(folder),
                 .params = {},
                 .changes = {},
                 .data = {},
                 .task = {}};
  const auto attempts = folder.attempts();
  if (attempts.ok() && !attempts->empty()) {
    add_job(attempts->front(), job::Job(), true, &run);
    for (std::size_t i = 1; i < attempts->size(); ++i) {
      const auto before = job::load((*attempts)[i - 1].job());
      if (before.ok()) add_job((*attempts)[i], *before, false, &run);
    }
  }
  std::map<std::string, std::string> known(run.params.begin(), run.params.end());
  for (const auto& [name, value] : folder.description().params) {
    if (known.emplace(name, value).second) run.params.emplace_back(name, value);
  }
  const record::Capsule capsule = record::read_capsule(folder);
  if (capsule.data) run.data = *capsule.data;
  return run;
}

}  // namespace stoker::track
