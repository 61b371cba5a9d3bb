#include "launch/start/changes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/secrets.h"
#include "rank/capsule/facts.h"
#include "record/capsule.h"

namespace stoker::launch {
namespace {

constexpr std::size_t kVersionShown = 8;

// Returns "" if the key may change.
std::string_view immutable_reason(std::string_view key, const job::Job& job) {
  struct Rule {
    std::string_view key;
    std::string_view why;
  };
  static constexpr Rule kRules[] = {
      {"name", "its folder has this name"},
      {"train.model", "its checkpoints have the old model"},
      {"train.file", "its checkpoints have the old model"},
      {"train.classes", "its checkpoints have the old model"},
      {"train.seed", "its sample order depends on it"},
      {"train.training_data", "its epochs use the old data"},
      {"checkpoint.directory", "its checkpoints are in the old folder"},
      {"record.directory", "its folder is in the old place"},
  };
  for (const Rule& rule : kRules) {
    if (rule.key == key) return rule.why;
  }
  if (job.train && key == format("data.{}.split", job.train->training_data)) {
    return "its epochs use the old data";
  }
  return "";
}

// "train.epochs=5" in the syntax of --set, which has no quotes; "" for values that --set cannot express.
std::string setting_of(const job::Difference& change) {
  const std::string& yaml = change.after;
  if (yaml.empty()) return change.key + "=null";
  if (!yaml.starts_with('"')) return change.key + "=" + yaml;
  std::string text = change.key + "=";
  for (std::size_t i = 1; i + 1 < yaml.size(); ++i) {
    const bool is_escape = yaml[i] == '\\';
    if (is_escape) ++i;
    if (is_escape && yaml[i] != '"' && yaml[i] != '\\') return "";
    text += yaml[i];
  }
  return text;
}

std::string new_run(const record::RunFolder& run, const job::Difference& change) {
  const std::string job = run.description().job_file.empty() ? "JOB" : run.description().job_file;
  const std::string setting = setting_of(change);
  return format("stoker run {} --set {}      (starts a new run)", shell_quote(job),
                shell_quote(setting.empty() ? change.key + "=VALUE" : setting));
}

std::string shown(const std::string& value) { return value.empty() ? "its default" : printable(value); }

// Compares the current code with the code at the start of the run; empty when it is equal or unknown.
std::string code_change(const record::RunFolder& run, const job::Job& job) {
  const auto then = record::read_capsule(run).code;
  if (!then || then->commit.empty()) return "";
  const record::CodeInfo now = rank::code_facts(job.working_directory, job.record.directory);
  const auto shown_commit = [](const record::CodeInfo& code) {
    return code.commit.substr(0, kVersionShown) + (code.dirty ? " with changes" : "");
  };
  if (now.commit.empty() || (now.commit == then->commit && now.diff == then->diff)) return "";
  if (now.commit == then->commit) return format("code: uncommitted changes differ, at {}", shown_commit(now));
  return format("code: {} → {}", shown_commit(*then), shown_commit(now));
}

// The setting that contains the substituted params, with its current value.
std::string command_setting(const job::Job& job) {
  if (!job.command) return "train.KEY=VALUE";
  std::string text = job.command->arguments.back();
  if (!job.command->is_shell) {
    std::vector<std::string> words;
    for (const std::string& word : job.command->arguments) words.push_back(shell_quote(word));
    text = join(words, " ");
  }
  // Escapes text that would be parsed as a reference.
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3))
    text.insert(at, "$");
  return (job.command->is_shell ? "run.shell=" : "run=") + text;
}

// The file name was typed in a folder that is not recorded. That folder is the working directory or its
// parent, because ranks run next to the job file by default.
Path typed_file(const record::RunFolder& run, const job::Job& job) {
  const Path typed = run.description().job_file;
  if (typed.empty()) return {};
  const Path below = job.working_directory / typed;
  const bool is_beside = typed.parent_path().filename() == job.working_directory.filename();
  return is_beside && !path_exists(below) ? job.working_directory / typed.filename() : below;
}

// A setting from the first command line is no change of the file.
bool was_typed(const record::RunFolder& run, const std::string& key) {
  const std::vector<std::string>& words = run.description().typed;
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.starts_with(key + "=") || word.starts_with("--set=" + key + "=");
  });
}

// The --set values of the first command line.
std::vector<std::string> typed_settings(const record::RunFolder& run) {
  constexpr std::string_view kSet = "--set";
  const std::vector<std::string>& words = run.description().typed;
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kSet && i + 1 < words.size())
      settings.push_back(words[++i]);
    else if (words[i].starts_with("--set="))
      settings.push_back(words[i].substr(kSet.size() + 1));
  }
  return settings;
}

// Loads the current file with the settings of the first command line, because defaults may depend on them.
Result<job::Job> load_as_typed(const record::RunFolder& run, const Path& file) {
  auto job = job::load(file, {.set = typed_settings(run)});
  return job.ok() ? std::move(job) : job::load(file);
}

}  // namespace

