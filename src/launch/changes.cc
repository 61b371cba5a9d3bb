#include "launch/changes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "rank/capsule/facts.h"
#include "record/capsule.h"

namespace stoker::launch {
namespace {

constexpr std::size_t kVersionShown = 8;

// Empty: it may change.
std::string_view why_it_stays(std::string_view key, const job::Job& job) {
  struct Rule {
    std::string_view key;
    std::string_view why;
  };
  static constexpr Rule kRules[] = {
      {"name", "its folder is named for it"},
      {"train.model", "its checkpoints hold the other model"},
      {"train.classes", "its checkpoints hold the other model"},
      {"train.seed", "the order of its samples follows from it"},
      {"train.training_data", "its epochs are made of the other samples"},
      {"checkpoint.directory", "its checkpoints are there"},
      {"record.directory", "its folder is there"},
  };
  for (const Rule& rule : kRules) {
    if (rule.key == key) return rule.why;
  }
  if (job.train && key == format("data.{}.split", job.train->training_data)) {
    return "its epochs are made of the other samples";
  }
  return "";
}

std::string new_run(const record::RunFolder& run, const job::Difference& change) {
  const std::string job = run.description().job_file.empty() ? "JOB" : run.description().job_file;
  const std::string setting = change.key + "=" + (change.after.empty() ? "null" : change.after);
  return format("stoker run {} --set {}, which begins another run", shell_quote(job), shell_quote(setting));
}

std::string shown(const std::string& value) { return value.empty() ? "its default" : printable(value); }

}  // namespace

Status check_changes(const record::RunFolder& run, const job::Job& before, const job::Job& after) {
  if (before.train.has_value() != after.train.has_value()) {
    return invalid("run {}: cannot change from {} to {}: its checkpoints are the other's", run.id(),
                   before.train ? "train" : "run", after.train ? "train" : "run");
  }
  for (const job::Difference& change : job::differences(before, after)) {
    const std::string_view why = why_it_stays(change.key, before);
    if (why.empty()) continue;
    return invalid("run {}: {}: cannot change from {} to {}: {} ({})", run.id(), change.key,
                   shown(change.before), shown(change.after), why, after.origins.where(change.key))
        .cure("{}", new_run(run, change));
  }
  return {};
}

Status check_versions(const record::RunFolder& run, const job::Job& job) {
  const auto began_with = record::read_capsule(run).data;
  if (!began_with) return {};
  for (const record::DataFacts& now : rank::data_facts(job)) {
    const auto then = std::find_if(began_with->begin(), began_with->end(),
                                   [&](const record::DataFacts& facts) { return facts.name == now.name; });
    if (then == began_with->end() || then->version.empty() || now.version.empty()) continue;
    if (then->version == now.version) continue;
    return invalid("run {}: data.{}.source: {} is version {}, the run began with {} ({})", run.id(), now.name,
                   printable(now.source), now.version.substr(0, kVersionShown),
                   then->version.substr(0, kVersionShown),
                   job.origins.where(format("data.{}.source", now.name)))
        .cure("stoker run {}, which begins another run",
              shell_quote(run.description().job_file.empty() ? "JOB" : run.description().job_file));
  }
  return {};
}

}  // namespace stoker::launch