std::vector<std::string> describe_changes(const record::RunFolder& run, const job::Job& before,
                                          const job::Job& after) {
  std::vector<std::string> lines;
  for (const job::Difference& change : job::differences(before, after)) {
    lines.push_back(format("{}: {} → {} ({})", change.key, shown(hide_setting(change.key, change.before)),
                           shown(hide_setting(change.key, change.after)), after.origins.where(change.key)));
  }
  const std::uint32_t ranks = before.resources.world_size(), ranks_now = after.resources.world_size();
  if (ranks != ranks_now) lines.push_back(format("ranks: {} → {}", ranks, ranks_now));
  if (std::string code = code_change(run, after); !code.empty()) lines.push_back(std::move(code));
  return lines;
}

std::vector<JobFileChange> job_file_changes(const record::RunFolder& run, const job::Job& taken) {
  const auto before = job::load(run.job());
  const Path file = before.ok() ? typed_file(run, *before) : Path();
  if (file.empty() || !path_exists(file)) return {};
  const std::string name = printable(run.description().job_file);
  const auto now = load_as_typed(run, file);
  if (!now.ok()) return {{format("{} is no longer a valid job; the run keeps its own", name), ""}};
  std::map<std::string, std::string> own;  // keys with a different value in the file
  for (job::Difference& each : job::differences(*now, taken)) own.emplace(each.key, std::move(each.after));
  const bool is_same_kind = now->train.has_value() == taken.train.has_value();
  const auto shown_value = [](const std::string& value) {
    return value.empty() ? std::string("not set") : printable(value);
  };
  std::vector<JobFileChange> changes;
  for (const job::Difference& change : job::differences(*before, *now)) {
    const auto counts = own.find(change.key);
    if (counts == own.end() || was_typed(run, change.key)) continue;
    // Its default depends on the current folder.
    if (change.key == "record.directory" && now->origins.where(change.key) == "default") continue;
    const bool may_be_set =
        is_same_kind && !change.key.starts_with("params.") && immutable_reason(change.key, taken).empty();
    const std::string value = hide_setting(change.key, change.after);
    changes.push_back({format("{} is {} in {} now; the run keeps {}", change.key, shown_value(value), name,
                              shown_value(hide_setting(change.key, counts->second))),
                       may_be_set && value == change.after ? setting_of(change) : ""});
  }
  return changes;
}

std::vector<std::string> describe_job_file_changes(const record::RunFolder& run, const job::Job& taken) {
  std::vector<std::string> lines;
  for (const JobFileChange& change : job_file_changes(run, taken)) {
    std::string line = change.text;
    if (!change.setting.empty())
      line += format(" (to change it: --set {})", printable(shell_quote(change.setting)));
    lines.push_back(std::move(line));
  }
  return lines;
}

Status check_changes(const record::RunFolder& run, const job::Job& before, const job::Job& after) {
  if (before.train.has_value() != after.train.has_value()) {
    return invalid("run {}: cannot change from {} to {}: its checkpoints do not fit", run.id(),
                   before.train ? "train" : "run", after.train ? "train" : "run");
  }
  for (const job::Difference& change : job::differences(before, after)) {
    const std::string_view why = immutable_reason(change.key, before);
    if (why.empty()) continue;
    return invalid("run {}: {}: cannot change from {} to {}: {} ({})", run.id(), change.key,
                   shown(change.before), shown(change.after), why, after.origins.where(change.key))
        .cure("{}", new_run(run, change));
  }
  return {};
}

Status check_params(const record::RunFolder& run, const job::Job& job,
                    const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    if (!setting.starts_with("params.")) continue;
    return invalid("run {}: --set {}: its {} already contains the values of params", run.id(),
                   printable(setting), job.train ? "training" : "command")
        .cure("stoker resume {} --set {}      (with the new value)", run.id(),
              shell_quote(command_setting(job)));
  }
  return {};
}

Status check_versions(const record::RunFolder& run, const job::Job& job) {
  const auto started_from = record::read_capsule(run).data;
  if (!started_from) return {};
  for (const record::DataInfo& now : rank::data_facts(job)) {
    const auto then = std::find_if(started_from->begin(), started_from->end(),
                                   [&](const record::DataInfo& facts) { return facts.name == now.name; });
    if (then == started_from->end() || then->version.empty() || now.version.empty()) continue;
    if (then->version == now.version) continue;
    return invalid("run {}: data.{}.source: {} is version {}, the run started with {} ({})", run.id(),
                   now.name, printable(now.source), now.version.substr(0, kVersionShown),
                   then->version.substr(0, kVersionShown),
                   job.origins.where(format("data.{}.source", now.name)))
        .cure("stoker run {}      (starts a new run)",
              shell_quote(run.description().job_file.empty() ? "JOB" : run.description().job_file));
  }
  return {};
}

}  // namespace stoker::launch
